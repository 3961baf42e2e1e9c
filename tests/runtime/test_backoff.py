"""How long to wait after failures."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inferwatch.runtime.backoff import delay_seconds


@pytest.mark.parametrize(
    ("failures", "expected"), [(0, 5), (1, 5), (2, 10), (3, 20), (6, 160), (7, 300), (8, 300), (10_000, 300)]
)
def test_delay_doubles_up_to_five_minutes(failures: int, expected: float) -> None:
    assert delay_seconds(5, failures) == expected


def test_interval_longer_than_the_limit_is_kept() -> None:
    assert delay_seconds(3600, 9) == 3600


@given(st.floats(0.1, 86_400), st.integers(0, 10**6), st.floats(1, 600))
def test_delay_is_never_below_the_interval_nor_falls_with_failures(
    interval: float, failures: int, limit: float
) -> None:
    delay = delay_seconds(interval, failures, limit)

    assert delay >= interval
    assert delay_seconds(interval, failures + 1, limit) >= delay
