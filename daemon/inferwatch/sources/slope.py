"""Find a robust trend in a short series of measurements."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations, groupby, pairwise
from math import erfc, sqrt
from statistics import median
from typing import Final

FEWEST_POINTS: Final = 8  # below, the normal approximation of Kendall's statistic is poor
MOST_CORRELATION: Final = 0.95
NEGLIGIBLE_RESIDUE: Final = 1e-6  # of the spread: what is left of a straight line is rounding, and means nothing

Point = tuple[float, float]


@dataclass(frozen=True, slots=True)
class Trend:
    """A trend.

    Args:
        slope: Theil-Sen estimate: the median of the slopes between all pairs of points. A third of the points can be
            outliers without moving it much.
        p_value: Two-sided p-value of the Mann-Kendall test: how likely as clear an order is without a trend.
    """

    slope: float
    p_value: float


def find_trend(points: Sequence[Point]) -> Trend | None:
    """Estimate the trend of points (time, value) in ascending time; None for fewer than eight points.

    The test's variance is corrected for ties and, because neighbouring measurements of memory resemble each other, for
    the correlation of neighbours that remains when the trend is taken out: without that, a random walk (which memory
    that comes and goes is much like) would be called a trend most of the time.

    The cost grows with the square of the number of points: 60 take half a millisecond.
    """
    if len(points) < FEWEST_POINTS:
        return None
    slopes, score = [], 0
    for (time, value), (later, other) in combinations(points, 2):
        slopes.append((other - value) / (later - time))
        score += (other > value) - (other < value)
    slope = median(slopes)
    return Trend(slope, _p_value(points, score, slope))


def _p_value(points: Sequence[Point], score: int, slope: float) -> float:
    variance = _variance([value for _, value in points])
    if not variance or not score:
        return 1.0
    residues = _deviations([value - slope * time for time, value in points])
    if _spread(residues) > NEGLIGIBLE_RESIDUE * _spread(_deviations([value for _, value in points])):
        correlation = min(max(_neighbour_correlation(residues), 0.0), MOST_CORRELATION)
        variance *= (1 + correlation) / (1 - correlation)
    return erfc((abs(score) - 1) / sqrt(2 * variance))


def _variance(values: Sequence[float]) -> float:
    """Return the variance of Kendall's score without a trend, corrected for equal values."""
    ties = (len(list(group)) for _, group in groupby(sorted(values)))
    return (_term(len(values)) - sum(_term(size) for size in ties)) / 18


def _term(size: int) -> int:
    return size * (size - 1) * (2 * size + 5)


def _deviations(values: Sequence[float]) -> list[float]:
    mean = sum(values) / len(values)
    return [value - mean for value in values]


def _spread(deviations: Sequence[float]) -> float:
    return sum(deviation * deviation for deviation in deviations)


def _neighbour_correlation(deviations: Sequence[float]) -> float:
    """Return the correlation of each value with the next one."""
    return sum(one * two for one, two in pairwise(deviations)) / _spread(deviations)
