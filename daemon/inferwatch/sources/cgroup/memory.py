"""Read memory use, limits and events of a control group, of either version."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from inferwatch.errors import NoData
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
        headroom_bytes: The least that it or an ancestor has left, limit less working set; siblings use it up too.
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
    headroom_bytes: int | None = None
    high_bytes: int | None = None
    peak_bytes: int | None = None
    swap_bytes: int | None = None
    events: Mapping[str, int] | None = None
    oom_kills: int | None = None


@dataclass(frozen=True, slots=True)
class _Use:
    """What decides about one level: usage, the part of it that is in use, and limit."""

    usage: int
    working_set: int | None
    limit: int | None
    stat: Mapping[str, int]


def read_memory(levels: Sequence[Level]) -> MemoryGroup:
    """Read a group.

    Args:
        levels: It and its ancestors, itself first. Where v2 does not control memory so far down, the nearest ancestor
            in which it does is the group that counts.

    Raises:
        NoData: When none of them has a memory controller.
        ParseError: When a file is malformed.
        SourceError: When a file can't be read.
    """
    controlled = [level for level in levels if (level.directory / USAGE[level.version]).exists()]
    if not controlled:
        raise NoData("no memory controller in the control group or its ancestors")
    group = controlled[0]
    own = _use(group)
    uses = [own, *(_use(level) for level in _charged(controlled))]
    limits = [use.limit for use in uses if use.limit is not None]
    highs = [high for level in controlled if (high := _limit(level, "memory.high")) is not None]
    swap = own.stat.get("total_swap") if group.version == V1 else _number(group, "memory.swap.current")
    return MemoryGroup(
        directory=group.directory,
        usage_bytes=own.usage,
        working_set_bytes=own.working_set,
        limit_bytes=min(limits, default=None),
        headroom_bytes=min((room for use in uses if (room := _room(use)) is not None), default=None),
        high_bytes=min(highs, default=None),
        peak_bytes=_number(group, PEAK[group.version]),
        swap_bytes=swap,
        events=_events(group),
        oom_kills=read_oom_kills(group),
    )


def read_oom_kills(level: Level) -> int | None:
    """Return how many processes in a group were killed for want of memory; None where it is not told (v1 before 4.13).

    Raises:
        ParseError: When the file is malformed.
        SourceError: When it can't be read.
    """
    file = "memory.oom_control" if level.version == V1 else "memory.events"
    return _keyed(level, file).get("oom_kill")


def _charged(controlled: Sequence[Level]) -> Sequence[Level]:
    """Return the ancestors to which the group's memory is charged too: all, but for old v1 without use_hierarchy."""
    for index, level in enumerate(controlled[1:], 1):
        if level.version == V1 and _number(level, "memory.use_hierarchy") == 0:
            return controlled[1:index]
    return controlled[1:]


def _use(level: Level) -> _Use:
    usage = parse_number(read_bytes(level.directory / USAGE[level.version]), _name(level, USAGE[level.version]))
    stat = _keyed(level, "memory.stat")
    cache = stat.get("total_inactive_file" if level.version == V1 else "inactive_file")
    limit = _limit(level, LIMIT[level.version])
    # v1 tells the lowest limit of all ancestors, also of those that a container does not see
    inherited = stat.get("hierarchical_memory_limit", UNLIMITED_FROM)
    if level.version == V1 and inherited < UNLIMITED_FROM:
        limit = inherited if limit is None else min(limit, inherited)
    return _Use(usage, None if cache is None else max(0, usage - cache), limit, stat)


def _room(use: _Use) -> int | None:
    if use.limit is None:
        return None
    return max(0, use.limit - (use.usage if use.working_set is None else use.working_set))


def _events(level: Level) -> Mapping[str, int]:
    if level.version == V1:
        failures = _number(level, "memory.failcnt")
        return {} if failures is None else {"max": failures}
    found = _keyed(level, "memory.events")
    return {event: found[event] for event in EVENTS if event in found}


def _name(level: Level, file: str) -> str:
    return str(level.directory / file)


def _keyed(level: Level, file: str) -> Mapping[str, int]:
    try:
        return parse_flat_keyed(read_bytes(level.directory / file), _name(level, file))
    except NoData:
        return {}


def _number(level: Level, file: str) -> int | None:
    try:
        return parse_number(read_bytes(level.directory / file), _name(level, file))
    except NoData:
        return None


def _limit(level: Level, file: str) -> int | None:
    try:
        return parse_limit(read_bytes(level.directory / file), _name(level, file))
    except NoData:
        return None
