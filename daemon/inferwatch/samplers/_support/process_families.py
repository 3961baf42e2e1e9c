"""The families of the sampler `process_memory`, and how readings of processes become samples of them."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

from inferwatch.model import Family, Kind, Sample
from inferwatch.samplers._support.process_reader import ProcessReading

ROLE: Final = ("target", "role")


def _gauge(name: str, text: str, source: str, unit: str = "", *labels: str) -> Family:
    return Family(name, f"{text}, from {source}.", Kind.GAUGE, unit, (*ROLE, *labels))


MEMORY: Final = _gauge(
    "inferwatch_target_memory_bytes",
    "Memory of the processes of a role: resident anonymous, file and shared pages, and swap, a page that several map"
    " counted in each",
    "/proc/PID/status",
    "bytes",
    "kind",
)
PEAK: Final = _gauge(
    "inferwatch_target_memory_peak_bytes",
    "Largest resident size that any process of a role ever had",
    "VmHWM in /proc/PID/status",
    "bytes",
)
LOCKED: Final = _gauge(
    "inferwatch_target_memory_locked_bytes",
    "Memory of the processes of a role that can't be moved or swapped: locked with mlock, or pinned for devices",
    "VmLck and VmPin in /proc/PID/status",
    "bytes",
    "by",
)
PROPORTIONAL: Final = _gauge(
    "inferwatch_target_memory_proportional_bytes",
    "Memory of the processes of a role, a page that n processes map counted as 1/n in each (PSS)",
    "/proc/PID/smaps_rollup",
    "bytes",
    "kind",
)
PRIVATE: Final = _gauge(
    "inferwatch_target_memory_private_bytes",
    "Memory that would be free if the processes of a role ended one by one (USS)",
    "/proc/PID/smaps_rollup",
    "bytes",
)
HUGE: Final = _gauge(
    "inferwatch_target_memory_huge_page_bytes",
    "Memory of the processes of a role in huge pages: transparent ones, or those of the reserved pool",
    "/proc/PID/smaps_rollup and HugetlbPages in /proc/PID/status",
    "bytes",
    "pool",
)
GROWTH: Final = _gauge(
    "inferwatch_target_memory_growth_bytes_per_second",
    "Theil-Sen slope of anonymous memory and swap over the window, absent unless larger than chance would make it",
    "/proc/PID/status",
    "bytes_per_second",
)
EXHAUSTION: Final = _gauge(
    "inferwatch_target_memory_exhaustion_seconds",
    "Time until the nearest memory limit if the target goes on growing as it does, absent while it does not grow",
    "the growth and inferwatch_target_memory_headroom_bytes",
    "seconds",
)
HEADROOM: Final = Family(
    "inferwatch_target_memory_headroom_bytes",
    "Memory left until the nearest limit: of the target's cgroup or any ancestor (limit less working set), or the"
    " host's MemAvailable.",
    Kind.GAUGE,
    "bytes",
    ("target",),
)
OOM_SCORE: Final = _gauge(
    "inferwatch_target_oom_score",
    "Highest score of a process of a role; the kernel kills the process with the highest first",
    "/proc/PID/oom_score",
)
OOM_SCORE_ADJUSTMENT: Final = _gauge(
    "inferwatch_target_oom_score_adjustment",
    "Highest adjustment of the score of a process of a role, -1000 (never killed) to 1000",
    "/proc/PID/oom_score_adj",
)
OPEN_FDS: Final = _gauge(
    "inferwatch_target_open_fds",
    "File descriptors of that process of a role which is nearest to its limit",
    "/proc/PID/fd",
)
MAX_FDS: Final = _gauge(
    "inferwatch_target_max_fds",
    "File descriptors that the process nearest to its limit may have (soft limit), absent when unlimited",
    "/proc/PID/limits",
)

FAMILIES: Final = (
    MEMORY,
    PEAK,
    LOCKED,
    PROPORTIONAL,
    PRIVATE,
    HUGE,
    GROWTH,
    EXHAUSTION,
    HEADROOM,
    OOM_SCORE,
    OOM_SCORE_ADJUSTMENT,
    OPEN_FDS,
    MAX_FDS,
)


def by_role(readings: Sequence[ProcessReading]) -> Mapping[str, Sequence[ProcessReading]]:
    """Group readings by role, in the roles' alphabetical order."""
    groups: dict[str, list[ProcessReading]] = {}
    for reading in readings:
        groups.setdefault(reading.process.role, []).append(reading)
    return dict(sorted(groups.items()))


def role_samples(target: str, role: str, readings: Sequence[ProcessReading]) -> Iterator[Sample]:
    """Make the samples of one role, but for those of smaps_rollup and growth; what no process tells is absent."""
    memories = [reading.memory for reading in readings]
    sums: tuple[tuple[Family, int | None, str], ...] = (
        (MEMORY, sum_known(memory.anonymous_bytes for memory in memories), "anonymous"),
        (MEMORY, sum_known(memory.file_bytes for memory in memories), "file"),
        (MEMORY, sum_known(memory.shared_bytes for memory in memories), "shared"),
        (MEMORY, sum_known(memory.swap_bytes for memory in memories), "swap"),
        (LOCKED, sum_known(memory.locked_bytes for memory in memories), "mlock"),
        (LOCKED, sum_known(memory.pinned_bytes for memory in memories), "pin"),
        (HUGE, sum_known(memory.huge_bytes for memory in memories), "reserved"),
    )
    yield from (family(value, target, role, kind) for family, value, kind in sums if value is not None)
    highest: tuple[tuple[Family, int | None], ...] = (
        (PEAK, max_known(memory.peak_bytes for memory in memories)),
        (OOM_SCORE, max_known(reading.oom_score for reading in readings)),
        (OOM_SCORE_ADJUSTMENT, max_known(reading.oom_score_adj for reading in readings)),
    )
    yield from (family(value, target, role) for family, value in highest if value is not None)
    yield from _fd_samples(target, role, readings)


def _fd_samples(target: str, role: str, readings: Sequence[ProcessReading]) -> Iterator[Sample]:
    counted = [reading for reading in readings if reading.open_fds is not None]
    if not counted:
        return
    nearest = max(counted, key=_fd_use)
    yield OPEN_FDS(nearest.open_fds or 0, target, role)
    if nearest.limit is not None and nearest.limit.soft is not None:
        yield MAX_FDS(nearest.limit.soft, target, role)


def _fd_use(reading: ProcessReading) -> tuple[float, int]:
    """Return how near to its limit a process is, and the number where that decides nothing."""
    count = reading.open_fds or 0
    soft = reading.limit.soft if reading.limit else None
    return (count / soft if soft else 0.0), count


def sum_known(values: Iterable[int | None]) -> int | None:
    """Return the sum of what is known; None when nothing is."""
    found = [value for value in values if value is not None]
    return sum(found) if found else None


def max_known(values: Iterable[int | None]) -> int | None:
    """Return the largest of what is known; None when nothing is."""
    return max((value for value in values if value is not None), default=None)
