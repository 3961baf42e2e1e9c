"""Several upstream series as one: running totals of counters that survive the restart of one of their parts."""

from collections.abc import Hashable, Iterable, Mapping
from typing import Final

from inferwatch.engines.rules import Combine

MAX_GONE: Final = 1024
Vector = tuple[float, ...]


class Totals:
    """The sum of counters that belong to several parts (ranks, finish reasons), element by element.

    A counter that stands alone goes through as it is: when it falls, whoever reads it sees a reset. A sum can't be
    treated so: when one part of 1000 restarts, the sum falls a little, which reads as a reset of *everything* and makes
    a rate as high as the whole total; when a part vanishes and comes back, its whole count looks like new work. So what
    a restarted or vanished part had counted stays in the sum. When all parts that had counted anything restart together
    the engine did, and the sum falls with them, so that it agrees with the engine's own page again.

    Args:
        width: Number of elements of a part.
        witness: The element that tells a restart by falling (of a histogram the number of observations: its sum may
            fall).
    """

    __slots__ = ("_base", "_gone", "_last", "_shown", "_witness", "page")

    def __init__(self, width: int, witness: int) -> None:
        self._witness = witness
        self._last: dict[Hashable, Vector] = {}
        self._gone: dict[Hashable, Vector] = {}
        self._base = [0.0] * width
        self._shown: Vector = (0.0,) * width
        self.page = 0

    def add(self, parts: Mapping[Hashable, Vector]) -> Vector:
        """Take the present counts of the parts (one at least); the sum never falls but when all of them restarted."""
        restarted = {source for source, now in parts.items() if self._fell(self._last.get(source), now)}
        counting = [source for source, last in self._last.items() if last[self._witness] > 0]
        if restarted and all(source in restarted or source not in parts for source in counting):
            self._forget()
        else:
            self._carry(parts, restarted)
        self._last = dict(parts)
        sums = (sum(column) for column in zip(*parts.values(), strict=True))
        total = (base + part for base, part in zip(self._base, sums, strict=True))
        self._shown = tuple(max(before, now) for before, now in zip(self._shown, total, strict=True))  # float rounding
        return self._shown

    def _forget(self) -> None:
        self._gone.clear()
        self._base = [0.0] * len(self._base)
        self._shown = (0.0,) * len(self._base)

    def _carry(self, parts: Mapping[Hashable, Vector], restarted: Iterable[Hashable]) -> None:
        for source in restarted:
            self._shift(self._last[source], 1.0)
        for source, last in self._last.items():
            if source not in parts:
                self._gone[source] = last
                self._shift(last, 1.0)
        for source in [source for source in self._gone if source in parts]:
            before = self._gone.pop(source)
            if not self._fell(before, parts[source]):
                self._shift(before, -1.0)
        while len(self._gone) > MAX_GONE:
            self._gone.pop(next(iter(self._gone)))

    def _shift(self, amounts: Vector, sign: float) -> None:
        for index, amount in enumerate(amounts):
            self._base[index] += sign * amount

    def _fell(self, before: Vector | None, now: Vector) -> bool:
        return before is not None and now[self._witness] < before[self._witness]


class Ledger:
    """The totals of one engine; a series that never had more than one part has none."""

    def __init__(self) -> None:
        self._totals: dict[Hashable, Totals] = {}
        self._page = 0

    def add(self, key: Hashable, parts: Mapping[Hashable, Vector], *, witness: int = 0) -> Vector:
        """Return the sum of the parts, or the only part as it is when there never was another."""
        totals = self._totals.get(key)
        first = next(iter(parts.values()))
        if totals is None:
            if len(parts) == 1:
                return first
            totals = self._totals[key] = Totals(len(first), witness)
        totals.page = self._page
        return totals.add(parts)

    def turn_page(self) -> None:
        """Begin the next page; totals that are not on the page any more are forgotten once they are the most part."""
        current = [key for key, totals in self._totals.items() if totals.page == self._page]
        if len(self._totals) > 2 * len(current) + MAX_GONE:
            self._totals = {key: self._totals[key] for key in current}
        self._page += 1


def combine(how: Combine, values: Iterable[float]) -> float:
    """Make one gauge of several."""
    if how is Combine.SUM:
        return sum(values)
    return max(values) if how is Combine.MAX else next(iter(values))
