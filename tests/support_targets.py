"""Targets for the tests of samplers: tables made by hand, real processes, and real control groups."""

import asyncio
import contextlib
import os
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from inferwatch.model import Sample
from inferwatch.spec import PartialData, Sampler
from inferwatch.targets.model import CgroupPaths, ProcessId, Target, TargetProcess, TargetTable

V1 = Path("/sys/fs/cgroup")


class Targets:
    """A view whose table the test changes."""

    def __init__(self, *targets: Target) -> None:
        self.table = TargetTable(targets)

    def current(self) -> TargetTable:
        return self.table

    def set(self, *targets: Target) -> None:
        self.table = TargetTable(targets, self.table.generation + 1)


def process(pid: int, role: str = "server", comm: str = "python3", start_ticks: int = 1000) -> TargetProcess:
    return TargetProcess(ProcessId(pid, start_ticks), 1, comm, role)


def target(name: str, *processes: TargetProcess, cgroup: CgroupPaths | None = None) -> Target:
    return Target(name, "custom", "", processes, cgroup or CgroupPaths())


def live_process(pid: int, role: str = "server") -> TargetProcess:
    """Return a running process as the tracker would show it."""
    comm, _, rest = Path(f"/proc/{pid}/stat").read_text().partition("(")[2].rpartition(")")
    return process(pid, role, comm, int(rest.split()[19]))


def live_cgroup(pid: int) -> CgroupPaths:
    """Return where a running process stands."""
    lines = [line.split(":", 2) for line in Path(f"/proc/{pid}/cgroup").read_text().splitlines()]
    unified = next((path for number, _, path in lines if number == "0"), None)
    return CgroupPaths(
        unified, {name: path for number, names, path in lines if number != "0" for name in names.split(",")}
    )


async def sample_anyway(sampler: Sampler) -> tuple[list[Sample], dict[str, str]]:
    """Return the samples and the problems of a run."""
    try:
        return list(await sampler.sample()), {}
    except PartialData as error:
        return list(error.samples), dict(error.problems)


@contextlib.asynccontextmanager
async def python(code: str, *groups: Path) -> AsyncIterator[Process]:
    """Run a Python program inside control groups, wait for its first line of output, and end it with the test."""
    join = "".join(f"open({str(group / 'cgroup.procs')!r}, 'w').write('0')\n" for group in groups)
    running = await asyncio.create_subprocess_exec(
        sys.executable, "-I", "-S", "-c", join + code, stdin=PIPE, stdout=PIPE, stderr=PIPE
    )
    try:
        assert running.stdout is not None
        async with asyncio.timeout(20):
            line = await running.stdout.readline()
        if not line:
            assert running.stderr is not None
            raise AssertionError((await running.stderr.read()).decode())
        yield running
    finally:
        with contextlib.suppress(ProcessLookupError):
            running.kill()
        await running.communicate()


async def tell(running: Process, line: str) -> str:
    """Send a line to a program and return its answer."""
    assert running.stdin is not None
    assert running.stdout is not None
    running.stdin.write(f"{line}\n".encode())
    await running.stdin.drain()
    async with asyncio.timeout(20):
        return (await running.stdout.readline()).decode().strip()


@contextlib.contextmanager
def v1_group(controller: str, name: str, **settings: int) -> Iterator[Path]:
    """Make a v1 control group and remove it with the test; `memory__limit_in_bytes=1` sets that file."""
    group = V1 / controller / name
    if not os.access(V1 / controller / "cgroup.procs", os.W_OK):
        pytest.skip(f"needs root and the v1 controller {controller}")
    group.mkdir(parents=True)
    try:
        for file, number in settings.items():
            (group / file.replace("__", ".")).write_text(str(number))
        yield group
    finally:
        for directory in sorted((path for path in group.rglob("*") if path.is_dir()), reverse=True):
            remove_group(directory)
        remove_group(group)


def remove_group(group: Path) -> None:
    """Move what is left in a group to its parent and remove it."""
    for pid in (group / "cgroup.procs").read_text().split():
        with contextlib.suppress(ProcessLookupError):
            (group.parent / "cgroup.procs").write_text(pid)
    group.rmdir()
