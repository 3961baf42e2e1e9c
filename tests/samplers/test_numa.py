import errno
from itertools import pairwise
from pathlib import Path

import pytest

from inferwatch.model import Sample
from inferwatch.samplers.numa import SAMPLER, NumaOptions
from inferwatch.sources.hostfs import HostFs
from inferwatch.spec import Sampler
from support import HOSTS, FakeClock, fail_open, host, make_context, names, tree, value, values
from support_targets import Targets, process, sample_anyway, target

MIB = 1 << 20
NS = 1_000_000_000
SVC = Targets(target("svc", process(500)))
STAT = b"%d (x) S 1 1 1 0 -1 4194560 0 0 0 0 %d 0 0 0 20 0 1 0 1000 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 %d 0 0\n"


def make(hostfs: HostFs, view: Targets = SVC, clock: FakeClock | None = None, **options: float) -> Sampler:
    chosen = NumaOptions.model_validate({"threads_interval_seconds": 5, **options})
    return SAMPLER.create(make_context(hostfs, chosen, targets=view, clock=clock or FakeClock()))


async def of(recorded: str, view: Targets = SVC) -> list[Sample]:
    return list(await make(host(recorded), view).sample())


def copy(recorded: str, root: Path) -> HostFs:
    """Copy a tree, for tests that change it."""
    source = HOSTS / recorded
    return tree(
        root, {str(path.relative_to(source)): path.read_bytes() for path in source.rglob("*") if path.is_file()}
    )


async def test_two_sockets() -> None:
    samples = await of("numa-two-socket", Targets(target("pinned", process(500)), target("spread", process(600))))

    assert values(samples, "inferwatch_numa_memory_total_bytes") == {("0",): 1_024_000_000, ("1",): 2_048_000_000}
    assert value(samples, "inferwatch_numa_memory_free_bytes", "1") == 1_500_000 * 1024
    assert value(samples, "inferwatch_numa_memory_used_bytes", "0", "file") == 150_000 * 1024
    assert values(samples, "inferwatch_numa_cpus") == {("0",): 4, ("1",): 4}
    assert value(samples, "inferwatch_numa_allocations_total", "0", "miss") == 20
    assert value(samples, "inferwatch_numa_allocations_total", "1", "other") == 40
    assert value(samples, "inferwatch_numa_balancing_enabled") == 1
    assert value(samples, "inferwatch_numa_migrated_pages_total") == 60
    assert values(samples, "inferwatch_numa_hint_faults_total") == {("local",): 400, ("remote",): 100}
    assert values(samples, "inferwatch_transparent_huge_pages_info") == {("madvise", "madvise"): 1}
    near, far = 800 * 4096, 200 * 4096 + 2 * MIB
    assert values(samples, "inferwatch_target_numa_memory_bytes") == {
        ("pinned", "0"): near,
        ("pinned", "1"): far,
        ("spread", "0"): 500 * 4096,
        ("spread", "1"): 500 * 4096,
    }
    assert value(samples, "inferwatch_target_numa_remote_ratio", "pinned") == pytest.approx(far / (near + far))
    assert values(samples, "inferwatch_target_numa_allowed_cpus") == {
        ("pinned", "0"): 4,
        ("spread", "0"): 4,
        ("spread", "1"): 4,
    }
    assert values(samples, "inferwatch_target_numa_aligned") == {("pinned",): 1, ("spread",): 0}
    assert value(samples, "inferwatch_target_numa_allowed_memory_nodes", "pinned") == 2


async def test_sub_numa_clusters_of_one_socket_are_two_nodes() -> None:
    samples = await of("numa-sub-numa")

    assert values(samples, "inferwatch_numa_cpus") == {(str(node),): 4 for node in range(4)}
    assert values(samples, "inferwatch_target_numa_allowed_cpus") == {("svc", "0"): 4, ("svc", "1"): 4}
    assert value(samples, "inferwatch_target_numa_remote_ratio", "svc") == pytest.approx(0.20)
    assert value(samples, "inferwatch_target_numa_aligned", "svc") == 0


async def test_memory_of_a_node_without_cpus_is_remote() -> None:
    samples = await of("numa-memory-only")

    assert values(samples, "inferwatch_numa_cpus") == {("0",): 2, ("1",): 2, ("2",): 0}
    assert value(samples, "inferwatch_target_numa_remote_ratio", "svc") == 0.25
    assert value(samples, "inferwatch_target_numa_aligned", "svc") == 1
    assert ("svc", "2") not in values(samples, "inferwatch_target_numa_allowed_cpus")


async def test_holes_in_the_numbers() -> None:
    samples = await of("numa-holes")

    assert set(values(samples, "inferwatch_numa_memory_total_bytes")) == {("0",), ("8",), ("252",)}
    assert values(samples, "inferwatch_target_numa_memory_bytes") == {
        ("svc", "0"): 0,
        ("svc", "8"): 100 * 65536,
        ("svc", "252"): 0,
    }
    assert value(samples, "inferwatch_target_numa_remote_ratio", "svc") == 0
    assert value(samples, "inferwatch_target_numa_aligned", "svc") == 1


async def test_cpus_of_a_node_without_memory_have_all_of_it_remote() -> None:
    samples = await of("numa-no-memory")

    assert value(samples, "inferwatch_numa_memory_total_bytes", "1") == 0
    assert value(samples, "inferwatch_target_numa_remote_ratio", "svc") == 1
    assert value(samples, "inferwatch_target_numa_aligned", "svc") == 0


async def test_process_that_may_run_everywhere_is_judged_by_where_it_ran(tmp_path: Path) -> None:
    hostfs, clock = copy("numa-two-socket", tmp_path), FakeClock()
    sampler = make(hostfs, Targets(target("svc", process(600))), clock)
    first = await sampler.sample()
    tree(tmp_path, {"proc/600/task/600/stat": STAT % (600, 400, 5)})  # three seconds on node 1
    clock.advance(5)
    second = await sampler.sample()
    tree(tmp_path, {"proc/600/task/600/stat": STAT % (600, 500, 0)})  # then one second on node 0
    clock.advance(5)
    third = await sampler.sample()

    assert (
        value(first, "inferwatch_target_numa_remote_ratio", "svc") == 0
    )  # it may run everywhere, and nothing is known
    assert "inferwatch_target_numa_remote_access_ratio" not in names(first)
    assert value(second, "inferwatch_target_numa_remote_ratio", "svc") == 0.5
    assert value(second, "inferwatch_target_numa_remote_access_ratio", "svc") == 0.5
    assert values(second, "inferwatch_target_numa_cpu_seconds_total") == {("svc", "0"): 0, ("svc", "1"): 3}
    assert values(third, "inferwatch_target_numa_cpu_seconds_total") == {("svc", "0"): 1, ("svc", "1"): 3}


async def test_one_node_has_all_memory_without_reading_the_page_tables(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    hostfs = copy("numa-two-socket", tmp_path)
    tree(tmp_path, {"sys/devices/system/node/online": b"0\n"})
    fail_open(monkeypatch, {"numa_maps": errno.EACCES})

    samples = await make(hostfs).sample()

    assert values(samples, "inferwatch_target_numa_memory_bytes") == {("svc", "0"): 400_000 * 1024}
    assert value(samples, "inferwatch_target_numa_remote_ratio", "svc") == 0


async def test_kernel_without_numa_has_one_node(tmp_path: Path) -> None:
    hostfs = tree(tmp_path, {"proc/500/status": (HOSTS / "process-6.18/proc/4242/status").read_bytes()})

    samples = await make(hostfs).sample()

    assert value(samples, "inferwatch_target_numa_remote_ratio", "svc") == 0
    assert value(samples, "inferwatch_target_numa_aligned", "svc") == 1
    assert "inferwatch_numa_memory_total_bytes" not in names(samples)


@pytest.mark.parametrize(
    ("fault", "options", "reason"),
    [
        (errno.EACCES, {}, "permission_denied"),
        (None, {"numa_maps_bytes": 4096}, "too_large"),
    ],
)
async def test_placement_that_can_not_be_read_is_absent_and_told(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, fault: int | None, options: dict[str, float], reason: str
) -> None:
    hostfs = copy("numa-two-socket", tmp_path)
    tree(tmp_path, {"proc/500/numa_maps": b"7f0000000000 default anon=1 N0=1 kernelpagesize_kB=4\n" * 200})
    if fault is not None:
        fail_open(monkeypatch, {"numa_maps": fault})
    clock = FakeClock()
    sampler = make(hostfs, SVC, clock, **options)
    for _ in range(2):  # also while none is due
        samples, problems = await sample_anyway(sampler)
        clock.advance(5)

        assert list(problems) == [reason]
        assert "inferwatch_target_numa_memory_bytes" not in names(samples)
        assert value(samples, "inferwatch_target_numa_aligned", "svc") == 1


async def test_page_tables_are_read_at_their_own_interval(tmp_path: Path) -> None:
    hostfs, clock = copy("numa-two-socket", tmp_path), FakeClock(monotonic_ns=NS * 10_000)
    sampler = make(hostfs, clock=clock, numa_maps_interval_seconds=300)
    before = await sampler.sample()
    tree(tmp_path, {"proc/500/numa_maps": b"7f0000000000 default anon=1 N0=1 kernelpagesize_kB=4\n"})
    clock.advance(299)
    same = await sampler.sample()
    clock.advance(2)
    after = await sampler.sample()
    sizes = [value(samples, "inferwatch_target_numa_memory_bytes", "svc", "0") for samples in (before, same, after)]

    assert sizes == [800 * 4096, 800 * 4096, 4096]


async def test_young_process_has_its_page_tables_read_sooner(tmp_path: Path) -> None:
    hostfs, clock = copy("numa-two-socket", tmp_path), FakeClock(monotonic_ns=NS * 12)  # it began at 10 s
    sampler = make(hostfs, clock=clock, numa_maps_interval_seconds=300)
    reads = []
    for second in range(0, 1000, 5):
        tree(tmp_path, {"proc/500/numa_maps": b"7f0000000000 default N0=%d kernelpagesize_kB=4\n" % second})
        seen = value(await sampler.sample(), "inferwatch_target_numa_memory_bytes", "svc", "0") / 4096
        reads += [second] if seen == second else []
        clock.advance(5)

    assert reads[:6] == [0, 15, 30, 45, 60, 80]
    assert all(later - earlier <= max(20, later / 4) for earlier, later in pairwise(reads))
    assert len(reads) <= 20


async def test_walk_that_takes_long_is_not_repeated_soon_however_young_the_process(tmp_path: Path) -> None:
    class Slow(FakeClock):
        def monotonic_ns(self) -> int:
            self.advance(0.2)
            return super().monotonic_ns()

    hostfs, clock = copy("numa-two-socket", tmp_path), Slow(monotonic_ns=NS * 12)
    sampler = make(hostfs, clock=clock, numa_maps_interval_seconds=300)
    before = await sampler.sample()
    tree(tmp_path, {"proc/500/numa_maps": b"7f0000000000 default N0=1 kernelpagesize_kB=4\n"})
    clock.advance(17)
    after = await sampler.sample()
    sizes = [value(samples, "inferwatch_target_numa_memory_bytes", "svc", "0") for samples in (before, after)]

    assert sizes == [800 * 4096, 800 * 4096]


async def test_one_node_tells_the_memory_of_each_run(tmp_path: Path) -> None:
    hostfs, clock = copy("numa-two-socket", tmp_path), FakeClock()
    tree(tmp_path, {"sys/devices/system/node/online": b"0\n"})
    sampler = make(hostfs, clock=clock)
    sizes = []
    for size in (100, 70_000, 5):
        tree(tmp_path, {"proc/500/status": b"Name:\tx\nVmRSS:\t%d kB\nHugetlbPages:\t2048 kB\nThreads:\t1\n" % size})
        samples, _ = await sample_anyway(sampler)
        sizes.append(value(samples, "inferwatch_target_numa_memory_bytes", "svc", "0"))
        clock.advance(5)

    assert sizes == [(100 + 2048) * 1024, (70_000 + 2048) * 1024, (5 + 2048) * 1024]


async def test_one_node_tells_the_cpu_time_of_all_threads_from_one_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hostfs, clock = copy("numa-two-socket", tmp_path), FakeClock(monotonic_ns=NS * 1000)
    tree(tmp_path, {"sys/devices/system/node/online": b"0\n"})
    fail_open(monkeypatch, {"task/600/stat": errno.EACCES})
    sampler = make(hostfs, Targets(target("svc", process(600))), clock, threads_limit=1)
    totals = []
    for ticks in (70_000, 70_400, 70_450):
        tree(tmp_path, {"proc/600/stat": STAT % (600, ticks, 5)})
        totals.append(values(await sampler.sample(), "inferwatch_target_numa_cpu_seconds_total"))
        clock.advance(5)

    assert totals == [{("svc", "0"): 0}, {("svc", "0"): 4}, {("svc", "0"): 4.5}]


async def test_node_that_is_plugged_in_or_out_brings_no_burst(tmp_path: Path) -> None:
    hostfs, clock = copy("numa-two-socket", tmp_path), FakeClock(monotonic_ns=NS * 1000)
    tree(tmp_path, {"proc/600/stat": STAT % (600, 90_000, 0)})  # of threads that have ended, most of it
    sampler = make(hostfs, Targets(target("svc", process(600))), clock)
    sums = []
    for online in (b"0-1\n", b"0\n", b"0-1\n", b"0-1\n"):
        tree(tmp_path, {"sys/devices/system/node/online": online})
        samples = await sampler.sample()
        sums.append(sum(values(samples, "inferwatch_target_numa_cpu_seconds_total").values()))
        clock.advance(31)  # nodes are looked at every 30 seconds

    assert sums == [0, 0, 0, 0]


async def test_thread_that_was_not_looked_at_before_brings_no_burst(tmp_path: Path) -> None:
    hostfs, clock = copy("numa-two-socket", tmp_path), FakeClock(monotonic_ns=NS * 1000)
    sampler = make(hostfs, Targets(target("svc", process(600))), clock, threads_limit=1)
    tree(tmp_path, {"proc/600/task/601/stat": STAT % (601, 90_000, 0)})  # as old as the other, and beyond the limit
    await sampler.sample()
    (tmp_path / "proc/600/task/600/stat").unlink()
    (tmp_path / "proc/600/task/600").rmdir()
    clock.advance(5)
    first = await sampler.sample()
    tree(tmp_path, {"proc/600/task/601/stat": STAT % (601, 90_200, 0)})
    clock.advance(5)
    second = await sampler.sample()

    assert values(first, "inferwatch_target_numa_cpu_seconds_total") == {("svc", "0"): 0, ("svc", "1"): 0}
    assert values(second, "inferwatch_target_numa_cpu_seconds_total") == {("svc", "0"): 2, ("svc", "1"): 0}


async def test_target_that_is_absent_for_a_round_goes_on(tmp_path: Path) -> None:
    hostfs, clock = copy("numa-two-socket", tmp_path), FakeClock(monotonic_ns=NS * 1000)
    view = Targets(target("svc", process(600)))
    sampler = make(hostfs, view, clock)
    totals = []
    for ticks, there in ((100, True), (400, True), (500, False), (600, True), (700, True)):
        tree(tmp_path, {"proc/600/task/600/stat": STAT % (600, ticks, 0)})
        view.set(*([target("svc", process(600))] if there else []))
        found = values(await sampler.sample(), "inferwatch_target_numa_cpu_seconds_total")
        totals.append(found.get(("svc", "0")))
        clock.advance(5)

    assert totals == [0, 3, None, 3, 4]  # what it used while it was no target's is not counted


async def test_time_for_page_tables_is_bounded(tmp_path: Path) -> None:
    class Racing(FakeClock):
        def monotonic_ns(self) -> int:
            self.advance(1.5)
            return super().monotonic_ns()

    sampler = make(copy("numa-two-socket", tmp_path), clock=Racing())
    _, problems = await sample_anyway(sampler)

    assert list(problems) == ["timeout"]


async def test_process_that_ended_meanwhile_is_passed_over_in_silence() -> None:
    samples = await of(
        "numa-two-socket", Targets(target("svc", process(500), process(501)), target("gone", process(9)))
    )

    assert value(samples, "inferwatch_target_numa_memory_bytes", "svc", "0") == 800 * 4096
    assert ("gone",) not in values(samples, "inferwatch_target_numa_aligned")


async def test_target_that_is_gone_has_no_series() -> None:
    view = Targets(*SVC.table.targets)
    sampler = make(host("numa-two-socket"), view)
    await sampler.sample()
    view.set()

    assert not any(name.startswith("inferwatch_target") for name in names(await sampler.sample()))


async def test_malformed_node_leaves_the_others(tmp_path: Path) -> None:
    hostfs = copy("numa-two-socket", tmp_path)
    tree(tmp_path, {"sys/devices/system/node/node0/meminfo": b"odd"})
    samples, problems = await sample_anyway(make(hostfs))

    assert list(problems) == ["parse"]
    assert set(values(samples, "inferwatch_numa_memory_total_bytes")) == {("1",)}
