"""The sampler on real v1 control groups of this machine."""

import asyncio

import pytest

from inferwatch.samplers.cgroup import SAMPLER
from inferwatch.spec import Sampler
from support import LIVE, make_context, value
from support_targets import Targets, live_cgroup, live_process, python, target, tell, v1_group

MIB = 1 << 20
P = "inferwatch_target_cgroup_"


def make(view: Targets) -> Sampler:
    return SAMPLER.create(make_context(LIVE, targets=view))


GROW = """
import os, sys
print("ready", flush=True)
kept = []
for line in sys.stdin:
    kept.append(os.urandom(int(line)))
    print("done", flush=True)
"""
BURN = """
import time
print("ready", flush=True)
while True:
    pass
"""


@pytest.mark.real("cgroup")
async def test_real_memory_group_shows_use_and_the_tightest_limit() -> None:
    with (
        v1_group("memory", "inferwatch-test-limit", memory__limit_in_bytes=64 * MIB) as parent,
        v1_group("memory", "inferwatch-test-limit/inner") as inner,
    ):
        async with python(GROW, inner) as running:
            live = target("svc", live_process(running.pid), cgroup=live_cgroup(running.pid))
            sampler = make(Targets(live))
            before = value(await sampler.sample(), P + "memory_usage_bytes", "svc")
            await tell(running, str(16 * MIB))
            samples = await sampler.sample()
            kernel = int((inner / "memory.usage_in_bytes").read_text())

    assert parent.name == "inferwatch-test-limit"
    assert value(samples, P + "memory_limit_bytes", "svc") == 64 * MIB
    assert value(samples, P + "memory_usage_bytes", "svc") == pytest.approx(kernel, rel=0.05)
    assert value(samples, P + "memory_usage_bytes", "svc") - before == pytest.approx(16 * MIB, rel=0.1)


@pytest.mark.real("cgroup")
async def test_real_quota_shows_throttling() -> None:
    with v1_group("cpu", "inferwatch-test-quota", cpu__cfs_period_us=20_000, cpu__cfs_quota_us=5_000) as group:
        async with python(BURN, group) as running:
            sampler = make(Targets(target("svc", live_process(running.pid), cgroup=live_cgroup(running.pid))))
            first = await sampler.sample()
            for _ in range(200):
                second = await sampler.sample()
                if value(second, P + "cpu_periods_total", "svc") - value(first, P + "cpu_periods_total", "svc") >= 10:
                    break
                await asyncio.sleep(0.02)

    periods = value(second, P + "cpu_periods_total", "svc") - value(first, P + "cpu_periods_total", "svc")
    throttled = value(second, P + "cpu_throttled_periods_total", "svc") - value(
        first, P + "cpu_throttled_periods_total", "svc"
    )
    assert value(second, P + "cpu_quota_cores", "svc") == 0.25
    assert periods >= 10
    assert throttled / periods >= 0.8
    assert value(second, P + "cpu_throttled_seconds_total", "svc") > 0
