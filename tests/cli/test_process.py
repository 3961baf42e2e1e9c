"""The program as a process: pipes, signals, and what it takes to start."""

import asyncio
import os
import signal
import socket
import subprocess
import sys
import time
from asyncio.subprocess import PIPE
from pathlib import Path

import pytest

PROGRAM = (sys.executable, "-m", "inferwatch")
LIMIT_SECONDS = 30
HANGING_PLUGIN = """
import time
from inferwatch.model import Family, Kind
from inferwatch.spec import Instance, SamplerSpec

class Hanging:
    def __init__(self, context):
        self.context = context
    async def sample(self):
        await self.context.run_blocking(time.sleep, 600)
    async def close(self):
        pass

SAMPLER = SamplerSpec(
    "hanging", "cpu", "It hangs.", "nothing", (Family("inferwatch_hanging", "Nothing.", Kind.GAUGE),), Hanging,
    instances=lambda config: [Instance(timeout_seconds=0.5)],
)
"""


def program(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*PROGRAM, *arguments], capture_output=True, text=True, check=False, timeout=LIMIT_SECONDS,
        env={**os.environ, **environment},
    )  # fmt: skip


def with_plugin(directory: Path, text: str) -> str:
    """Install a package with one sampler there; return what PYTHONPATH must be."""
    (directory / "plugin_of_a_test.py").write_text(text, encoding="utf-8")
    info = directory / "plugin_of_a_test-1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: plugin-of-a-test\nVersion: 1\n", encoding="utf-8")
    (info / "entry_points.txt").write_text(
        "[inferwatch.samplers]\nhanging = plugin_of_a_test:SAMPLER\n", encoding="utf-8"
    )
    return str(directory)


def test_once_prints_what_the_issue_promises() -> None:
    result = program("once", "--log.level=error")

    assert result.returncode == 0
    assert result.stderr == ""
    for name in ("inferwatch_cpu_seconds_total", "inferwatch_memory_available_bytes", "inferwatch_sampler_up"):
        assert f"\n{name}{{" in result.stdout or f"\n{name} " in result.stdout


@pytest.mark.parametrize(
    "command", [("once", "--log.level=error"), ("list",), ("list", "cpu"), ("render", "config-example")]
)
def test_reader_that_goes_away_is_no_error(command: tuple[str, ...]) -> None:
    with subprocess.Popen([*PROGRAM, *command], stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.close()
        assert process.stderr is not None
        complaint = process.stderr.read()
        code = process.wait(LIMIT_SECONDS)

    assert (code, complaint) == (0, b"")


def test_full_disk_is_one_line() -> None:
    with Path("/dev/full").open("wb") as full:
        result = subprocess.run(
            [*PROGRAM, "once", "--log.level=error"], stdout=full, stderr=subprocess.PIPE, text=True, check=False,
            timeout=LIMIT_SECONDS,
        )  # fmt: skip

    assert result.returncode == 1
    assert result.stderr == "can't write to standard output: No space left on device\n"


def test_page_is_utf_8_whatever_the_locale() -> None:
    result = program("list", "cpu", LC_ALL="C", PYTHONUTF8="0", PYTHONCOERCECLOCALE="0")

    assert result.returncode == 0
    assert result.stdout.startswith("# cpu\n")


def test_thread_that_never_returns_does_not_keep_once_from_ending(tmp_path: Path) -> None:
    began = time.monotonic()

    result = program("once", PYTHONPATH=with_plugin(tmp_path, HANGING_PLUGIN))

    assert time.monotonic() - began < 10
    assert result.returncode == 0
    assert 'inferwatch_sampler_instances{sampler="hanging",state="stuck"} 1' in result.stdout


def test_plugin_that_breaks_keeps_nothing_else_from_working(tmp_path: Path) -> None:
    result = program("once", PYTHONPATH=with_plugin(tmp_path, "raise RuntimeError('broken')"))

    assert result.returncode == 0
    assert "plugin_of_a_test:SAMPLER" in result.stderr
    assert "inferwatch_cpu_seconds_total{" in result.stdout


async def test_interrupt_ends_once_without_a_trace(tmp_path: Path) -> None:
    plugin = with_plugin(tmp_path, HANGING_PLUGIN.replace("0.5", "60"))
    process = await asyncio.create_subprocess_exec(
        *PROGRAM, "once", "--log.level=info", stdout=PIPE, stderr=PIPE, env={**os.environ, "PYTHONPATH": plugin}
    )
    try:
        async with asyncio.timeout(LIMIT_SECONDS):
            await asyncio.sleep(2)
            process.send_signal(signal.SIGINT)
            out, err = await process.communicate()
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()

    assert process.returncode == 130
    assert out == b""
    assert b"Traceback" not in err


def test_address_in_use_is_told_in_one_line() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        result = program("run", f"--web.listen-address=127.0.0.1:{taken.getsockname()[1]}", "--log.level=error")

    assert result.returncode == 1
    assert result.stderr.count("\n") == 1


@pytest.mark.parametrize("arguments", [("--version",), ("list",), ("--help",)])
def test_quick_commands_import_neither_rich_nor_the_web_server(arguments: tuple[str, ...]) -> None:
    code = f"import sys; sys.argv = ['inferwatch', *{arguments!r}]\nfrom inferwatch.cli import main\ntry: main()\n"
    code += (
        "finally: print(sorted({'rich', 'inferwatch.web', 'inferwatch.agent'} & sys.modules.keys()), file=sys.stderr)"
    )
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=LIMIT_SECONDS
    )

    assert result.stderr == "[]\n"
