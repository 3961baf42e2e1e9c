import random

import pytest

from inferwatch.samplers._support.growth import MOST_PROCESSES, POINTS, READINGS_PER_POINT, GrowthTracker
from inferwatch.targets.model import ProcessId

MIB = 1 << 20
ONE = ProcessId(1, 100)


def follow(tracker: GrowthTracker, values: list[float], process: ProcessId = ONE, begin: float = 0.0) -> float | None:
    """Hand over a reading every five seconds and return the slope after the last."""
    for index, value in enumerate(values):
        tracker.add(process, begin + 5.0 * index, value)
    return tracker.slope(process)


def leak(seconds: float, rate: float, noise: float = 0.0) -> list[float]:
    chance = random.Random(7)  # noqa: S311 - a repeatable series, not a secret
    return [1e9 + rate * 5 * index + chance.uniform(-noise, noise) for index in range(int(seconds / 5))]


def test_leak_of_a_known_rate_is_told_within_a_tenth() -> None:
    slope = follow(GrowthTracker(1800, 600), leak(3600, rate=10_000, noise=3 * MIB))

    assert slope == pytest.approx(10_000, rel=0.1)


def test_nothing_is_told_before_the_window_is_long_enough() -> None:
    tracker = GrowthTracker(1800, 600)

    readings = leak(660, rate=100_000)

    assert follow(tracker, readings[:119]) is None
    assert follow(tracker, readings[119:], begin=595) == pytest.approx(100_000)


@pytest.mark.parametrize(
    "values",
    [
        [1e9] * 720,
        [1e9 + (index % 12) * MIB for index in range(720)],
        [1e9 + min(index, 360) * MIB for index in range(720)],
    ],
    ids=["flat", "sawtooth", "filled its caches and stays there"],
)
def test_memory_that_does_not_grow_has_no_slope(values: list[float]) -> None:
    assert follow(GrowthTracker(3600, 600), values) is None


@pytest.mark.parametrize("seconds", [700, 2000])
def test_random_walk_is_seldom_told(seconds: int) -> None:
    chance = random.Random(11)  # noqa: S311 - a repeatable series, not a secret

    def walk() -> list[float]:
        height = 1e9
        return [height := height + chance.gauss(0, MIB) for _ in range(seconds // 5)]

    told = [follow(GrowthTracker(1800, 600), walk()) is not None for _ in range(200)]

    assert sum(told) <= 10


@pytest.mark.parametrize("every", [60, 120, 300])
def test_leak_in_steps_is_told_within_a_tenth(every: int) -> None:
    chance = random.Random(12)  # noqa: S311 - a repeatable series, not a secret
    steps = [1e9 + 10_000 * every * (5 * index // every) + chance.gauss(0, MIB / 4) for index in range(400)]

    assert follow(GrowthTracker(1800, 600), steps) == pytest.approx(10_000, rel=0.1)


def test_single_high_readings_do_not_hide_a_leak() -> None:
    readings = leak(2000, rate=10_000)
    readings[::6] = [value + 100 * MIB for value in readings[::6]]

    assert follow(GrowthTracker(1800, 600), readings) == pytest.approx(10_000, rel=0.1)


def test_readings_of_a_point_are_bounded() -> None:
    tracker = GrowthTracker(60_000, 600)
    for tenth in range(5000):
        tracker.add(ONE, tenth / 10, 1.0)

    assert len(tracker._tracks[ONE].readings) <= READINGS_PER_POINT


def test_shrinking_is_negative() -> None:
    assert follow(GrowthTracker(1800, 600), leak(3600, rate=-5_000)) == pytest.approx(-5_000)


def test_restart_under_the_same_pid_begins_anew() -> None:
    tracker = GrowthTracker(1800, 600)
    follow(tracker, leak(3600, rate=10_000))
    again = ProcessId(1, 999)
    tracker.keep_only([again])

    assert follow(tracker, [5e8, 5e8], again, begin=3600) is None
    assert tracker.slope(ONE) is None


def test_points_and_processes_are_bounded() -> None:
    tracker = GrowthTracker(600, 60)
    follow(tracker, leak(7200, rate=1))
    for pid in range(2 * MOST_PROCESSES):
        tracker.add(ProcessId(pid + 2, 1), 7200.0, 1.0)

    assert len(tracker._tracks) == MOST_PROCESSES
    assert max(len(track.points) for track in tracker._tracks.values()) <= POINTS + 2
