"""The sampler on a real process of this machine."""

import os

import psutil
import pytest

from inferwatch.samplers.numa import SAMPLER, NumaOptions
from support import LIVE, FakeClock, make_context, value, values
from support_targets import Targets, live_process, python, target

HELPER = """
import os
kept = os.urandom(32 << 20)
print("ready", flush=True)
while True:
    pass
"""


async def test_real_process_is_on_the_nodes_of_this_machine() -> None:
    clock = FakeClock()
    async with python(HELPER) as running:
        sampler = SAMPLER.create(
            make_context(
                LIVE,
                NumaOptions(threads_interval_seconds=5),
                targets=Targets(target("svc", live_process(running.pid))),
                clock=clock,
            )
        )
        await sampler.sample()
        spent = psutil.Process(running.pid).cpu_times().user
        while psutil.Process(running.pid).cpu_times().user < spent + 0.2:
            await sampler.sample()
        clock.advance(5)
        samples = await sampler.sample()
        resident = psutil.Process(running.pid).memory_info().rss

    memory = values(samples, "inferwatch_target_numa_memory_bytes")
    assert sum(memory.values()) == pytest.approx(resident, rel=0.02)
    assert sum(values(samples, "inferwatch_target_numa_cpu_seconds_total").values()) >= 0.1
    assert sum(values(samples, "inferwatch_target_numa_allowed_cpus").values()) == len(os.sched_getaffinity(0))
    if len({node for _, node in memory}) == 1:
        assert value(samples, "inferwatch_target_numa_remote_ratio", "svc") == 0
        assert value(samples, "inferwatch_target_numa_aligned", "svc") == 1
