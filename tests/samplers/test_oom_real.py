"""A real OOM kill in a small control group of this machine."""

import asyncio
from pathlib import Path

import psutil
import pytest

from inferwatch.errors import SourceError
from inferwatch.model import Event
from inferwatch.samplers.oom import OomOptions, OomSampler
from inferwatch.sources.kmsg import KmsgReader, open_kmsg
from support import LIVE, make_context, values
from support_targets import Targets, live_cgroup, live_process, python, sample_anyway, target, v1_group

TARGET_KILLS = "inferwatch_target_oom_kills_total"


EAT = """
import sys
print("ready", flush=True)
sys.stdin.readline()
bytearray(200 << 20)
"""


@pytest.mark.real("cgroup")
@pytest.mark.parametrize("with_log", [True, False], ids=["kmsg", "counters"])
async def test_real_kill_in_a_small_group_is_seen_attributed_and_counted_once(with_log: bool) -> None:  # noqa: FBT001 - a parameter of the test
    def refuse(_path: Path) -> KmsgReader:
        raise SourceError("no", reason="permission_denied")

    name = f"inferwatch-test-oom-{'log' if with_log else 'count'}"
    events: list[Event] = []
    targets = Targets()
    context = make_context(LIVE, OomOptions(), targets=targets, emit=events.append)
    sampler = OomSampler(context, open_kmsg if with_log else refuse)
    with v1_group("memory", name, memory__limit_in_bytes=32 << 20) as group:
        async with python(EAT, group) as running:
            comm = psutil.Process(running.pid).name()
            targets.set(target("svc", live_process(running.pid), cgroup=live_cgroup(running.pid)))
            before, _ = await sample_anyway(sampler)
            assert running.stdin is not None
            running.stdin.write(b"go\n")
            assert await asyncio.wait_for(running.wait(), 20) == -9
            targets.set()
            for _ in range(4):
                samples, _ = await sample_anyway(sampler)
    await sampler.close()

    mine = [event for event in events if event.target == "svc"]
    assert values(before, TARGET_KILLS) == {("svc", "process"): 0, ("svc", "cgroup"): 0}
    assert values(samples, TARGET_KILLS) == {("svc", "process"): int(with_log), ("svc", "cgroup"): int(not with_log)}
    assert len(mine) == 1
    if with_log:
        facts = mine[0].attributes
        assert (facts["process"], facts["cgroup"], facts["constraint"]) == (comm, f"/{name}", "cgroup")
        # 32 MiB of the group, and what it had before it joined
        assert 24 << 20 < int(facts["anonymous_bytes"]) <= 40 << 20
        assert 0 < int(facts["oom_score"]) <= 2000
