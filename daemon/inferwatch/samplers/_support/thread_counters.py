"""Sums of what threads did, the increases that they are made of, and their samples."""

from collections.abc import Iterator, Sequence
from dataclasses import fields
from operator import attrgetter
from typing import Final

from inferwatch.model import Family, Sample
from inferwatch.samplers._support import thread_families as families
from inferwatch.sources.task_totals import TaskSums, ThreadStates

FIELDS: Final = tuple(item.name for item in fields(TaskSums))
USER, SYSTEM, _WAIT, _TIMESLICES, _VOLUNTARY, _INVOLUNTARY, _MINOR, _MAJOR = range(len(FIELDS))
_values: Final = attrgetter(*FIELDS)

Values = Sequence[float | None]  # one a field; None where the kernel or the source does not count it


class Track:
    """What one counting thing (a process, a thread name in it) was seen to do, and what was taken from it.

    Where the source changes, or begins a thing anew, its figures can lie lower than before, or be the same past once
    more. What was taken so far is kept, so that nothing is taken twice.
    """

    __slots__ = ("_last", "_record", "_taken")

    def __init__(self) -> None:
        self._record: TaskSums | None = None
        self._last: Values = ()
        self._taken: list[float] = []

    def increase(self, now: TaskSums, *, restarted: bool = False) -> Values | None:
        """Return what was done since the last reading, the whole past at the first; None when it is nothing at all.

        Args:
            now: The figures.
            restarted: Whether they come from another source than the last ones.
        """
        if now is self._record and not restarted:
            return None
        self._record = now
        values: Values = _values(now)
        if not self._taken:
            self._last, self._taken = values, [value or 0.0 for value in values]
            return values
        grown: list[float | None] = []
        for place, (value, last) in enumerate(zip(values, self._last, strict=True)):
            if value is None:
                grown.append(None)
                continue
            base = self._taken[place] if restarted or last is None else last
            more = max(value - base, 0.0)
            self._taken[place] += more
            grown.append(more)
        self._last = values
        return grown

    def skip(self, now: TaskSums) -> None:
        """Take nothing of what was done until now."""
        self._record, self._last = now, _values(now)
        self._taken = [value or 0.0 for value in self._last]

    def taken(self) -> Values:
        """Return all that was taken so far."""
        return self._taken or (0.0,) * len(FIELDS)


class Counters:
    """Sums of one group. A quantity that the kernel does not count stays None."""

    __slots__ = ("values",)

    def __init__(self) -> None:
        self.values: list[float | None] = [None] * len(FIELDS)

    def add(self, increase: Values) -> None:
        """Add an increase."""
        self.values = [
            old if more is None else more + (old or 0.0) for old, more in zip(self.values, increase, strict=True)
        ]

    def samples(self, *labels: str) -> Iterator[Sample]:
        """Yield the samples of a group."""
        yield from self._one(families.CPU, USER, *labels, "user")
        yield from self._one(families.CPU, SYSTEM, *labels, "system")
        yield from self._one(families.WAIT, _WAIT, *labels)
        yield from self._one(families.TIMESLICES, _TIMESLICES, *labels)
        yield from self._one(families.SWITCHES, _VOLUNTARY, *labels, "voluntary")
        yield from self._one(families.SWITCHES, _INVOLUNTARY, *labels, "involuntary")
        yield from self._one(families.MINOR, _MINOR, *labels)
        yield from self._one(families.MAJOR, _MAJOR, *labels)

    def thread_samples(self, *labels: str) -> Iterator[Sample]:
        """Yield the samples of a thread name."""
        user, system = self.values[USER], self.values[SYSTEM]
        if user is not None and system is not None:
            yield families.THREAD_CPU(user + system, *labels)
        yield from self._one(families.THREAD_WAIT, _WAIT, *labels)
        yield from self._one(families.THREAD_SWITCHES, _VOLUNTARY, *labels, "voluntary")
        yield from self._one(families.THREAD_SWITCHES, _INVOLUNTARY, *labels, "involuntary")

    def _one(self, family: Family, place: int, *labels: str) -> Iterator[Sample]:
        value = self.values[place]
        if value is not None:
            yield family(value, *labels)


def total_of(sums: TaskSums, *labels: str) -> Iterator[Sample]:
    """Yield the samples of figures that are sums already."""
    counters = Counters()
    counters.add(_values(sums))
    yield from counters.samples(*labels)


def state_samples(states: ThreadStates, *labels: str) -> Iterator[Sample]:
    """Yield the number of threads, and of those in each state."""
    yield families.THREADS(states.threads, *labels)
    for item in fields(ThreadStates):
        yield families.STATES(getattr(states, item.name), *labels, item.name)
