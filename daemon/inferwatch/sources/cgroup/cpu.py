"""Read CPU quota, throttling and use of a control group, of either version."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import inf
from pathlib import Path
from typing import Final

from inferwatch.errors import NoData
from inferwatch.sources.cgroup.files import GroupFiles, plain
from inferwatch.sources.cgroup.tree import V1, Level
from inferwatch.sources.cgroup.values import MICROSECONDS, parse_cpu_max, parse_flat_keyed, parse_number, quota_cores

NANOSECONDS: Final = 1e9
STAT: Final = "cpu.stat"


@dataclass(frozen=True, slots=True)
class Throttling:
    """What the kernel counts where a quota is set.

    Args:
        directory: The group whose quota it is, which tells one group from its successor.
        quota_cores: Lowest quota of the group and its ancestors, in CPUs; None when there is none.
        periods: Enforcement periods (100 ms unless set otherwise) in which its threads wanted to run.
        throttled_periods: Those in which they had to stop because the quota was used up.
        throttled_seconds: How long they had to, added up over CPUs.
    """

    directory: Path
    quota_cores: float | None
    periods: int
    throttled_periods: int
    throttled_seconds: float


def read_throttling(files: GroupFiles, levels: Sequence[Level]) -> Throttling:
    """Read the quota that binds first and the counters of the group where it is set (a pod's may be above it).

    Args:
        files: Reads; quotas are up to 30 seconds old.
        levels: The group and its ancestors, itself first.

    Raises:
        NoData: When none of them has a CPU controller.
        ParseError: When a file is malformed.
        SourceError: When a file can't be read.
    """
    quotas = [(quota, level) for level in levels if (quota := _quota(files, level)) is not None]
    for cores, level in sorted(quotas, key=lambda entry: entry[0]):  # the first, so the group itself, of equal ones
        stat = files.read(level, STAT, parse_flat_keyed)
        if stat and "nr_periods" in stat:  # v2 has cpu.stat everywhere, and these lines where the controller is enabled
            return _throttling(level, None if cores == inf else cores, stat)
    raise NoData("no CPU controller in the control group or its ancestors")


def read_cpu_seconds(files: GroupFiles, levels: Sequence[Level]) -> tuple[Path, float]:
    """Read the CPU time of a group and its descendants.

    Args:
        files: Reads.
        levels: The group and its ancestors, itself first; of v1's cpuacct or of v2.

    Returns:
        The group's directory and the seconds.

    Raises:
        NoData: When it is not told.
        ParseError: When the file is malformed.
        SourceError: When the file can't be read.
    """
    if not levels:
        raise NoData("the control group is the root, or has no CPU accounting")
    level = levels[0]
    if level.version == V1:
        used, unit = files.read(level, "cpuacct.usage", parse_number), NANOSECONDS
    else:
        used, unit = (files.read(level, STAT, parse_flat_keyed) or {}).get("usage_usec"), MICROSECONDS
    if used is None:
        raise NoData(f"{level.directory}: CPU time is not told")
    return level.directory, used / unit


def _throttling(level: Level, cores: float | None, stat: Mapping[str, int]) -> Throttling:
    nanoseconds = "throttled_time"
    return Throttling(
        directory=level.directory,
        quota_cores=cores,
        periods=stat["nr_periods"],
        throttled_periods=stat.get("nr_throttled", 0),
        throttled_seconds=stat[nanoseconds] / NANOSECONDS
        if nanoseconds in stat
        else stat.get("throttled_usec", 0) / MICROSECONDS,
    )


def _quota(files: GroupFiles, level: Level) -> float | None:
    """Return a group's quota in cores, infinite when it has none; None where there is no CPU controller."""
    if level.version == V1:
        quota, period = (files.setting(level, name, plain) for name in ("cpu.cfs_quota_us", "cpu.cfs_period_us"))
        if quota is None or period is None:
            return None
        found = quota_cores(quota, period, str(level.directory / "cpu.cfs_quota_us"))
    else:
        limit = files.setting(level, "cpu.max", plain)
        if limit is None:
            return None
        found = parse_cpu_max(limit, str(level.directory / "cpu.max"))
    return inf if found is None else found
