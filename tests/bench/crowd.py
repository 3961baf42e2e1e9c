"""A crowded host: many idle processes and a few targets, and what the whole agent costs there."""

import asyncio
import contextlib
import shutil
import sys
import tempfile
from asyncio.subprocess import DEVNULL, PIPE
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

from bench.measure import costs
from bench.tasks import SLEEPERS
from support_process import agent

PROCESSES = 2000
TARGETS = 5
INTERVAL = 5.0
SETTLE_SECONDS = 75.0  # young processes are read more often for a minute


@contextlib.asynccontextmanager
async def crowd(directory: Path) -> AsyncIterator[None]:
    """Run idle processes, and targets that are recognised by the name of their program."""
    server = directory / "llama-server"
    shutil.copy("/bin/sleep", server)
    idle = await asyncio.create_subprocess_exec(
        sys.executable, "-c", SLEEPERS, "1", str(PROCESSES), stdin=PIPE, stdout=DEVNULL
    )
    targets = [await asyncio.create_subprocess_exec(str(server), "100000") for _ in range(TARGETS)]
    try:
        await asyncio.sleep(SETTLE_SECONDS)
        yield
    finally:
        for process in (idle, *targets):
            process.kill()
            await process.wait()


async def crowded(seconds: float) -> dict[str, Any]:
    """Return the cost of the whole agent at its default intervals."""
    with tempfile.TemporaryDirectory() as name:
        async with crowd(Path(name)), agent() as running:
            await asyncio.sleep(2 * INTERVAL)
            found = (await running.page()).count("inferwatch_target_info{")
            (cost,) = await costs([running.process.pid], seconds, [f"{running.url}/metrics"], INTERVAL)
    return {
        "processes": PROCESSES,
        "targets": found,
        "cpu_ratio": cost.cpu_ratio,
        "rss_bytes": cost.rss_bytes,
    }
