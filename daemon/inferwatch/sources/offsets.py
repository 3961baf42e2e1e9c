"""Keep a target's totals from falling while the counters behind them are replaced."""

from collections import OrderedDict
from collections.abc import Hashable
from dataclasses import dataclass
from typing import Final

MOST_SERIES: Final = 20_000  # of 1,000 targets, the most that are shown, 15 counters each, and of some that are gone


@dataclass(slots=True)
class _Total:
    source: Hashable
    last: float
    total: float


class SteadyTotals:
    """Totals per series over counters of sources (control groups, processes) that follow each other.

    The first sight of a series takes the counter as it is. A counter of the same source that fell began anew, and what
    it shows was counted since. Another source's counter is a new base line: what it counted before belongs to whoever
    was in it, and would look like a burst.

    A series that is not updated keeps its total for when its target comes back; the longest unused are dropped beyond
    a limit.

    Args:
        limit: Most series kept.
    """

    __slots__ = ("_limit", "_totals")

    def __init__(self, limit: int = MOST_SERIES) -> None:
        self._limit = limit
        self._totals: OrderedDict[Hashable, _Total] = OrderedDict()

    def update(self, series: Hashable, source: Hashable, value: float) -> float:
        """Take in a reading and return the total.

        Args:
            series: Family and label values.
            source: Identity of whatever counts.
            value: The counter.
        """
        entry = self._totals.get(series)
        if entry is None:
            entry = self._totals[series] = _Total(source, value, value)
            if len(self._totals) > self._limit:
                self._totals.popitem(last=False)
        elif entry.source == source:
            entry.total += value - entry.last if value >= entry.last else value
        self._totals.move_to_end(series)
        entry.source, entry.last = source, value
        return entry.total
