"""Adds up processes to (target, role), such that no sum falls while processes come and go."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields
from typing import Final

from inferwatch.model import Family, Sample
from inferwatch.samplers._support import thread_families as families
from inferwatch.sources.task_totals import ProcessTotals, TaskSums, ThreadStates
from inferwatch.targets.model import ProcessId, Target, TargetTable

OTHER: Final = "other"
FIELDS: Final = tuple(item.name for item in fields(TaskSums))
Group = tuple[str, str]


class Counters:
    """Sums of one group. A quantity that the kernel does not count stays None."""

    __slots__ = ("values",)

    def __init__(self) -> None:
        self.values: dict[str, float | None] = dict.fromkeys(FIELDS)

    def grow(self, now: TaskSums, last: TaskSums | None) -> None:
        """Add what a process did since it was read last; the whole of its past when it is new."""
        for name in FIELDS:
            value: float | None = getattr(now, name)
            if value is None:
                continue
            before = 0.0 if last is None else getattr(last, name) or 0.0
            self.values[name] = (self.values[name] or 0.0) + max(value - before, 0.0)

    def samples(self, *labels: str) -> Iterator[Sample]:
        """Yield the samples of a group."""
        yield from self._one(families.CPU, "user_seconds", *labels, "user")
        yield from self._one(families.CPU, "system_seconds", *labels, "system")
        yield from self._one(families.WAIT, "run_queue_wait_seconds", *labels)
        yield from self._one(families.TIMESLICES, "timeslices", *labels)
        yield from self._one(families.SWITCHES, "voluntary_switches", *labels, "voluntary")
        yield from self._one(families.SWITCHES, "involuntary_switches", *labels, "involuntary")
        yield from self._one(families.MINOR, "minor_faults", *labels)
        yield from self._one(families.MAJOR, "major_faults", *labels)

    def thread_samples(self, *labels: str) -> Iterator[Sample]:
        """Yield the samples of a thread name."""
        user, system = self.values["user_seconds"], self.values["system_seconds"]
        if user is not None and system is not None:
            yield families.THREAD_CPU(user + system, *labels)
        yield from self._one(families.THREAD_WAIT, "run_queue_wait_seconds", *labels)
        yield from self._one(families.THREAD_SWITCHES, "voluntary_switches", *labels, "voluntary")
        yield from self._one(families.THREAD_SWITCHES, "involuntary_switches", *labels, "involuntary")

    def _one(self, family: Family, name: str, *labels: str) -> Iterator[Sample]:
        value = self.values[name]
        if value is not None:
            yield family(value, *labels)


@dataclass(slots=True)
class _TargetSums:
    """What is kept of one target for as long as it is one."""

    groups: dict[str, Counters] = field(default_factory=dict)
    names: dict[tuple[str, str], Counters] = field(default_factory=dict)
    last: dict[ProcessId, ProcessTotals] = field(default_factory=dict)


class Groups:
    """Sums by target and role, and by thread name.

    Args:
        name_limit: Most thread names of one target; a further one counts as `other`.
    """

    def __init__(self, name_limit: int) -> None:
        self._name_limit = name_limit
        self._targets: dict[str, _TargetSums] = {}

    def take(self, table: TargetTable, processes: Mapping[int, ProcessTotals]) -> Iterator[Sample]:
        """Add a reading and yield the samples of all targets in the table; what is no target any more is forgotten."""
        self._targets = {target.name: self._targets.get(target.name, _TargetSums()) for target in table.targets}
        for target in table.targets:
            yield from self._take_target(target, self._targets[target.name], processes)

    def _take_target(
        self, target: Target, kept: _TargetSums, processes: Mapping[int, ProcessTotals]
    ) -> Iterator[Sample]:
        states: dict[str, ThreadStates] = {}
        last: dict[ProcessId, ProcessTotals] = {}
        for process in target.processes:
            found = processes.get(process.id.pid)
            if found is None or found.start_ticks != process.id.start_ticks:
                continue
            before = kept.last.get(process.id)
            kept.groups.setdefault(process.role, Counters()).grow(found.total, before.total if before else None)
            self._grow_names(kept, process.role, found, before)
            states[process.role] = _added(states.get(process.role, ThreadStates()), found.states)
            last[process.id] = found
        kept.last = last
        yield from _samples(target.name, kept, states)

    def _grow_names(self, kept: _TargetSums, role: str, found: ProcessTotals, before: ProcessTotals | None) -> None:
        for name, totals in found.by_name.items():
            known = before.by_name.get(name) if before else None
            key = (role, name)
            if key not in kept.names and len(kept.names) >= self._name_limit:
                key = (role, OTHER)
            kept.names.setdefault(key, Counters()).grow(totals.sums, known.sums if known else None)


def _samples(name: str, kept: _TargetSums, states: Mapping[str, ThreadStates]) -> Iterator[Sample]:
    for role, counters in kept.groups.items():
        yield from counters.samples(name, role)
    for role, found in states.items():
        yield from state_samples(found, name, role)
    for (role, thread), counters in kept.names.items():
        yield from counters.thread_samples(name, role, thread)


def state_samples(states: ThreadStates, *labels: str) -> Iterator[Sample]:
    """Yield the number of threads, and of those in each state."""
    yield families.THREADS(states.threads, *labels)
    for item in fields(ThreadStates):
        yield families.STATES(getattr(states, item.name), *labels, item.name)


def _added(one: ThreadStates, other: ThreadStates) -> ThreadStates:
    return ThreadStates(*(getattr(one, item.name) + getattr(other, item.name) for item in fields(ThreadStates)))
