"""Every command of the README works, and the configuration it shows is valid."""

import asyncio
import re
import shlex
from asyncio.subprocess import PIPE, STDOUT
from pathlib import Path

import pytest

from support_process import ROOT, agent, end, free_port, get, prometheus, wait_until_ready

README = (ROOT / "README.md").read_text(encoding="utf-8")
RUN = "make run"
# not run here: it is what runs this; that the target exists and can be planned is checked
TEST = "make test"


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", README, re.DOTALL | re.MULTILINE)


def commands() -> list[str]:
    return [line for block in blocks("sh") for line in block.splitlines() if line.strip()]


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    """Return a place where the files that the README shows lie beside the program."""
    (tmp_path / "inferwatch.toml").write_text(blocks("toml")[0], encoding="utf-8")
    (tmp_path / ".venv").symlink_to(ROOT / ".venv")
    return tmp_path


async def output_of(command: str, directory: Path) -> tuple[int | None, str]:
    process = await asyncio.create_subprocess_exec(*shlex.split(command), cwd=directory, stdout=PIPE, stderr=STDOUT)
    async with asyncio.timeout(60):
        out, _ = await process.communicate()
    return process.returncode, out.decode()


async def make_run(command: str, directory: Path) -> str:
    """Start the agent with make on a free port and return what it printed until it was ready."""
    port = free_port()
    words = shlex.split(command.replace("inferwatch.toml", str(directory / "inferwatch.toml")))
    given = next((word for word in words if word.startswith("ARGS=")), "ARGS=")
    words = [word for word in words if not word.startswith("ARGS=")]
    process = await asyncio.create_subprocess_exec(
        *words, f"{given} --web.listen-address=127.0.0.1:{port}", cwd=ROOT, stdout=PIPE, stderr=STDOUT
    )
    assert process.stdout is not None
    try:
        await wait_until_ready(f"http://127.0.0.1:{port}/-/ready", process)
        async with asyncio.timeout(10):
            printed = ""
            while f"http://127.0.0.1:{port}" not in printed:
                printed += (await process.stdout.readline()).decode()
            printed += (await process.stdout.read(8192)).decode()
        assert (await get(f"http://127.0.0.1:{port}/metrics"))[0] == 200
    finally:
        await end(process)
        await process.stdout.read()
    return printed


async def test_make_run_prints_the_url_what_it_samples_and_what_it_can_not_and_why(directory: Path) -> None:
    assert RUN in commands()

    printed = await make_run(RUN, directory)

    assert "cpu" in printed
    assert "no [[engines]] configured" in printed


async def test_make_run_with_an_engine_of_the_readme(directory: Path) -> None:
    command = next(command for command in commands() if "ARGS" in command)

    assert "my-service" in await make_run(command, directory)


async def test_make_test_is_a_target() -> None:
    status, text = await output_of(f"{TEST} --dry-run", ROOT)

    assert TEST in commands()
    assert status == 0, text


@pytest.mark.parametrize("command", [c for c in commands() if not c.startswith(("make ", "curl "))])
async def test_command_of_the_readme_works(command: str, directory: Path) -> None:
    status, text = await output_of(command, directory)

    assert status == 0, text
    assert text


async def test_curl_of_the_readme_prints_the_page() -> None:
    command = next(command for command in commands() if command.startswith("curl "))
    async with agent() as running:
        status, text = await output_of(command.replace("10940", str(running.port)), ROOT)

    assert status == 0
    assert "inferwatch_build_info" in text


@pytest.mark.real("prometheus")
async def test_prometheus_takes_the_scrape_configuration_of_the_readme(tmp_path: Path) -> None:
    job = blocks("yaml")[0]
    async with agent() as running:
        target = re.search(r'"127\.0\.0\.1:(\d+)"', job)
        assert target
        assert target.group(1) == "10940"
        async with prometheus(tmp_path, f"127.0.0.1:{running.port}", job=job) as server:
            assert await server.wait_for('up{job="inferwatch"} == 1')


def test_readme_has_no_placeholder_left() -> None:
    assert not re.search(r"\b(BENCH|EXCERPT|TODO|TBD)[A-Z]*\b", README)


def test_help_lists_at_most_twelve_targets_and_what_the_readme_uses() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    targets = re.findall(r"^([a-z-]+):.*## ", makefile, re.MULTILINE)

    assert len(targets) <= 12
    assert {"run", "test", "check", "golden", "generate", "bench", "test-engines", "clean", "help"} <= set(targets)
