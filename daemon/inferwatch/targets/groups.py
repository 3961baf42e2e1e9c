"""Which processes belong together: what matches, its descendants, and those whose parents are gone."""

from collections.abc import Iterable

from inferwatch.targets.processes import Processes
from inferwatch.targets.recognisers import CHILD
from inferwatch.targets.records import Joined, Key, Record


class Grouping:
    """Assigns processes to targets.

    A user's rule that holds for a process decides; then its parent's target; then the target that it came to through a
    parent that has ended meanwhile; then what it is recognised as.

    Args:
        processes: All processes; what they belong to is noted in their records.
    """

    def __init__(self, processes: Processes) -> None:
        self._processes = processes
        self._members: list[Record] = []

    def assign(self) -> dict[Key, list[Record]]:
        """Return the targets with their processes, the oldest first."""
        owners: dict[int, Key | None] = {}
        groups: dict[Key, list[Record]] = {}
        before, self._members = self._members, []
        for record in before:
            record.is_target = False
        for record in self._candidates():
            if record.pid not in owners:
                self._climb(record, owners)
            key = owners[record.pid]
            if key is not None:
                record.is_target = True
                groups.setdefault(key, []).append(record)
                self._members.append(record)
        for members in groups.values():
            members.sort(key=age)
        return groups

    def _candidates(self) -> Iterable[Record]:
        """Return what matches, what was in a target, and all their descendants; nothing else can be in one."""
        children: dict[int, list[Record]] = {}
        todo: list[Record] = []
        for record in self._processes:
            children.setdefault(record.ppid, []).append(record)
            if record.match is not None or record.joined is not None:
                todo.append(record)
        found: dict[int, Record] = {}
        while todo:
            record = todo.pop()
            if record.pid not in found:
                found[record.pid] = record
                todo += children.get(record.pid, ())
        return found.values()

    def _climb(self, record: Record | None, owners: dict[int, Key | None]) -> None:
        """Decide for a process and all above it that are not decided yet, from the top."""
        path: list[Record] = []
        while record is not None and record.pid not in owners:
            owners[record.pid] = None  # also ends a circle, which pids used again may feign
            path.append(record)
            record = parent_of(record, self._processes)
        for step in reversed(path):
            parent = parent_of(step, self._processes)
            inherited = owners.get(parent.pid) if parent is not None else None
            owners[step.pid] = self._decide(step, parent, inherited)

    @staticmethod
    def _decide(record: Record, parent: Record | None, inherited: Key | None) -> Key | None:
        match, joined = record.match, record.joined
        if match is not None and match.rule:
            record.joined = None
            return Key(rule=match.rule)
        if inherited is not None:
            record.joined = Joined(inherited, record.ppid)
            return inherited
        if joined is not None and (parent is None or record.ppid != joined.ppid):
            return joined.key
        record.joined = None
        if match is None:
            return None
        return Key(siblings=(match.what.engine, record.ppid)) if match.what.siblings else Key(root=record.id)


def parent_of(record: Record, processes: Processes) -> Record | None:
    """Return the parent where it is alive; a younger process has only its pid."""
    parent = processes.get(record.ppid)
    return parent if parent is not None and age(parent) <= age(record) else None


def age(record: Record) -> tuple[int, int]:
    """Return what orders processes by age, the oldest first."""
    return (record.id.start_ticks if record.id is not None else 0, record.pid)


def role_of(record: Record, processes: Processes) -> str:
    """Return what a process does in its target.

    A fork has its parent's command line until it gives itself a title, but is not what its parent is.
    """
    if record.match is None:
        return CHILD
    parent = parent_of(record, processes)
    is_fork = parent is not None and parent.is_target and parent.fingerprint == record.fingerprint
    return CHILD if is_fork else record.match.what.role
