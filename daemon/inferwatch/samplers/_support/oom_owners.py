"""Remember which target a process and a control group belonged to, for when the kernel killed it a moment ago."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from inferwatch.sources.oom import OomKill
from inferwatch.targets.model import CgroupPaths, ProcessId, Target

MOST_PROCESSES: Final = 4096
KEPT_NS: Final = 60_000_000_000  # a killed process is gone from the table of targets before its kill is read


class MatchedBy(StrEnum):
    """How a kill was found to be a target's: the values of a label."""

    PROCESS = "process"  # a process of the target
    CGROUP = "cgroup"  # a process in the target's control group, its own or a stranger's (a shell, a sidecar)


@dataclass(frozen=True, slots=True)
class Owner:
    """A process of a target as it was when last seen.

    Args:
        target: Name of the target, empty for none.
        matched_by: How it was found.
        role: Role of the process; empty when only its control group was known.
        score: Its OOM score.
    """

    target: str
    matched_by: MatchedBy
    role: str = ""
    score: int | None = None


@dataclass(frozen=True, slots=True)
class _Seen:
    owner: Owner
    comm: str
    groups: frozenset[str]
    seen_ns: int


class OomOwners:
    """Finds the target of a killed process."""

    def __init__(self) -> None:
        self._processes: dict[int, _Seen] = {}

    def remember(self, target: Target, scores: Mapping[ProcessId, int], now_ns: int) -> None:
        """Note a target's processes with their OOM scores, as far as known."""
        groups = frozenset(memory_groups(target.cgroup))
        for process in target.processes:
            pid = process.id.pid
            owner = Owner(target.name, MatchedBy.PROCESS, process.role, scores.get(process.id))
            if pid in self._processes or len(self._processes) < MOST_PROCESSES:
                self._processes[pid] = _Seen(owner, process.comm, groups, now_ns)

    def forget_old(self, now_ns: int) -> None:
        """Forget processes that have been gone for a minute: their pids may be used again."""
        for pid in [pid for pid, seen in self._processes.items() if now_ns - seen.seen_ns > KEPT_NS]:
            del self._processes[pid]

    def find(self, kill: OomKill) -> Owner | None:
        """Return whose process was killed.

        A pid counts when the name or the control group agrees with it, where both are told: below a container's /proc
        pids are others than in the kernel's log. A process that was not known (a child that had just been started,
        or a stranger) is put down to the only target in its control group, and said to be so.
        """
        seen = self._processes.get(kill.pid)
        if seen and (seen.comm == kill.comm or kill.cgroup is None or _within(kill.cgroup, seen.groups)):
            return seen.owner
        if kill.cgroup is None:
            return None
        targets = {seen.owner.target for seen in self._processes.values() if _within(kill.cgroup, seen.groups)}
        return Owner(targets.pop(), MatchedBy.CGROUP) if len(targets) == 1 else None


def memory_groups(paths: CgroupPaths) -> Iterator[str]:
    """Yield the path of the memory control group; not the root, in which everybody may be."""
    path = paths.controllers.get("memory", paths.unified)
    if path and path != "/" and ".." not in path:
        yield path


def _within(group: str, groups: frozenset[str]) -> bool:
    return any(group == other or group.startswith(f"{other}/") for other in groups)
