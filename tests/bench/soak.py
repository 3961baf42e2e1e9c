"""Ten hours' worth of samples in some minutes: does the agent's memory stay flat?

    python -m bench.soak [ROUNDS]

Every sampler runs once a round while a clock that is told what time it is goes on by the interval.
"""

import asyncio
import json
import sys
from typing import Any

import psutil

from inferwatch.agent import Agent
from inferwatch.configfile import load
from inferwatch.exposition import Format
from inferwatch.runtime.discovery import find_samplers
from support import FakeClock

ROUNDS = 7200  # ten hours at 5 s
INTERVAL = 5.0
LOOKS = 10


async def soak(rounds: int = ROUNDS) -> dict[str, Any]:
    """Run the rounds and return the resident memory at ten moments."""
    discovery = find_samplers()
    loaded = load(None, {name: spec.options for name, spec in discovery.specs.items()}, {})
    clock = FakeClock()
    agent = Agent(loaded, discovery, lambda: loaded, clock)
    units = agent.units(loaded)
    process = psutil.Process()
    resident = []
    for number in range(rounds):
        for unit in units:
            await agent.scheduler.run_once(unit)
        for form in Format:
            agent.store.page(form, gzip=True)
        clock.advance(INTERVAL)
        if number % (rounds // LOOKS) == rounds // LOOKS - 1:
            resident.append(process.memory_info().rss)
    for unit in units:
        await unit.close()
    await agent.close()
    return {"rounds": rounds, "rss_bytes": resident, "growth_after_a_tenth_bytes": resident[-1] - resident[0]}


if __name__ == "__main__":
    report = asyncio.run(soak(int(sys.argv[1]) if len(sys.argv) > 1 else ROUNDS))
    sys.stdout.write(json.dumps(report) + "\n")
