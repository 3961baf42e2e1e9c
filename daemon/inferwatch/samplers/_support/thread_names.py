"""Sums by thread name of one target: so many names as have a place, and `other` for the rest."""

from collections import OrderedDict
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from inferwatch.model import Sample
from inferwatch.samplers._support.thread_counters import Counters, Values

OTHER: Final = "other"
NameKey = tuple[str, str]  # role and thread name


@dataclass(slots=True)
class _Shown:
    """What is kept of a name with a place; `seen` is the last round in which it had a living thread."""

    counters: Counters
    seen: int


class NameSums:
    """Increases by role and thread name add up to those of the target; what finds no place is in `other` of its role.

    When a living thread's name needs a place, the name that had no thread for longest gives up its own: its series
    ends, it does not fall, and its past is not moved to `other`, where it would look like a burst. When the name comes
    back soon (as many as have a place are remembered) it goes on from its old sum.

    Args:
        limit: Most names with a place, of all roles together; `other` needs none.
    """

    __slots__ = ("_gone", "_limit", "_others", "_round", "_shown")

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._round = 0
        self._shown: OrderedDict[NameKey, _Shown] = OrderedDict()  # the one that was seen least recently first
        self._gone: OrderedDict[NameKey, Counters] = OrderedDict()
        self._others: dict[str, Counters] = {}

    def begin_round(self) -> None:
        """Begin a reading of the target; while it is away nothing of it grows old."""
        self._round += 1

    def see(self, role: str, name: str) -> None:
        """Note that a name has a living thread."""
        shown = self._shown.get((role, name))
        if shown is not None and shown.seen != self._round:
            shown.seen = self._round
            self._shown.move_to_end((role, name))

    def add(self, role: str, name: str, more: Values, *, living: bool) -> None:
        """Add an increase; living threads of a name have been told by `see`."""
        shown = self._shown.get((role, name))
        if shown is None and name != OTHER:
            shown = self._place((role, name), living=living)
        if shown is None:
            self.add_other(role, more)
        else:
            shown.counters.add(more)

    def add_other(self, role: str, more: Values) -> None:
        """Add an increase that belongs to no name."""
        counters = self._others.get(role)
        if counters is None:
            counters = self._others[role] = Counters()
        counters.add(more)

    def samples(self, target: str) -> Iterator[Sample]:
        """Yield the samples of all names with a place, and of `other`."""
        for (role, name), shown in self._shown.items():
            yield from shown.counters.thread_samples(target, role, name)
        for role, counters in self._others.items():
            yield from counters.thread_samples(target, role, OTHER)

    def _place(self, key: NameKey, *, living: bool) -> _Shown | None:
        """Return a place for a name, made free when a living thread needs one; None when there is none."""
        displaced = None
        if len(self._shown) >= self._limit:
            displaced = next(iter(self._shown), None)
            # A reading can miss a thread once, and another process of the target may be read after this one.
            if not living or displaced is None or self._shown[displaced].seen >= self._round - 1:
                return None
        counters = self._gone.pop(key, None) or Counters()
        if displaced is not None:
            self._gone[displaced] = self._shown.pop(displaced).counters
            if len(self._gone) > self._limit:
                self._gone.popitem(last=False)
        shown = self._shown[key] = _Shown(counters, self._round if living else 0)
        if not living:
            self._shown.move_to_end(key, last=False)
        return shown
