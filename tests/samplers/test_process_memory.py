import errno
from pathlib import Path

import pytest
from pydantic import ValidationError

from inferwatch.model import Sample
from inferwatch.samplers.process_memory import SAMPLER, ProcessMemoryOptions
from inferwatch.sources.hostfs import HostFs
from inferwatch.spec import Sampler
from inferwatch.targets.model import CgroupPaths
from support import HOSTS, FakeClock, fail_open, make_context, names, tree, value, values
from support_targets import Targets, process, sample_anyway, target

MIB = 1 << 20
STATUS = (
    b"Name:\tx\nVmHWM:\t%d kB\nVmRSS:\t1000 kB\nRssAnon:\t%d kB\nRssFile:\t200 kB\nRssShmem:\t100 kB\nVmSwap:\t50 kB\n"
)
LIMITS = b"Max open files            %d                 4096                 files     \n"


def files(pid: int, anonymous_kib: int = 700, limit: int = 1024, fds: int = 3, score: int = 5) -> dict[str, bytes]:
    base = f"proc/{pid}/"
    return {
        base + "status": STATUS % (1000 + pid, anonymous_kib),
        base + "smaps_rollup": b"Rss: 1000 kB\nPss: 600 kB\nPss_Anon: 500 kB\nPss_File: 60 kB\nPss_Shmem: 40 kB\n"
        b"Private_Clean: 10 kB\nPrivate_Dirty: 400 kB\nAnonHugePages: 0 kB\nSwapPss: 50 kB\nAnonymous: 700 kB\n",
        base + "limits": LIMITS % limit,
        base + "oom_score": b"%d\n" % score,
        base + "oom_score_adj": b"-998\n",
        "proc/meminfo": b"MemTotal: 100000 kB\nMemAvailable: 50000 kB\n",
    } | {f"{base}fd/{number}": b"" for number in range(fds)}


def make(hostfs: HostFs, view: Targets, clock: FakeClock | None = None, **options: float) -> Sampler:
    chosen = ProcessMemoryOptions.model_validate(options)
    return SAMPLER.create(make_context(hostfs, chosen, targets=view, clock=clock or FakeClock()))


async def test_processes_of_a_role_are_added_up(tmp_path: Path) -> None:
    hostfs = tree(tmp_path, files(10) | files(11, 300) | files(12))
    view = Targets(target("svc", process(10, "worker"), process(11, "worker"), process(12, "api_server")))

    samples = await make(hostfs, view).sample()

    assert values(samples, "inferwatch_target_memory_bytes") == {
        ("svc", "api_server", "anonymous"): 700 * 1024,
        ("svc", "api_server", "file"): 200 * 1024,
        ("svc", "api_server", "shared"): 100 * 1024,
        ("svc", "api_server", "swap"): 50 * 1024,
        ("svc", "worker", "anonymous"): 1000 * 1024,
        ("svc", "worker", "file"): 400 * 1024,
        ("svc", "worker", "shared"): 200 * 1024,
        ("svc", "worker", "swap"): 100 * 1024,
    }
    assert value(samples, "inferwatch_target_memory_proportional_bytes", "svc", "worker", "anonymous") == 1000 * 1024
    assert value(samples, "inferwatch_target_memory_private_bytes", "svc", "worker") == 820 * 1024
    assert value(samples, "inferwatch_target_memory_peak_bytes", "svc", "worker") == 1011 * 1024
    assert value(samples, "inferwatch_target_oom_score_adjustment", "svc", "worker") == -998


async def test_open_files_are_those_of_the_process_nearest_to_its_limit(tmp_path: Path) -> None:
    hostfs = tree(tmp_path, files(10, limit=1000, fds=9) | files(11, limit=8, fds=7))

    samples = await make(hostfs, Targets(target("svc", process(10), process(11)))).sample()

    assert value(samples, "inferwatch_target_open_fds", "svc", "server") == 7
    assert value(samples, "inferwatch_target_max_fds", "svc", "server") == 8


async def test_process_that_ended_meanwhile_is_passed_over_in_silence(tmp_path: Path) -> None:
    hostfs = tree(tmp_path, files(10))

    samples = await make(hostfs, Targets(target("svc", process(10), process(11)))).sample()

    assert value(samples, "inferwatch_target_memory_bytes", "svc", "server", "anonymous") == 700 * 1024
    assert value(samples, "inferwatch_target_memory_private_bytes", "svc", "server") == 410 * 1024


@pytest.mark.parametrize("file", ["/status", "/smaps_rollup", "/limits", "/oom_score"])
async def test_process_that_ends_between_open_and_read_is_passed_over_in_silence(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, file: str
) -> None:
    fail_open(monkeypatch, {f"/11{file}": errno.ESRCH})
    hostfs = tree(tmp_path, files(10) | files(11))

    samples = await make(hostfs, Targets(target("svc", process(10), process(11)))).sample()

    assert value(samples, "inferwatch_target_memory_bytes", "svc", "server", "anonymous") >= 700 * 1024


async def test_open_files_score_and_limit_are_read_at_slower_intervals(tmp_path: Path) -> None:
    clock, view = FakeClock(), Targets(target("svc", process(10)))
    sampler = make(tree(tmp_path, files(10)), view, clock)
    seen = []
    for seconds in (0, 14, 2, 45):
        clock.advance(seconds)
        samples = await sampler.sample()
        names_ = ("open_fds", "oom_score", "max_fds", "oom_score_adjustment")
        wanted = [f"inferwatch_target_{name}" for name in names_]
        seen.append([value(samples, name, "svc", "server") for name in wanted])
        tree(tmp_path, files(10, limit=99, fds=7, score=8) | {"proc/10/oom_score_adj": b"5\n"})

    assert seen == [[3, 5, 1024, -998], [3, 5, 1024, -998], [7, 8, 1024, -998], [7, 8, 99, 5]]


async def test_denied_rollup_leaves_what_status_tells(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    fail_open(monkeypatch, {"smaps_rollup": errno.EACCES})
    clock = FakeClock()
    sampler = make(tree(tmp_path, files(10)), Targets(target("svc", process(10))), clock)

    for _ in range(2):  # the same problem also while no rollup is due: it would come and go in the log otherwise
        samples, problems = await sample_anyway(sampler)
        clock.advance(5)

        assert list(problems) == ["permission_denied"]
        assert value(samples, "inferwatch_target_memory_bytes", "svc", "server", "anonymous") == 700 * 1024
        assert "inferwatch_target_memory_proportional_bytes" not in names(samples)


async def test_rollup_is_read_at_its_own_interval(tmp_path: Path) -> None:
    clock, view = FakeClock(), Targets(target("svc", process(10)))
    sampler = make(tree(tmp_path, files(10)), view, clock, smaps_interval_seconds=60)
    seen = []
    for seconds in (0, 59, 2):
        clock.advance(seconds)
        samples = await sampler.sample()
        seen.append(value(samples, "inferwatch_target_memory_private_bytes", "svc", "server"))
        tree(tmp_path, {"proc/10/smaps_rollup": b"Rss: 9 kB\nPrivate_Clean: 1 kB\nPrivate_Dirty: 1 kB\n"})

    assert seen == [410 * 1024, 410 * 1024, 2048]


async def test_kernel_before_4_5_is_told_by_statm(tmp_path: Path) -> None:
    old = {"proc/10/status": b"Name:\tx\nVmRSS:\t400 kB\n", "proc/10/statm": b"200 100 40 1 0 50 0\n"}

    samples = await make(tree(tmp_path, files(10) | old), Targets(target("svc", process(10)))).sample()

    page = 4096
    assert value(samples, "inferwatch_target_memory_bytes", "svc", "server", "anonymous") == 60 * page
    assert value(samples, "inferwatch_target_memory_bytes", "svc", "server", "file") == 40 * page
    assert ("svc", "server", "shared") not in values(samples, "inferwatch_target_memory_bytes")


async def test_target_that_is_gone_has_no_series(tmp_path: Path) -> None:
    view = Targets(target("svc", process(10)))
    sampler = make(tree(tmp_path, files(10)), view)
    await sampler.sample()
    view.set()

    assert list(await sampler.sample()) == []


async def leaking(sampler: Sampler, root: Path, clock: FakeClock, pids: dict[int, float], seconds: int) -> list[Sample]:
    """Let processes leak bytes a second for a while, sampled every five seconds; return the last samples."""
    samples: list[Sample] = []
    for second in range(0, seconds, 5):
        for pid, rate in pids.items():
            tree(root, {f"proc/{pid}/status": STATUS % (1000, 100_000 + int(rate * second / 1024))})
        samples = list(await sampler.sample())
        clock.advance(5)
    return samples


async def test_leak_is_told_with_the_time_until_the_host_is_full(tmp_path: Path) -> None:
    clock = FakeClock()
    view = Targets(target("svc", process(10, "worker"), process(11, "worker"), process(12, "api_server")))
    sampler = make(tree(tmp_path, files(10) | files(11) | files(12)), view, clock)

    samples = await leaking(sampler, tmp_path, clock, {10: 20_480, 11: 10_240, 12: 0}, 900)

    assert values(samples, "inferwatch_target_memory_growth_bytes_per_second") == {
        ("svc", "worker"): pytest.approx(30_720, rel=0.1)
    }
    assert value(samples, "inferwatch_target_memory_headroom_bytes", "svc") == 50_000 * 1024
    assert value(samples, "inferwatch_target_memory_exhaustion_seconds", "svc", "worker") == pytest.approx(
        50_000 * 1024 / 30_720, rel=0.1
    )


async def test_memory_that_only_moves_to_swap_does_not_grow(tmp_path: Path) -> None:
    clock = FakeClock()
    hostfs = tree(tmp_path, files(10))
    sampler = make(hostfs, Targets(target("svc", process(10))), clock)
    for moved in range(0, 90_000, 500):
        lines = b"Name:\tx\nVmRSS:\t%d kB\nRssAnon:\t%d kB\nVmSwap:\t%d kB\n" % (
            100_000 - moved, 100_000 - moved, moved,
        )  # fmt: skip
        tree(tmp_path, {"proc/10/status": lines})
        samples = await sampler.sample()
        clock.advance(5)

    assert value(samples, "inferwatch_target_memory_bytes", "svc", "server", "swap") == 89_500 * 1024
    assert value(samples, "inferwatch_target_memory_bytes", "svc", "server", "anonymous") == 10_500 * 1024
    assert "inferwatch_target_memory_growth_bytes_per_second" not in names(samples)


async def test_flat_or_shrinking_memory_never_runs_out(tmp_path: Path) -> None:
    clock = FakeClock()
    sampler = make(tree(tmp_path, files(10)), Targets(target("svc", process(10))), clock)

    samples = await leaking(sampler, tmp_path, clock, {10: -10_240}, 900)

    assert value(samples, "inferwatch_target_memory_growth_bytes_per_second", "svc", "server") < 0
    assert "inferwatch_target_memory_exhaustion_seconds" not in names(samples)


@pytest.mark.parametrize(
    ("recorded", "paths", "expected"),
    [
        ("cgroup-v1", CgroupPaths(None, {"memory": "/docker/" + "b" * 64}), 4_000_000_000 - 3_400_000_000),
        (
            "cgroup-v2",
            CgroupPaths(
                "/kubepods.slice/kubepods-burstable.slice/"
                "kubepods-burstable-pod11111111_2222_3333_4444_555555555555.slice/cri-containerd-" + "a" * 64 + ".scope"
            ),
            6_000_000_000 - 5_400_000_000,
        ),
    ],
)
async def test_nearest_limit_can_be_an_ancestors(
    tmp_path: Path, recorded: str, paths: CgroupPaths, expected: int
) -> None:
    own = tree(tmp_path, files(10))
    (tmp_path / "proc" / "1").mkdir()
    for name in ("1/mountinfo", "meminfo"):
        (tmp_path / "proc" / name).write_bytes((HOSTS / recorded / "proc" / name).read_bytes())
    hostfs = HostFs(procfs=own.procfs, sysfs=HOSTS / recorded / "sys", rootfs=tmp_path)

    samples = await make(hostfs, Targets(target("svc", process(10), cgroup=paths))).sample()

    assert value(samples, "inferwatch_target_memory_headroom_bytes", "svc") == expected


def test_window_that_never_fills_is_refused() -> None:
    with pytest.raises(ValidationError, match="growth_minimum_seconds is above growth_window_seconds"):
        ProcessMemoryOptions(growth_window_seconds=60, growth_minimum_seconds=61)
