"""Real processes that look like serving engines, and the targets that they are."""

import asyncio
import contextlib
import json
import os
import signal
import sys
from asyncio.subprocess import DEVNULL, PIPE, Process
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

from inferwatch.targets.model import Target
from inferwatch.targets.tracker import TargetTracker
from support import LIVE, FakeClock

PYTHON = os.path.realpath(sys.executable)  # not the virtual environment's link, which needs its name
# A server with a page of vLLM's; it may fork, and changes its title when told to.
ENGINE = r"""
import ctypes, http.server, os, sys
host, port, fork = sys.argv[-3], int(sys.argv[-2]), sys.argv[-1] == "fork"
def title(text):
    start, end = map(int, open("/proc/self/stat").read().rpartition(") ")[2].split()[45:47])
    ctypes.memmove(start, text.encode()[: end - start - 1].ljust(end - start, b"\0"), end - start)
if fork and os.fork() == 0:
    ctypes.CDLL(None).prctl(15, b"VLLM::EngineCore", 0, 0, 0)  # PR_SET_NAME
    title("VLLM::EngineCore")
    sys.stdin.readline()
    os._exit(0)
class Page(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        body = b'vllm:num_requests_running{model_name="m"} 1\n'
        if self.path != "/metrics":
            body = b'{"data": [{"id": "served"}]}'
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
    def log_message(self, *args):
        pass
server = http.server.HTTPServer((host, port), Page)
print("ready", flush=True)
import threading
threading.Thread(target=server.serve_forever, daemon=True).start()
for line in sys.stdin:
    title(line.strip())
    print("titled", flush=True)
"""


class Running:
    """A process of a test."""

    def __init__(self, process: Process) -> None:
        self.process = process
        self.pid = process.pid

    async def wait_for(self, word: str) -> None:
        assert self.process.stdout is not None
        async with asyncio.timeout(20):
            assert (await self.process.stdout.readline()).decode().strip() == word

    async def tell(self, line: str) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(f"{line}\n".encode())
        await self.process.stdin.drain()


@contextlib.asynccontextmanager
async def running(*command: str) -> AsyncIterator[Running]:
    """Run a process in a group of its own, all of which is killed at the end."""
    process = await asyncio.create_subprocess_exec(
        *command, stdin=PIPE, stdout=PIPE, stderr=DEVNULL, start_new_session=True
    )
    try:
        yield Running(process)
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        await process.communicate()


@contextlib.asynccontextmanager
async def engine(
    directory: Path,
    *,
    port: int,
    name: str = "vllm",
    host: str = "127.0.0.1",
    fork: bool = False,
    before: tuple[str, ...] = (),
) -> AsyncIterator[Running]:
    """Run `vllm serve m/x --port ...`, a script that Python runs, or with another name a Python of that name."""
    script = directory / "vllm"
    script.write_text(ENGINE, encoding="utf-8")
    arguments = [str(script), "serve", "m/x", "--port", str(port), host, str(port), "fork" if fork else "alone"]
    renamed = ["bash", "-c", f'exec -a {name} {PYTHON} -S "$@"', "bash"]
    async with running(*before, *([PYTHON, "-S"] if name == "vllm" else renamed), *arguments) as process:
        await process.wait_for("ready")
        yield process


def tracker() -> TargetTracker:
    return TargetTracker(LIVE, (), FakeClock())


def of(found: TargetTracker, pid: int) -> Target | None:
    """Return the target of a process, now."""
    return next((t for t in found.refresh().targets if pid in {p.id.pid for p in t.processes}), None)


def roles(target: Target | None) -> list[str]:
    return [process.role for process in target.processes] if target is not None else []


async def eventually(found: TargetTracker, pid: int, expected: list[str]) -> Target:
    """Wait until the target of a process has these roles."""
    async with asyncio.timeout(20):
        while roles(target := of(found, pid)) != expected:
            await asyncio.sleep(0.02)
    assert target is not None
    return target


NOBODY = "65534"
AS_NOBODY = ("setpriv", "--reuid", NOBODY, "--regid", NOBODY, "--clear-groups")


def mounted(options: str) -> tuple[str, ...]:
    """Return a command in front of another one that then sees a /proc mounted with these options."""
    return ("unshare", "--mount", "sh", "-c", f'mount -t proc -o {options} proc /proc && exec "$@"', "sh")


async def told_by(code: str, *arguments: str, before: tuple[str, ...] = ()) -> Any:  # noqa: ANN401 - of JSON
    """Run a program of this package, behind the commands `before`, and return the JSON that it prints."""
    paths = os.pathsep.join(path for path in sys.path if path)
    process = await asyncio.create_subprocess_exec(
        *before, sys.executable, "-c", code, *arguments, stdout=PIPE, env={**os.environ, "PYTHONPATH": paths}
    )
    out, _ = await process.communicate()
    assert process.returncode == 0
    return json.loads(out)
