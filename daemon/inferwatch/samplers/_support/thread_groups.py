"""Adds up processes to (target, role), such that no sum falls and nothing is counted twice.

A sum is made of the increases of processes, and each process is followed by its identity, whichever target it is in:
what it did is counted once, in the target that it is in then. What it did while it was in none is counted in none.
"""

from collections import OrderedDict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields
from typing import Final

from inferwatch.model import Sample
from inferwatch.samplers._support.thread_counters import Counters, Track, Values, state_samples
from inferwatch.samplers._support.thread_debts import Debts
from inferwatch.samplers._support.thread_names import NameSums
from inferwatch.sources.task_totals import ProcessTotals, ThreadStates
from inferwatch.targets.model import ProcessId, Target, TargetTable

REAPED: Final = "reaped_children"
ABSENT_PROCESSES: Final = 512  # known ones that are in no target; one that comes back later counts with its whole past
ABSENT_TARGETS: Final = 256  # names that may come back; one that comes back later begins anew
MOST_ANCESTORS: Final = 64  # pids read at different moments could form a ring


@dataclass(slots=True)
class _Sums:
    """What is kept of one target."""

    names: NameSums
    groups: dict[str, Counters] = field(default_factory=dict)


@dataclass(slots=True)
class _Process:
    """What is kept of one process."""

    ppid: int
    round: int  # the last one in which it was in a target
    total: Track = field(default_factory=Track)
    rest: Track = field(default_factory=Track)
    reaped: Track = field(default_factory=Track)
    names: dict[str, Track] = field(default_factory=dict)
    debts: Debts = field(default_factory=Debts)
    owed_by: Debts | None = None  # its parent's, while this one is gone
    read: bool = False
    away: bool = False  # was in no target since it was read last
    source: object = None  # of the last reading


class Groups:
    """Sums by target and role, and by thread name.

    Args:
        name_limit: Most thread names of one target; a further one counts as `other`.
    """

    def __init__(self, name_limit: int) -> None:
        self._name_limit = name_limit
        self._targets: OrderedDict[str, _Sums] = OrderedDict()
        self._processes: OrderedDict[ProcessId, _Process] = OrderedDict()
        self._round = 0
        self._source: object = None

    def take(
        self, table: TargetTable, processes: Mapping[int, ProcessTotals], source: object = None
    ) -> Iterator[Sample]:
        """Add a reading and yield the samples of all targets in the table.

        Args:
            table: Which processes are which targets.
            processes: The reading, by pid.
            source: What the reading comes from; another one than before begins its figures anew.
        """
        self._round += 1
        self._source = source
        gone = self._note_the_gone(table, processes)
        for target in table.targets:
            sums = self._targets.get(target.name)
            if sums is None:
                sums = self._targets[target.name] = _Sums(NameSums(self._name_limit))
            self._targets.move_to_end(target.name)
            yield from self._take_target(target, sums, processes)
        for kept in gone:
            if kept.round != self._round:
                kept.names = {}  # one that comes back begins its names anew (`_skip`)
        self._forget(table)

    def _note_the_gone(self, table: TargetTable, processes: Mapping[int, ProcessTotals]) -> list[_Process]:
        """Note what was counted of processes that are gone, since their parents' figures will show it; return them."""
        alive = {
            process.id
            for target in table.targets
            for process in target.processes
            if (found := processes.get(process.id.pid)) and found.start_ticks == process.id.start_ticks
        }
        before = self._round - 1
        gone = {key.pid: kept for key, kept in self._processes.items() if kept.round == before and key not in alive}
        if not gone:
            return []
        by_pid = {key.pid: kept for key, kept in self._processes.items() if kept.round == before}
        for kept in sorted(gone.values(), key=lambda one: _depth(one, gone), reverse=True):  # children first
            parent = by_pid.get(kept.ppid)
            if parent is not None and kept.owed_by is None and kept.read:
                kept.owed_by = parent.debts
                kept.owed_by.owe(*_counted(kept))
        return list(gone.values())

    def _take_target(self, target: Target, sums: _Sums, processes: Mapping[int, ProcessTotals]) -> Iterator[Sample]:
        sums.names.begin_round()
        states: dict[str, ThreadStates] = {}
        for process in target.processes:
            kept = self._processes.get(process.id)
            if kept is None:
                kept = self._processes[process.id] = _Process(process.ppid, self._round)
            kept.away = kept.away or kept.round < self._round - 1
            kept.round, kept.ppid = self._round, process.ppid
            self._processes.move_to_end(process.id)
            found = processes.get(process.id.pid)
            if found is None or found.start_ticks != process.id.start_ticks:
                continue
            self._resume(kept, found)
            self._grow(sums, process.role, kept, found, restarted=kept.read and kept.source != self._source)
            kept.read, kept.source = True, self._source
            states[process.role] = _added(states.get(process.role, ThreadStates()), found.states)
        yield from _samples(target.name, sums, states)

    def _resume(self, kept: _Process, found: ProcessTotals) -> None:
        """Go on with a process that was missing from readings, or in no target, for a while."""
        if kept.owed_by is not None:
            kept.owed_by.forgive(*_counted(kept))
            kept.owed_by = None
        if kept.away and kept.read:
            _skip(kept, found)
        kept.away = False

    def _grow(self, sums: _Sums, role: str, kept: _Process, found: ProcessTotals, *, restarted: bool) -> None:
        counters = sums.groups.get(role)
        if counters is None:
            counters = sums.groups[role] = Counters()
        if more := kept.total.increase(found.total, restarted=restarted):
            counters.add(more)
        if found.reaped is not None and (more := kept.reaped.increase(found.reaped, restarted=restarted)):
            more = kept.debts.pay(more)
            if any(more) or REAPED in sums.groups:
                sums.groups.setdefault(REAPED, Counters()).add(more)
        self._grow_names(sums, role, kept, found, restarted=restarted)

    def _grow_names(self, sums: _Sums, role: str, kept: _Process, found: ProcessTotals, *, restarted: bool) -> None:
        for name, totals in found.by_name.items():
            living = totals.threads > 0
            if living:
                sums.names.see(role, name)
            track = kept.names.get(name)
            if track is None:
                track = kept.names[name] = Track()
                if restarted:  # its past stands in a name already, or in `other`
                    track.skip(totals.sums)
            if more := track.increase(totals.sums, restarted=restarted):
                sums.names.add(role, name, more, living=living)
        if len(kept.names) > len(found.by_name):
            kept.names = {name: track for name, track in kept.names.items() if name in found.by_name}
        more = kept.rest.increase(found.unattributed, restarted=restarted)
        if more and any(more):
            sums.names.add_other(role, more)

    def _forget(self, table: TargetTable) -> None:
        """Forget what is absent for longest, beyond the limits."""
        present = sum(len(target.processes) for target in table.targets)
        while len(self._processes) > present + ABSENT_PROCESSES:
            self._processes.popitem(last=False)
        while len(self._targets) > len(table.targets) + ABSENT_TARGETS:
            self._targets.popitem(last=False)


def _depth(kept: _Process, gone: Mapping[int, _Process]) -> int:
    """Return how many ancestors of a process are gone as well."""
    depth, parent = 0, gone.get(kept.ppid)
    while parent is not None and depth < MOST_ANCESTORS:
        depth, parent = depth + 1, gone.get(parent.ppid)
    return depth


def _counted(kept: _Process) -> tuple[Values, Values, Values]:
    """Return what was counted of a process, of its children by it, and of those children while they lived."""
    return kept.total.taken(), kept.reaped.taken(), kept.debts.owed()


def _skip(kept: _Process, found: ProcessTotals) -> None:
    """Go on from here: what the process did until now was while it was in no target."""
    kept.total.skip(found.total)
    kept.rest.skip(found.unattributed)
    if found.reaped is not None:
        kept.reaped.skip(found.reaped)
    kept.names = {name: Track() for name in found.by_name}
    for name, track in kept.names.items():
        track.skip(found.by_name[name].sums)
    kept.debts = Debts()


def _samples(name: str, sums: _Sums, states: Mapping[str, ThreadStates]) -> Iterator[Sample]:
    for role, counters in sums.groups.items():
        yield from counters.samples(name, role)
    for role, found in states.items():
        yield from state_samples(found, name, role)
    yield from sums.names.samples(name)


def _added(one: ThreadStates, other: ThreadStates) -> ThreadStates:
    return ThreadStates(*(getattr(one, item.name) + getattr(other, item.name) for item in fields(ThreadStates)))
