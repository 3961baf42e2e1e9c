"""Classic histograms from their lines; one that contradicts itself is no histogram."""

import math
from collections.abc import Mapping
from typing import Final

from inferwatch.model import HistogramValue

LARGEST_COUNT: Final = 2.0**63  # no engine counts that far; sums of less stay finite


def assemble(
    buckets: Mapping[float, float], total: float | None, count: float | None, scale: float = 1.0
) -> HistogramValue | None:
    """Make a histogram, None when it is broken.

    Args:
        buckets: Upper bound to cumulative count, +Inf included, in any order.
        total: Sum of the observations, when the page has it.
        count: Number of observations, when the page has it.
        scale: Factor for bounds and sum.

    Returns:
        The histogram; None without +Inf, with counts that fall, are negative or have a fraction, with a number of
        observations that is not the count of +Inf, with a negative bound or sum (nothing that an engine measures is
        negative, and OpenMetrics allows no such sum), or with bounds that are the same once scaled.
    """
    if math.inf not in buckets or (count is not None and count != buckets[math.inf]):
        return None
    bounds = sorted(buckets)
    counts = [buckets[bound] for bound in bounds]
    if bounds[0] < 0 or counts[0] < 0 or counts != sorted(counts) or counts[-1] >= LARGEST_COUNT:
        return None
    if not all(float(number).is_integer() for number in counts) or (total is not None and total < 0):
        return None
    finite = tuple(bounds[:-1]) if scale == 1.0 else tuple(_scaled(bound, scale) for bound in bounds[:-1])
    if len(set(finite)) != len(finite):
        return None
    return HistogramValue(finite, tuple(counts), None if total is None else total * scale)


def _scaled(bound: float, scale: float) -> float:
    return float(f"{bound * scale:.12g}")  # 3 ms are 0.003 s, not 0.0030000000000000001
