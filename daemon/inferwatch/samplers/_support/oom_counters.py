"""Read by how much the kernel's counters of OOM kills rose: the host's and those of the targets' control groups."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Final

from inferwatch.errors import NoData
from inferwatch.samplers._support.troubles import Troubles
from inferwatch.sources.cgroup.memory import USAGE, read_oom_kills
from inferwatch.sources.cgroup.tree import CgroupTree, Level
from inferwatch.sources.hostfs import HostFs, read_bytes
from inferwatch.sources.procfs.vmstat import parse_vmstat
from inferwatch.targets.model import Target

KEPT_RUNS: Final = 12


@dataclass(frozen=True, slots=True)
class Rises:
    """By how much the counters rose since the last reading.

    Args:
        host: The host's; None on a kernel that does not count (before 4.13).
        targets: Those of control groups that hold one target alone, by target; others are not attributed.
    """

    host: int | None
    targets: Mapping[str, int]


@dataclass(slots=True)
class _Group:
    level: Level
    targets: set[str] = field(default_factory=set)
    kills: int | None = None
    runs_left: int = 0


class OomCounters:
    """Reads the counters; their first value, and that of a new control group, is what later ones are compared with.

    Args:
        hostfs: The host's file systems.
    """

    def __init__(self, hostfs: HostFs) -> None:
        self._hostfs = hostfs
        self._tree = CgroupTree(hostfs)
        self._host: int | None = None
        self._groups: dict[Path, _Group] = {}

    def read(self, targets: Sequence[Target], troubles: Troubles) -> Rises:
        """Read all of them."""
        self._note(targets)
        rises: dict[str, int] = {}
        for group in self._groups.values():
            kills = troubles.attempt(partial(read_oom_kills, group.level))
            if kills is None:
                continue
            rise = max(0, kills - group.kills) if group.kills is not None else 0
            group.kills = kills
            if len(group.targets) == 1:
                (target,) = group.targets
                rises[target] = rises.get(target, 0) + rise
        return Rises(troubles.attempt(self._host_rise), rises)

    def _note(self, targets: Sequence[Target]) -> None:
        """Note the groups of all targets; those of a target that has just gone stay for some runs.

        A target that was killed is gone from the table before its control group's counter is read.
        """
        found: dict[Path, set[str]] = {}
        for target in targets:
            if level := self._level(target):
                found.setdefault(level.directory, set()).add(target.name)
                self._groups.setdefault(level.directory, _Group(level))
        for directory, group in list(self._groups.items()):
            group.runs_left = KEPT_RUNS if directory in found else group.runs_left - 1
            group.targets = found.get(directory, group.targets)
            if group.runs_left <= 0:
                del self._groups[directory]

    def _host_rise(self) -> int:
        kills = parse_vmstat(read_bytes(self._hostfs.proc("vmstat"))).values.get("oom_kill")
        if kills is None:
            raise NoData("/proc/vmstat: no oom_kill")
        before, self._host = self._host, kills
        return 0 if before is None else max(0, kills - before)

    def _level(self, target: Target) -> Level | None:
        """Return the control group to which the target's memory is charged."""
        levels = self._tree.levels("memory", target.cgroup.unified, target.cgroup.controllers)
        return next((level for level in levels if (level.directory / USAGE[level.version]).exists()), None)
