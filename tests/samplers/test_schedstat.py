import errno
from pathlib import Path

import pytest

from inferwatch.errors import NoData, ParseError
from inferwatch.samplers.schedstat import SAMPLER, missing_schedstat
from inferwatch.spec import PartialData
from support import LIVE, CountingRun, fail_open, host, make_context, names, tree, values

WAIT = "inferwatch_cpu_run_queue_wait_seconds_total"
RUNNING = "inferwatch_cpu_running_seconds_total"
TIMESLICES = "inferwatch_cpu_timeslices_total"
SYSCTL = "proc/sys/kernel/sched_schedstats"


def schedstat(*cpus: tuple[int, int, int]) -> bytes:
    """Write a file of version 15 from (running ns, wait ns, timeslices) per CPU."""
    lines = [f"cpu{number} 0 0 0 0 0 0 {' '.join(map(str, counts))}\n" for number, counts in enumerate(cpus)]
    return ("version 15\ntimestamp 1\n" + "".join(lines)).encode()


async def test_figures_are_summed_per_numa_node_in_seconds() -> None:
    samples = await SAMPLER.create(make_context(host("two-nodes"))).sample()

    assert values(samples, WAIT) == {("0",): 8.0, ("1",): 100.0}
    assert values(samples, RUNNING) == {("0",): 4200.0, ("1",): 10010.0}
    assert values(samples, TIMESLICES) == {("0",): 3300, ("1",): 9010}


async def test_running_time_of_the_fixture_fits_into_the_time_of_its_cpus() -> None:
    samples = await SAMPLER.create(make_context(host("two-nodes"))).sample()

    assert all(seconds <= 3 * 10_000 for seconds in values(samples, RUNNING).values())


async def test_zeros_of_a_kernel_that_does_not_count_are_no_data(tmp_path: Path) -> None:
    hostfs = tree(tmp_path, {"proc/schedstat": schedstat((0, 0, 0), (0, 0, 0)), SYSCTL: b"0\n"})

    with pytest.raises(NoData, match=r"all cpu lines are zero.*sysctl kernel.sched_schedstats=1"):
        await SAMPLER.create(make_context(hostfs)).sample()


async def test_zero_wait_with_statistics_disabled_is_not_published(tmp_path: Path) -> None:
    hostfs = tree(tmp_path, {"proc/schedstat": schedstat((5_000_000_000, 0, 10)), SYSCTL: b"0\n"})

    with pytest.raises(PartialData, match=r"kernel.sched_schedstats is 0") as caught:
        await SAMPLER.create(make_context(hostfs)).sample()
    assert names(caught.value.samples) == {RUNNING, TIMESLICES}
    assert list(caught.value.problems) == ["no_data"]


async def test_wait_counted_with_statistics_disabled_is_published(tmp_path: Path) -> None:
    # Mainline: the sysctl stops the domain lines and the first six fields, not these three.
    hostfs = tree(tmp_path, {"proc/schedstat": schedstat((5_000_000_000, 250_000_000, 10)), SYSCTL: b"0\n"})
    samples = await SAMPLER.create(make_context(hostfs)).sample()

    assert values(samples, WAIT) == {("0",): 0.25}


@pytest.mark.parametrize("files", [{SYSCTL: b"1\n"}, {}], ids=["enabled", "kernel without the sysctl"])
async def test_zero_wait_is_believed_where_statistics_are_on(tmp_path: Path, files: dict[str, bytes]) -> None:
    hostfs = tree(tmp_path, {"proc/schedstat": schedstat((5_000_000_000, 0, 10)), **files})
    samples = await SAMPLER.create(make_context(hostfs)).sample()

    assert values(samples, WAIT) == {("0",): 0.0}


async def test_offline_cpu_keeps_its_past_in_the_total(tmp_path: Path) -> None:
    hostfs = tree(tmp_path, {"proc/schedstat": schedstat((10**9, 10**9, 1), (10**9, 3 * 10**9, 1))})
    sampler = SAMPLER.create(make_context(hostfs))
    first = await sampler.sample()
    tree(tmp_path, {"proc/schedstat": schedstat((10**9, 2 * 10**9, 1))})
    second = await sampler.sample()

    assert (values(first, WAIT), values(second, WAIT)) == ({("0",): 4.0}, {("0",): 5.0})


def test_kernel_without_schedstat_is_unavailable_with_the_reason(tmp_path: Path) -> None:
    reason = missing_schedstat(tree(tmp_path, {"proc/stat": b""}))

    assert reason is not None
    assert reason.startswith("this kernel has no /proc/schedstat (CONFIG_SCHEDSTATS is off)")
    assert SAMPLER.requires == (missing_schedstat,)


def test_kernel_with_schedstat_is_available() -> None:
    assert missing_schedstat(host("two-nodes")) is None


def test_denied_procfs_is_left_for_the_run_to_report(monkeypatch: pytest.MonkeyPatch) -> None:
    def denied(_self: Path) -> None:
        raise PermissionError(errno.EACCES, "Permission denied")

    monkeypatch.setattr(Path, "stat", denied)

    assert missing_schedstat(host("two-nodes")) is None


async def test_file_that_vanishes_between_check_and_read_is_no_data(tmp_path: Path) -> None:
    # B35
    hostfs = tree(tmp_path, {"proc/schedstat": schedstat((1, 1, 1))})
    assert missing_schedstat(hostfs) is None
    hostfs.proc("schedstat").unlink()

    with pytest.raises(NoData):
        await SAMPLER.create(make_context(hostfs)).sample()


async def test_unknown_version_is_a_parse_error(tmp_path: Path) -> None:
    hostfs = tree(tmp_path, {"proc/schedstat": b"version 99\ncpu0 1 2 3 4 5 6 7 8 9\n"})

    with pytest.raises(ParseError, match=r"format version 99"):
        await SAMPLER.create(make_context(hostfs)).sample()


async def test_denied_topology_leaves_the_figures_on_an_unknown_node(monkeypatch: pytest.MonkeyPatch) -> None:
    fail_open(monkeypatch, {"node1/cpulist": errno.EACCES})

    with pytest.raises(PartialData) as caught:
        await SAMPLER.create(make_context(host("two-nodes"))).sample()
    assert values(caught.value.samples, WAIT) == {("unknown",): 108.0}


async def test_all_reads_are_one_job_of_the_instances_thread() -> None:
    run = CountingRun()
    sampler = SAMPLER.create(make_context(host("two-nodes"), run_blocking=run))
    await sampler.sample()
    await sampler.close()

    assert run.calls == 1


def test_live_host_is_judged_by_the_file_itself() -> None:
    assert (missing_schedstat(LIVE) is None) == Path("/proc/schedstat").exists()
