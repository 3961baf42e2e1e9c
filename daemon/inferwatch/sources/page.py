"""A scraped page while it is being read: which of its samples count."""

import math
from collections.abc import Callable
from typing import Final

from inferwatch.model import ParsedPage, SeriesId

CREATED_BESIDE: Final = ("_total", "_count", "_bucket")
CREATED_TYPES: Final = frozenset({"counter", "histogram", "summary"})


class Known:
    """A series that was met, and where it stands on the page being read."""

    __slots__ = ("page", "position", "series", "size", "stem")

    def __init__(self, series: SeriesId) -> None:
        self.series = series
        self.size = len(series.name) + sum(len(name) + len(value) for name, value in series.labels)
        self.stem = series.name.removesuffix("_created") if series.name.endswith("_created") else None
        self.page = 0
        self.position = 0


class Page:
    """What has been read of the page so far."""

    def __init__(self, number: int, expired: Callable[[], bool], *, openmetrics: bool) -> None:
        self.number = number
        self.expired = expired
        self.openmetrics = openmetrics
        self.values: list[tuple[SeriesId, float]] = []
        self.types: dict[str, str] = {}
        self.created: list[Known] = []
        self._not_finite = 0
        self._duplicate = 0

    def add_odd(self, known: Known, value: float) -> None:
        """Take a sample that is not finite or not the first of its series: the last finite one counts."""
        if not math.isfinite(value):
            self._not_finite += 1
            if known.page != self.number:
                known.page, known.position = self.number, -1
        elif known.position < 0:  # the first finite one
            known.position = len(self.values)
            self.values.append((known.series, value))
            if known.stem is not None:
                self.created.append(known)
        else:
            self._duplicate += 1
            self.values[known.position] = (known.series, value)

    def finish(self) -> ParsedPage:
        """Leave out when each counter and histogram was made, which Python's client puts on the page as a gauge.

        A gauge that only happens to end in `_created` stays: there is no counter or histogram of that name beside it.
        """
        dropped = {"not_finite": self._not_finite, "duplicate": self._duplicate}
        dropped = {reason: count for reason, count in dropped.items() if count}
        if not self.created:
            return ParsedPage(self.values, self.types, dropped)
        names = {series.name for series, _ in self.values}
        skip = {known.position for known in self.created if self._is_created(known.stem or "", names)}
        kept = [pair for position, pair in enumerate(self.values) if position not in skip]
        return ParsedPage(kept, self.types, dropped)

    def _is_created(self, stem: str, names: set[str]) -> bool:
        return self.types.get(stem) in CREATED_TYPES or any(stem + suffix in names for suffix in CREATED_BESIDE)
