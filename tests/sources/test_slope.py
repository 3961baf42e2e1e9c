import random
from collections.abc import Callable
from statistics import median

import pytest

from inferwatch.sources.slope import find_trend


def series(values: list[float], spacing: float = 30.0) -> list[tuple[float, float]]:
    return [(index * spacing, value) for index, value in enumerate(values)]


def significant(values: list[float]) -> bool:
    trend = find_trend(series(values))
    assert trend is not None
    return trend.is_significant


def share(make: Callable[[random.Random], list[float]], times: int) -> float:
    """Return how many of many series are called a trend."""
    chance = random.Random(2)  # noqa: S311 - repeatable series, not a secret
    return sum(significant(make(chance)) for _ in range(times)) / times


def walk(chance: random.Random, points: int = 60) -> list[float]:
    height = 0.0
    return [height := height + chance.gauss(0, 1) for _ in range(points)]


def teeth(chance: random.Random, period: float, points: int = 60) -> list[float]:
    """Return what a garbage collector makes: it rises at uneven pace and falls at uneven heights."""
    height, values = chance.random(), []
    for _ in range(points):
        height += chance.uniform(0.5, 1.5) / period
        if height > chance.uniform(0.8, 1.2):
            height = 0.0
        values.append(height)
    return values


def noisy(chance: random.Random, value: float) -> float:
    return median(value + chance.gauss(0, 1) for _ in range(5))


def test_straight_line_has_its_slope() -> None:
    trend = find_trend(series([1e9 + 3000 * index for index in range(20)]))

    assert trend is not None
    assert trend.slope == pytest.approx(100)
    assert trend.is_significant


def test_quarter_of_outliers_does_not_move_the_slope() -> None:
    values = [1e9 + 3000.0 * index for index in range(60)]
    for index in range(0, 60, 4):
        values[index] += 1e8
    trend = find_trend(series(values))

    assert trend is not None
    assert trend.slope == pytest.approx(100, rel=0.1)


def test_too_few_points_have_no_trend() -> None:
    assert find_trend(series([1.0, 2, 3, 4, 5, 6, 7])) is None


@pytest.mark.parametrize("values", [[5.0] * 20, [1.0, 2.0] * 10], ids=["constant", "to and fro"])
def test_no_order_is_not_significant(values: list[float]) -> None:
    assert not significant(values)


def test_noise_is_no_trend() -> None:
    assert share(lambda chance: [chance.gauss(0, 1) for _ in range(60)], 200) == 0


@pytest.mark.parametrize("points", [20, 40, 60])
def test_random_walk_is_seldom_a_trend(points: int) -> None:
    assert share(lambda chance: walk(chance, points), 400) <= 0.05  # a test of order alone finds a trend in most


@pytest.mark.parametrize("jumps", [2, 5, 20])
def test_rare_jumps_either_way_are_seldom_a_trend(jumps: int) -> None:
    def jumping(chance: random.Random) -> list[float]:
        at = {chance.randrange(60): chance.gauss(0, 1) for _ in range(jumps)}
        height = 0.0
        return [height := height + at.get(index, 0.0) for index in range(60)]

    assert share(jumping, 300) <= 0.05


@pytest.mark.parametrize("period", [3, 5, 10, 20, 30, 40])
def test_saw_of_a_garbage_collector_is_no_trend(period: int) -> None:
    assert share(lambda chance: teeth(chance, period), 200) <= 0.02


@pytest.mark.parametrize("points", [20, 40, 60])
def test_leak_of_ten_times_its_noise_is_a_trend_with_its_slope(points: int) -> None:
    # five readings a point, whose median stands for them
    chance = random.Random(3)  # noqa: S311 - repeatable series, not a secret
    rise = 10 / points
    found = [
        trend
        for _ in range(60)
        if (trend := find_trend(series([noisy(chance, rise * index) for index in range(points)], 1.0)))
        and trend.is_significant
    ]

    assert len(found) >= 57
    assert median(trend.slope for trend in found) == pytest.approx(rise, rel=0.03)
    assert all(trend.slope == pytest.approx(rise, rel=0.2) for trend in found)


def test_leak_in_even_steps_is_a_trend() -> None:
    for phase in range(10):
        trend = find_trend(series([1000.0 * ((index + phase) // 10) for index in range(60)], 1.0))

        assert trend is not None
        assert trend.is_significant
        assert trend.slope == pytest.approx(100, rel=0.1)


def test_leak_on_top_of_a_saw_is_a_trend() -> None:
    assert share(lambda chance: [v + 0.1 * index for index, v in enumerate(teeth(chance, 8))], 50) >= 0.95
