"""Parse the cpu lines of /proc/schedstat (kernel/sched/stats.c, show_schedstat()).

The cpu lines are the same in versions 15 (commit 67aa0f767af4, 2008), 16 (11b0bfa5d463, March 2024) and 17 (December
2024): 16 reordered the idle types of the *domain* lines, 17 put the domain's name in and split its imbalance, and those
lines are not read here. The two times in a cpu line are nanoseconds since 2.6.23 (differences of rq_clock()), although
Documentation/scheduler/sched-stats.rst said jiffies for long. Only the line `timestamp` is in jiffies.

kernel.sched_schedstats = 0 does *not* freeze the cpu line's last three fields: rq_sched_info_arrive() and
rq_sched_info_depart() in kernel/sched/stats.h are not behind schedstat_enabled(). Behind it are the first six fields
and the domain lines, which are zero then.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from inferwatch.errors import ParseError
from inferwatch.sources.procfs.fields import excerpt, unsigned

FILE: Final = "/proc/schedstat"
VERSIONS: Final = (15, 16, 17)
CPU_FIELDS: Final = 9  # vendor kernels append more; 14 had twelve in another order
RUNNING, WAIT, TIMESLICES = 6, 7, 8  # places in a cpu line, the name not counted
NANOSECONDS: Final = 1e9


@dataclass(frozen=True, slots=True)
class CpuSchedstat:
    """What one CPU's run queue counted since boot.

    Args:
        running_seconds: Time that threads ran on it.
        wait_seconds: Time that threads were ready to run and waited in its queue, all threads added up.
        timeslices: How often a thread was put on it.
    """

    running_seconds: float
    wait_seconds: float
    timeslices: int


@dataclass(frozen=True, slots=True)
class Schedstat:
    """The content of /proc/schedstat: format version, and one entry per online CPU by its number."""

    version: int
    cpus: Mapping[int, CpuSchedstat]


def parse_schedstat(data: bytes) -> Schedstat:
    """Parse /proc/schedstat.

    Raises:
        ParseError: When the version is not known, a cpu line is malformed or there is no cpu line.
    """
    lines = data.splitlines()
    version = _version(lines[0] if lines else b"")
    cpus = dict(_cpu(line) for line in lines[1:] if line.startswith(b"cpu"))
    if not cpus:
        raise ParseError(f"{FILE}: no cpu line, expected one per online CPU (begins with {excerpt(data)})")
    return Schedstat(version, cpus)


def _version(line: bytes) -> int:
    """Check the first line: the kernel bumps the version so that readers adapt or refuse."""
    word, _, number = line.partition(b" ")
    if word != b"version":
        raise ParseError(f"{FILE}: first line is {excerpt(line)}, expected 'version N'")
    version = unsigned(number, f"{FILE}: version")
    if version not in VERSIONS:
        raise ParseError(
            f"{FILE}: format version {version}, expected one of {VERSIONS}; please report it with the file"
        )
    return version


def _cpu(line: bytes) -> tuple[int, CpuSchedstat]:
    """Parse `cpu0 0 0 25 3 9 4 <running ns> <wait ns> <timeslices>`."""
    label, *fields = line.split()
    if len(fields) < CPU_FIELDS:
        raise ParseError(f"{FILE}: cpu line has {len(fields)} fields, expected {CPU_FIELDS} ({excerpt(line)})")
    what = f"{FILE}: field of {excerpt(line)}"
    values = [unsigned(field, what) for field in fields[:CPU_FIELDS]]
    return unsigned(label[3:], f"{FILE}: number of the CPU in {excerpt(line)}"), CpuSchedstat(
        running_seconds=values[RUNNING] / NANOSECONDS,
        wait_seconds=values[WAIT] / NANOSECONDS,
        timeslices=values[TIMESLICES],
    )
