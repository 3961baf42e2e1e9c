"""The rules that a family keeps."""

import pytest

from inferwatch.model import Family, HistogramValue, Kind


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (("inferwatch_x", "X.", Kind.COUNTER), "_total"),
        (("inferwatch_x_total", "X.", Kind.GAUGE), "_total"),
        (("inferwatch_x", "X.", Kind.INFO), "_info"),
        (("inferwatch_x_info", "X.", Kind.GAUGE), "_info"),
        (("inferwatch_x", "X.", Kind.GAUGE, "seconds"), "unit"),
        (("inferwatch_x_seconds_total", "X.", Kind.COUNTER, "bytes"), "unit"),
        (("inferwatch:x", "X.", Kind.GAUGE), "metric name"),
        (("inferwatch_x", "X", Kind.GAUGE), "full stop"),
        (("inferwatch_x", "X.", Kind.GAUGE, "", ("le",)), "reserved"),
        (("inferwatch_x", "X.", Kind.GAUGE, "", ("a", "a")), "twice"),
    ],
)
def test_family_that_breaks_a_rule_can_not_be_made(arguments: tuple[str, ...], complaint: str) -> None:
    with pytest.raises(ValueError, match=complaint):
        Family(*arguments)  # type: ignore[arg-type] # the table mixes the types


def test_wrong_number_of_label_values_is_an_error() -> None:
    family = Family("inferwatch_x", "X.", Kind.GAUGE, labels=("a",))

    with pytest.raises(ValueError, match="label values"):
        family(1, "one", "two")


def test_sort_of_value_must_fit_the_kind() -> None:
    family = Family("inferwatch_x_seconds", "X.", Kind.HISTOGRAM, "seconds")

    with pytest.raises(ValueError, match="type float"):
        family(1.0)


def test_histogram_needs_one_count_more_than_bounds() -> None:
    with pytest.raises(ValueError, match="expected one more"):
        HistogramValue((1.0,), (1.0,), None)
