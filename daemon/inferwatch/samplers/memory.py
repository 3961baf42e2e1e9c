"""Sample memory use, swapping, reclaim, faults and huge pages of the host, from /proc/meminfo and /proc/vmstat."""

from collections.abc import Iterator, Sequence
from typing import Final

from inferwatch.model import Family, Kind, Sample
from inferwatch.samplers._support.parts import Parts
from inferwatch.sources.hostfs import read_bytes
from inferwatch.sources.procfs.meminfo import MemInfo, parse_meminfo
from inferwatch.sources.procfs.vmstat import VmStat, parse_vmstat
from inferwatch.spec import Context, SamplerSpec


def _bytes(name: str, text: str, field: str) -> Family:
    return Family(name, f"{text}, in bytes, from {field} in /proc/meminfo.", Kind.GAUGE, "bytes")


def _events(name: str, text: str, field: str, *labels: str) -> Family:
    unit = "pages" if name.endswith("_pages_total") else ""
    return Family(name, f"{text} since boot, from {field} in /proc/vmstat.", Kind.COUNTER, unit, labels)


TOTAL: Final = _bytes("inferwatch_memory_total_bytes", "Memory that the kernel manages", "MemTotal")
FREE: Final = _bytes("inferwatch_memory_free_bytes", "Memory in no use at all", "MemFree")
AVAILABLE: Final = _bytes(
    "inferwatch_memory_available_bytes", "Memory that programs can get without swapping, estimated", "MemAvailable"
)
BUFFERS: Final = _bytes("inferwatch_memory_buffers_bytes", "Page cache of block devices", "Buffers")
CACHED: Final = _bytes("inferwatch_memory_cached_bytes", "Page cache of files, tmpfs and shared memory", "Cached")
ANONYMOUS: Final = _bytes("inferwatch_memory_anonymous_bytes", "Memory of programs with no file behind it", "AnonPages")
ANONYMOUS_HUGE: Final = _bytes(
    "inferwatch_memory_anonymous_huge_bytes",
    "Part of the anonymous memory that is in transparent huge pages",
    "AnonHugePages",
)
SHARED: Final = _bytes("inferwatch_memory_shared_bytes", "Memory of tmpfs and shared memory segments", "Shmem")
SLAB_RECLAIMABLE: Final = _bytes(
    "inferwatch_memory_slab_reclaimable_bytes", "Kernel caches that can be given up", "SReclaimable"
)
SLAB_UNRECLAIMABLE: Final = _bytes(
    "inferwatch_memory_slab_unreclaimable_bytes", "Kernel caches that can't be given up", "SUnreclaim"
)
DIRTY: Final = _bytes("inferwatch_memory_dirty_bytes", "Page cache that waits to be written", "Dirty")
WRITEBACK: Final = _bytes("inferwatch_memory_writeback_bytes", "Page cache that is being written", "Writeback")
MLOCKED: Final = _bytes("inferwatch_memory_mlocked_bytes", "Memory that programs locked with mlock()", "Mlocked")
COMMITTED: Final = _bytes("inferwatch_memory_committed_bytes", "Memory that programs were promised", "Committed_AS")
COMMIT_LIMIT: Final = _bytes(
    "inferwatch_memory_commit_limit_bytes",
    "Most memory that can be promised under strict overcommit (vm.overcommit_memory = 2)",
    "CommitLimit",
)
SWAP_TOTAL: Final = _bytes("inferwatch_swap_total_bytes", "Swap space", "SwapTotal")
SWAP_FREE: Final = _bytes("inferwatch_swap_free_bytes", "Swap space in no use", "SwapFree")
HUGE_PAGE_SIZE: Final = _bytes(
    "inferwatch_huge_page_size_bytes", "Size of a huge page of the default pool", "Hugepagesize"
)
HUGE_PAGES: Final = Family(
    "inferwatch_huge_pages",
    "Number of pages of the default huge page pool in a state, free ones include the reserved, from HugePages_* in"
    " /proc/meminfo.",
    Kind.GAUGE,
    "",
    ("state",),
)
SWAP_IN: Final = _events("inferwatch_swap_in_pages_total", "Pages read back from swap", "pswpin")
SWAP_OUT: Final = _events("inferwatch_swap_out_pages_total", "Pages written to swap", "pswpout")
MAJOR_FAULTS: Final = _events("inferwatch_major_faults_total", "Page faults that had to wait for a read", "pgmajfault")
MINOR_FAULTS: Final = _events(
    "inferwatch_minor_faults_total", "Page faults served without a read", "pgfault less pgmajfault"
)
OOM_KILLS: Final = _events(
    "inferwatch_oom_kills_total",
    "Processes that the kernel killed for want of memory, cgroup limits included",
    "oom_kill",
)
SCANNED: Final = _events(
    "inferwatch_reclaim_scanned_pages_total",
    "Pages looked at to free memory by kswapd in the background or by the allocating thread itself (direct)",
    "pgscan_kswapd and pgscan_direct",
    "by",
)
STOLEN: Final = _events(
    "inferwatch_reclaim_stolen_pages_total",
    "Pages freed by kswapd in the background or by the allocating thread itself (direct)",
    "pgsteal_kswapd and pgsteal_direct",
    "by",
)
ALLOCATION_STALLS: Final = _events(
    "inferwatch_allocation_stalls_total", "Allocations that had to free memory themselves first", "allocstall_*"
)
COMPACTION_STALLS: Final = _events(
    "inferwatch_compaction_stalls_total", "Allocations that had to compact memory themselves first", "compact_stall"
)
HUGE_ALLOCATIONS: Final = _events(
    "inferwatch_transparent_huge_page_allocations_total",
    "Page faults served with a transparent huge page",
    "thp_fault_alloc",
)
HUGE_FALLBACKS: Final = _events(
    "inferwatch_transparent_huge_page_fallbacks_total",
    "Page faults that wanted a transparent huge page and got small ones",
    "thp_fault_fallback",
)
REFAULTS: Final = _events(
    "inferwatch_working_set_refaults_total",
    "Pages of a kind that were needed again after they had been evicted",
    "workingset_refault_*",
    "kind",
)


class MemorySampler:
    """Reads /proc/meminfo and /proc/vmstat."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._minor_faults = 0

    async def sample(self) -> Sequence[Sample]:
        """Read once."""
        return await self._context.run_blocking(self._read)

    async def close(self) -> None:
        """Hold nothing."""

    def _read(self) -> Sequence[Sample]:
        parts = Parts()
        parts.add(self._meminfo)
        parts.add(self._vmstat)
        return parts.result()

    def _meminfo(self) -> Iterator[Sample]:
        info = parse_meminfo(read_bytes(self._context.hostfs.proc("meminfo")))
        yield from (family(value) for family, value in _sizes(info) if value is not None)
        yield from (HUGE_PAGES(value, state) for state, value in _huge_pages(info) if value is not None)

    def _vmstat(self) -> Iterator[Sample]:
        vmstat = parse_vmstat(read_bytes(self._context.hostfs.proc("vmstat")))
        minor = self._minor(vmstat)
        if minor is not None:
            yield MINOR_FAULTS(minor)
        for family, value, *labels in _counters(vmstat):
            if value is not None:
                yield family(value, *labels)

    def _minor(self, vmstat: VmStat) -> int | None:
        """Return minor faults; kept from falling, because the two counters are not read at the same instant."""
        faults, major = vmstat.values.get("pgfault"), vmstat.values.get("pgmajfault")
        if faults is None or major is None:
            return None
        self._minor_faults = max(self._minor_faults, faults - major)
        return self._minor_faults


def _sizes(info: MemInfo) -> Sequence[tuple[Family, int | None]]:
    return (
        (TOTAL, info.total_bytes),
        (FREE, info.free_bytes),
        (AVAILABLE, info.available_bytes),
        (BUFFERS, info.buffers_bytes),
        (CACHED, info.cached_bytes),
        (ANONYMOUS, info.anonymous_bytes),
        (ANONYMOUS_HUGE, info.anonymous_huge_bytes),
        (SHARED, info.shared_bytes),
        (SLAB_RECLAIMABLE, info.slab_reclaimable_bytes),
        (SLAB_UNRECLAIMABLE, info.slab_unreclaimable_bytes),
        (DIRTY, info.dirty_bytes),
        (WRITEBACK, info.writeback_bytes),
        (MLOCKED, info.mlocked_bytes),
        (COMMITTED, info.committed_bytes),
        (COMMIT_LIMIT, info.commit_limit_bytes),
        (SWAP_TOTAL, info.swap_total_bytes),
        (SWAP_FREE, info.swap_free_bytes),
        (HUGE_PAGE_SIZE, info.huge_page_size_bytes),
    )


def _huge_pages(info: MemInfo) -> Sequence[tuple[str, int | None]]:
    return (
        ("total", info.huge_pages_total),
        ("free", info.huge_pages_free),
        ("reserved", info.huge_pages_reserved),
        ("surplus", info.huge_pages_surplus),
    )


def _counters(vmstat: VmStat) -> Sequence[tuple[Family, int | None, *tuple[str, ...]]]:
    get, over_zones = vmstat.values.get, vmstat.over_zones
    file_refaults = get("workingset_refault_file", get("workingset_refault"))  # one counter, of files only, before 5.9
    return (
        (SWAP_IN, get("pswpin")),
        (SWAP_OUT, get("pswpout")),
        (MAJOR_FAULTS, get("pgmajfault")),
        (OOM_KILLS, get("oom_kill")),
        (SCANNED, over_zones("pgscan_kswapd"), "kswapd"),
        (SCANNED, over_zones("pgscan_direct"), "direct"),
        (STOLEN, over_zones("pgsteal_kswapd"), "kswapd"),
        (STOLEN, over_zones("pgsteal_direct"), "direct"),
        (ALLOCATION_STALLS, over_zones("allocstall")),
        (COMPACTION_STALLS, get("compact_stall")),
        (HUGE_ALLOCATIONS, get("thp_fault_alloc")),
        (HUGE_FALLBACKS, get("thp_fault_fallback")),
        (REFAULTS, file_refaults, "file"),
        (REFAULTS, get("workingset_refault_anon"), "anonymous"),
    )


SAMPLER: Final = SamplerSpec(
    name="memory",
    dimension="memory",
    summary="Whether the host's memory is short: use, swapping, reclaim, faults, huge pages, OOM kills.",
    source="/proc/meminfo, /proc/vmstat",
    families=(
        TOTAL,
        FREE,
        AVAILABLE,
        BUFFERS,
        CACHED,
        ANONYMOUS,
        ANONYMOUS_HUGE,
        SHARED,
        SLAB_RECLAIMABLE,
        SLAB_UNRECLAIMABLE,
        DIRTY,
        WRITEBACK,
        MLOCKED,
        COMMITTED,
        COMMIT_LIMIT,
        SWAP_TOTAL,
        SWAP_FREE,
        HUGE_PAGE_SIZE,
        HUGE_PAGES,
        SWAP_IN,
        SWAP_OUT,
        MAJOR_FAULTS,
        MINOR_FAULTS,
        OOM_KILLS,
        SCANNED,
        STOLEN,
        ALLOCATION_STALLS,
        COMPACTION_STALLS,
        HUGE_ALLOCATIONS,
        HUGE_FALLBACKS,
        REFAULTS,
    ),
    create=MemorySampler,
)
