import random

import pytest

from inferwatch.sources.slope import find_trend


def series(values: list[float], spacing: float = 30.0) -> list[tuple[float, float]]:
    return [(index * spacing, value) for index, value in enumerate(values)]


def significant(values: list[float]) -> bool:
    trend = find_trend(series(values))
    assert trend is not None
    return trend.p_value < 0.01


def test_straight_line_has_its_slope() -> None:
    trend = find_trend(series([1e9 + 3000 * index for index in range(20)]))

    assert trend is not None
    assert trend.slope == pytest.approx(100)
    assert trend.p_value < 1e-6


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


def test_noise_is_rarely_a_trend() -> None:
    chance = random.Random(1)  # noqa: S311 - a repeatable series, not a secret
    found = sum(significant([chance.gauss(0, 1) for _ in range(60)]) for _ in range(200))

    assert found <= 8


def test_random_walk_is_seldom_a_trend() -> None:
    chance = random.Random(2)  # noqa: S311 - a repeatable series, not a secret

    def walk() -> list[float]:
        height = 0.0
        return [height := height + chance.gauss(0, 1) for _ in range(60)]

    assert sum(significant(walk()) for _ in range(100)) <= 25  # without the correction it is 70


def test_leak_in_noise_is_a_trend() -> None:
    chance = random.Random(3)  # noqa: S311 - a repeatable series, not a secret

    assert all(significant([100.0 * index + chance.gauss(0, 300) for index in range(60)]) for _ in range(50))
