"""Read memory use, limits and events of a control group, of either version."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from inferwatch.errors import NoData
from inferwatch.sources.cgroup.files import GroupFiles
from inferwatch.sources.cgroup.tree import V1, Level
from inferwatch.sources.cgroup.values import UNLIMITED_FROM, parse_flat_keyed, parse_limit, parse_number
from inferwatch.sources.hostfs import read_bytes

USAGE: Final = {1: "memory.usage_in_bytes", 2: "memory.current"}
LIMIT: Final = {1: "memory.limit_in_bytes", 2: "memory.max"}
PEAK: Final = {1: "memory.max_usage_in_bytes", 2: "memory.peak"}  # v2's since 5.19
EVENTS: Final = ("low", "high", "max", "oom")


@dataclass(frozen=True, slots=True)
class MemoryGroup:
    """Memory of a control group, its descendants included; None is what there is not.

    Args:
        directory: Where it is, which tells one group from its successor.
        usage_bytes: Memory charged to it, page cache and kernel memory included.
        working_set_bytes: Usage without the inactive page cache, which can be had back at once.
        limit_bytes: The lowest limit of it and its ancestors.
        high_bytes: The lowest limit of it and its ancestors above which allocations are slowed down (v2).
        peak_bytes: Largest usage so far.
        swap_bytes: Swap charged to it.
        events: How often its usage was low, high, max or oom, by event (v2's memory.events; v1 has only max).
        oom_kills: Processes in it that the kernel killed for want of memory.
    """

    directory: Path
    usage_bytes: int
    working_set_bytes: int | None = None
    limit_bytes: int | None = None
    high_bytes: int | None = None
    peak_bytes: int | None = None
    swap_bytes: int | None = None
    events: Mapping[str, int] | None = None
    oom_kills: int | None = None


def read_memory(files: GroupFiles, levels: Sequence[Level]) -> MemoryGroup:
    """Read a group.

    Args:
        files: Reads; limits are up to 30 seconds old.
        levels: It and its ancestors, itself first. Where v2 does not control memory so far down, the nearest ancestor
            in which it does is the group that counts.

    Raises:
        NoData: When none of them has a memory controller.
        ParseError: When a file is malformed.
        SourceError: When a file can't be read.
    """
    controlled = _controlled(files, levels)
    group = controlled[0]
    usage, stat = _usage(files, group), _keyed(files, group, "memory.stat")
    limits = [_limit(files, level, LIMIT[level.version]) for level in (group, *_charged(files, controlled))]
    limits.append(_inherited(group, stat))
    highs = [_limit(files, level, "memory.high") for level in controlled if level.version != V1]
    swap = stat.get("total_swap") if group.version == V1 else files.read(group, "memory.swap.current", parse_number)
    return MemoryGroup(
        directory=group.directory,
        usage_bytes=usage,
        working_set_bytes=_working_set(group, usage, stat),
        limit_bytes=min((limit for limit in limits if limit is not None), default=None),
        high_bytes=min((high for high in highs if high is not None), default=None),
        peak_bytes=files.read(group, PEAK[group.version], parse_number),
        swap_bytes=swap,
        events=_events(files, group),
        oom_kills=_keyed(files, group, _kills_file(group)).get("oom_kill"),
    )


def read_headroom(files: GroupFiles, levels: Sequence[Level]) -> int | None:
    """Return the bytes that a group or an ancestor has left at least, limit less working set; None without a limit.

    Siblings use it up too. Arguments and errors are those of `read_memory`.
    """
    controlled = _controlled(files, levels)
    rooms = (_room(files, level) for level in (controlled[0], *_charged(files, controlled)))
    return min((room for room in rooms if room is not None), default=None)


def read_oom_kills(level: Level) -> int | None:
    """Return how many processes in a group were killed for want of memory; None where it is not told (v1 before 4.13).

    Raises:
        ParseError: When the file is malformed.
        SourceError: When it can't be read.
    """
    file = level.directory / _kills_file(level)
    try:
        return parse_flat_keyed(read_bytes(file), str(file)).get("oom_kill")
    except NoData:
        return None


def _controlled(files: GroupFiles, levels: Sequence[Level]) -> Sequence[Level]:
    """Return the levels that have a memory controller."""
    found = [level for level in levels if files.has(level, USAGE[level.version])]
    if not found:
        raise NoData("no memory controller in the control group or its ancestors")
    return found


def _charged(files: GroupFiles, controlled: Sequence[Level]) -> Sequence[Level]:
    """Return the ancestors to which the group's memory is charged too: all, but for old v1 without use_hierarchy."""
    for index, level in enumerate(controlled[1:], 1):
        if level.version == V1 and files.setting(level, "memory.use_hierarchy", parse_number) == 0:
            return controlled[1:index]
    return controlled[1:]


def _usage(files: GroupFiles, level: Level) -> int:
    usage = files.read(level, USAGE[level.version], parse_number)
    if usage is None:
        raise NoData(f"{level.directory}: the control group is gone")
    return usage


def _room(files: GroupFiles, level: Level) -> int | None:
    limit = _limit(files, level, LIMIT[level.version])
    if limit is None and level.version != V1:
        return None
    stat = _keyed(files, level, "memory.stat")
    limits = [found for found in (limit, _inherited(level, stat)) if found is not None]
    if not limits:
        return None
    usage = _usage(files, level)
    working_set = _working_set(level, usage, stat)
    return max(0, min(limits) - (usage if working_set is None else working_set))


def _inherited(level: Level, stat: Mapping[str, int]) -> int | None:
    """Return the lowest limit of all ancestors as v1 tells it, also of those that a container does not see."""
    limit = stat.get("hierarchical_memory_limit", UNLIMITED_FROM)
    return limit if level.version == V1 and limit < UNLIMITED_FROM else None


def _working_set(level: Level, usage: int, stat: Mapping[str, int]) -> int | None:
    cache = stat.get("total_inactive_file" if level.version == V1 else "inactive_file")
    return None if cache is None else max(0, usage - cache)


def _events(files: GroupFiles, level: Level) -> Mapping[str, int]:
    if level.version == V1:
        failures = files.read(level, "memory.failcnt", parse_number)
        return {} if failures is None else {"max": failures}
    found = _keyed(files, level, "memory.events")
    return {event: found[event] for event in EVENTS if event in found}


def _kills_file(level: Level) -> str:
    return "memory.oom_control" if level.version == V1 else "memory.events"


def _keyed(files: GroupFiles, level: Level, name: str) -> Mapping[str, int]:
    return files.read(level, name, parse_flat_keyed) or {}


def _limit(files: GroupFiles, level: Level, name: str) -> int | None:
    return files.setting(level, name, parse_limit)
