"""The sampler on a real process, compared with psutil and with what the process did."""

import math

import psutil
import pytest

from inferwatch.samplers.process_memory import SAMPLER, ProcessMemoryOptions
from inferwatch.sources.hostfs import HostFs
from inferwatch.spec import Sampler
from support import LIVE, FakeClock, make_context, value, values
from support_targets import Targets, live_process, python, target, tell

MIB = 1 << 20


def make(hostfs: HostFs, view: Targets, clock: FakeClock | None = None) -> Sampler:
    return SAMPLER.create(make_context(hostfs, ProcessMemoryOptions(), targets=view, clock=clock or FakeClock()))


HELPER = """
import mmap, os, sys
shared = mmap.mmap(-1, 8 << 20); shared.write(bytes(8 << 20))
files = [os.dup(0) for _ in range(20)]
kept = [bytearray(16 << 20)]
print("ready", flush=True)
for line in sys.stdin:
    kept.append(os.urandom(int(line)))
    print("done", flush=True)
"""


async def test_real_process_agrees_with_psutil() -> None:
    async with python(HELPER) as running:
        view = Targets(target("svc", live_process(running.pid)))
        samples = await make(LIVE, view).sample()
        theirs = psutil.Process(running.pid)
        memory, fds, limit = theirs.memory_full_info(), theirs.num_fds(), theirs.rlimit(psutil.RLIMIT_NOFILE)[0]

    kinds = values(samples, "inferwatch_target_memory_bytes")
    assert sum(kinds["svc", "server", kind] for kind in ("anonymous", "file", "shared")) == pytest.approx(
        memory.rss, rel=0.02
    )
    assert kinds["svc", "server", "shared"] == pytest.approx(8 * MIB, rel=0.1)
    assert kinds["svc", "server", "swap"] == memory.swap
    shares = values(samples, "inferwatch_target_memory_proportional_bytes")
    assert sum(shares.values()) == pytest.approx(memory.pss, rel=0.02)
    assert value(samples, "inferwatch_target_memory_private_bytes", "svc", "server") == pytest.approx(
        memory.uss, rel=0.02
    )
    assert value(samples, "inferwatch_target_open_fds", "svc", "server") == fds
    assert value(samples, "inferwatch_target_max_fds", "svc", "server") == limit
    assert 0 <= value(samples, "inferwatch_target_oom_score", "svc", "server") <= 2000


async def test_real_leak_of_a_known_rate_is_told_within_a_tenth() -> None:
    # The process is real, its memory is the kernel's figure; only the time between two pieces is the fake clock's.
    clock = FakeClock()
    async with python(HELPER) as running:
        sampler = make(LIVE, Targets(target("svc", live_process(running.pid))), clock)
        for _ in range(130):
            await tell(running, str(MIB // 2))
            samples = await sampler.sample()
            clock.advance(5)

    rate = MIB / 2 / 5
    growth = value(samples, "inferwatch_target_memory_growth_bytes_per_second", "svc", "server")
    left = value(samples, "inferwatch_target_memory_exhaustion_seconds", "svc", "server")
    assert growth == pytest.approx(rate, rel=0.1)
    assert math.isfinite(left)
    assert left > 0
