"""Find a robust trend in a short series of measurements, and tell it from a random walk."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from math import inf, sqrt
from statistics import median
from typing import Final

FEWEST_POINTS: Final = 8
STEPS: Final = 4  # departures from the line are compared over a quarter of the series
# Of random walks without a drift 2 in 100 reach this (4 of 8 points): simulated. The distribution does not depend on
# the size of the steps, hardly on the number of points, and has fatter tails than Student's.
SIGNIFICANT_STRENGTH: Final = 4.2

Point = tuple[float, float]


@dataclass(frozen=True, slots=True)
class Trend:
    """A trend.

    Args:
        slope: Theil-Sen estimate: the median of the slopes between all pairs of points. A third of the points can be
            outliers without moving it much.
        strength: By how many times the change along the line is larger than what chance alone would make of the
            series' own ups and downs.
    """

    slope: float
    strength: float

    @property
    def is_significant(self) -> bool:
        """Return whether a series that only wanders is unlikely to have come so far."""
        return self.strength >= SIGNIFICANT_STRENGTH


def find_trend(points: Sequence[Point]) -> Trend | None:
    """Estimate the trend of points (time, value) in ascending time; None for fewer than eight points.

    Memory that comes and goes is much like a random walk, and such a walk has a clear order most of the time, which
    tests for order (Mann-Kendall) take for a trend. So the change along the line is compared with how far a walk would
    go by itself: from the departures over a quarter of the series, which hold what lasts (a walk, the long teeth of a
    garbage collector) and little of what does not (noise).

    The cost grows with the square of the number of points: 60 take a quarter of a millisecond.
    """
    if len(points) < FEWEST_POINTS:
        return None
    slope = median((other - value) / (later - time) for (time, value), (later, other) in combinations(points, 2))
    return Trend(slope, _strength(points, slope))


def _strength(points: Sequence[Point], slope: float) -> float:
    if not slope:
        return 0.0
    apart = max(1, len(points) // STEPS)
    departures = [
        (other - value - slope * (later - time)) ** 2
        for (time, value), (later, other) in zip(points, points[apart:], strict=False)
    ]
    variance_of_a_step = sum(departures) / len(departures) / apart
    change = abs(slope) * (points[-1][0] - points[0][0])
    return change / sqrt(len(points) * variance_of_a_step) if variance_of_a_step else inf
