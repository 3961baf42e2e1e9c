"""Read CPU quota, throttling and use of a control group, of either version."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from inferwatch.errors import NoData
from inferwatch.sources.cgroup.tree import V1, Level
from inferwatch.sources.cgroup.values import MICROSECONDS, parse_cpu_max, parse_flat_keyed, parse_number, quota_cores
from inferwatch.sources.hostfs import read_bytes

NANOSECONDS: Final = 1e9


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


def read_throttling(levels: Sequence[Level]) -> Throttling:
    """Read the quota that binds first and the counters of the group where it is set (a pod's may be above it).

    Args:
        levels: The group and its ancestors, itself first.

    Raises:
        NoData: When none of them has a CPU controller.
        ParseError: When a file is malformed.
        SourceError: When a file can't be read.
    """
    found: list[tuple[float, Level, Mapping[str, int]]] = []
    for level in levels:
        file = level.directory / "cpu.stat"
        try:
            stat = parse_flat_keyed(read_bytes(file), str(file))
            if "nr_periods" in stat:  # v2 has cpu.stat everywhere, and these lines where the controller is enabled
                quota = _quota(level)
                found.append((float("inf") if quota is None else quota, level, stat))
        except NoData:
            continue
    if not found:
        raise NoData("no CPU controller in the control group or its ancestors")
    cores, level, stat = min(found, key=lambda entry: entry[0])  # the first, so the group itself, of equal ones
    nanoseconds = "throttled_time"
    return Throttling(
        directory=level.directory,
        quota_cores=None if cores == float("inf") else cores,
        periods=stat["nr_periods"],
        throttled_periods=stat.get("nr_throttled", 0),
        throttled_seconds=stat[nanoseconds] / NANOSECONDS
        if nanoseconds in stat
        else stat.get("throttled_usec", 0) / MICROSECONDS,
    )


def read_cpu_seconds(levels: Sequence[Level]) -> tuple[Path, float]:
    """Read the CPU time of a group and its descendants.

    Args:
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
        file = level.directory / "cpuacct.usage"
        return level.directory, parse_number(read_bytes(file), str(file)) / NANOSECONDS
    file = level.directory / "cpu.stat"
    stat = parse_flat_keyed(read_bytes(file), str(file))
    if "usage_usec" not in stat:
        raise NoData(f"{file}: no line usage_usec")
    return level.directory, stat["usage_usec"] / MICROSECONDS


def _quota(level: Level) -> float | None:
    if level.version == V1:
        quota, period = (level.directory / name for name in ("cpu.cfs_quota_us", "cpu.cfs_period_us"))
        return quota_cores(read_bytes(quota), read_bytes(period), str(quota))
    file = level.directory / "cpu.max"
    return parse_cpu_max(read_bytes(file), str(file))
