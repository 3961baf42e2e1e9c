import contextlib
import errno
import mmap
from pathlib import Path

import psutil
import pytest

from inferwatch.errors import NoData
from inferwatch.samplers.memory import SAMPLER
from inferwatch.spec import PartialData
from support import LIVE, CountingRun, fail_open, host, make_context, names, tree, value, values

MEMINFO = b"MemTotal: 1000 kB\nMemFree: 400 kB\n"
VMSTAT = b"pgfault 1000\npgmajfault 10\npswpin 3\npswpout 4\n"
PAIR = {"proc/meminfo": MEMINFO, "proc/vmstat": VMSTAT}


async def test_recorded_host_has_every_family() -> None:
    samples = await SAMPLER.create(make_context(host("debian12-2cpu"))).sample()

    assert names(samples) == {family.name for family in SAMPLER.families}
    assert value(samples, "inferwatch_memory_total_bytes") == 24684096 * 1024
    assert set(values(samples, "inferwatch_huge_pages")) == {("total",), ("free",), ("reserved",), ("surplus",)}


async def test_sizes_are_bytes_and_events_counts(tmp_path: Path) -> None:
    samples = await SAMPLER.create(make_context(tree(tmp_path, PAIR))).sample()

    assert value(samples, "inferwatch_memory_free_bytes") == 400 * 1024
    assert value(samples, "inferwatch_swap_in_pages_total") == 3
    assert value(samples, "inferwatch_swap_out_pages_total") == 4
    assert value(samples, "inferwatch_major_faults_total") == 10
    assert value(samples, "inferwatch_minor_faults_total") == 990


async def test_field_that_the_kernel_lacks_is_absent_not_zero(tmp_path: Path) -> None:
    samples = await SAMPLER.create(make_context(tree(tmp_path, PAIR))).sample()

    assert names(samples) == {
        "inferwatch_memory_total_bytes",
        "inferwatch_memory_free_bytes",
        "inferwatch_swap_in_pages_total",
        "inferwatch_swap_out_pages_total",
        "inferwatch_major_faults_total",
        "inferwatch_minor_faults_total",
    }


async def test_reclaim_is_told_apart_by_who_did_it(tmp_path: Path) -> None:
    vmstat = b"pgscan_kswapd 5\npgscan_direct 7\npgscan_direct_throttle 900\npgsteal_kswapd 4\npgsteal_direct 6\n"
    samples = await SAMPLER.create(make_context(tree(tmp_path, PAIR | {"proc/vmstat": vmstat}))).sample()

    assert values(samples, "inferwatch_reclaim_scanned_pages_total") == {("kswapd",): 5, ("direct",): 7}
    assert values(samples, "inferwatch_reclaim_stolen_pages_total") == {("kswapd",): 4, ("direct",): 6}


async def test_counters_per_zone_are_added_up(tmp_path: Path) -> None:
    vmstat = b"pgscan_direct_dma32 1\npgscan_direct_normal 20\nallocstall_normal 2\nallocstall_movable 3\n"
    samples = await SAMPLER.create(make_context(tree(tmp_path, PAIR | {"proc/vmstat": vmstat}))).sample()

    assert value(samples, "inferwatch_reclaim_scanned_pages_total", "direct") == 21
    assert value(samples, "inferwatch_allocation_stalls_total") == 5


@pytest.mark.parametrize(
    ("vmstat", "expected"),
    [
        (b"workingset_refault 8\n", {("file",): 8}),
        (b"workingset_refault_anon 1\nworkingset_refault_file 2\n", {("anonymous",): 1, ("file",): 2}),
    ],
    ids=["before 5.9", "since 5.9"],
)
async def test_refaults_of_old_and_new_kernels(
    tmp_path: Path, vmstat: bytes, expected: dict[tuple[str, ...], int]
) -> None:
    samples = await SAMPLER.create(make_context(tree(tmp_path, PAIR | {"proc/vmstat": vmstat}))).sample()

    assert values(samples, "inferwatch_working_set_refaults_total") == expected


async def test_minor_faults_do_not_fall_when_a_major_fault_is_counted_in_between(tmp_path: Path) -> None:
    hostfs = tree(tmp_path, PAIR)
    sampler = SAMPLER.create(make_context(hostfs))
    first = await sampler.sample()
    tree(tmp_path, {"proc/vmstat": b"pgfault 1000\npgmajfault 11\n"})
    second = await sampler.sample()

    assert value(first, "inferwatch_minor_faults_total") == value(second, "inferwatch_minor_faults_total") == 990


async def test_denied_file_leaves_the_other(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    fail_open(monkeypatch, {"/vmstat": errno.EACCES})

    with pytest.raises(PartialData) as caught:
        await SAMPLER.create(make_context(tree(tmp_path, PAIR))).sample()
    assert list(caught.value.problems) == ["permission_denied"]
    assert names(caught.value.samples) == {"inferwatch_memory_total_bytes", "inferwatch_memory_free_bytes"}


async def test_missing_file_leaves_the_other(tmp_path: Path) -> None:
    with pytest.raises(PartialData) as caught:
        await SAMPLER.create(make_context(tree(tmp_path, {"proc/meminfo": MEMINFO}))).sample()
    assert list(caught.value.problems) == ["no_data"]


async def test_malformed_file_leaves_the_other(tmp_path: Path) -> None:
    with pytest.raises(PartialData) as caught:
        await SAMPLER.create(make_context(tree(tmp_path, PAIR | {"proc/meminfo": b"garbage"}))).sample()
    assert list(caught.value.problems) == ["parse"]
    assert value(caught.value.samples, "inferwatch_major_faults_total") == 10


async def test_host_without_both_files_is_no_data(tmp_path: Path) -> None:
    with pytest.raises(NoData):
        await SAMPLER.create(make_context(tree(tmp_path, {}))).sample()


async def test_all_reads_are_one_job_of_the_instances_thread(tmp_path: Path) -> None:
    run = CountingRun()
    sampler = SAMPLER.create(make_context(tree(tmp_path, PAIR), run_blocking=run))
    await sampler.sample()
    await sampler.close()

    assert run.calls == 1


async def test_live_sizes_agree_with_psutil() -> None:
    samples = await SAMPLER.create(make_context(LIVE)).sample()
    theirs = psutil.virtual_memory()

    assert value(samples, "inferwatch_memory_total_bytes") == theirs.total
    assert value(samples, "inferwatch_memory_available_bytes") == pytest.approx(theirs.available, rel=0.05)
    assert value(samples, "inferwatch_memory_shared_bytes") == pytest.approx(theirs.shared, abs=1 << 26)
    assert value(samples, "inferwatch_swap_total_bytes") == psutil.swap_memory().total


async def test_live_minor_faults_grow_with_memory_touched() -> None:
    # Touching n fresh pages one by one faults n times. The mapping is our own, since the allocator
    # may give memory that was touched before, and without huge pages, which serve many at once.
    pages = 2048
    sampler = SAMPLER.create(make_context(LIVE))
    before = value(await sampler.sample(), "inferwatch_minor_faults_total")
    with mmap.mmap(-1, pages * mmap.PAGESIZE) as block:
        with contextlib.suppress(OSError):  # a kernel without huge pages
            block.madvise(mmap.MADV_NOHUGEPAGE)
        for offset in range(0, len(block), mmap.PAGESIZE):
            block[offset] = 1
    after = value(await sampler.sample(), "inferwatch_minor_faults_total")

    assert after - before >= pages
