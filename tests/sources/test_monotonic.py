from hypothesis import given
from hypothesis import strategies as st

from inferwatch.sources.monotonic import GroupTotals, WrappingTotals


def by_parity(member: int) -> str:
    return "odd" if member % 2 else "even"


def test_totals_begin_as_the_sums_of_the_members() -> None:
    totals = GroupTotals()
    totals.update({0: [1.0, 10.0], 1: [2.0, 20.0], 2: [4.0, 40.0]}, by_parity)

    assert totals.totals == {"even": [5.0, 50.0], "odd": [2.0, 20.0]}


def test_small_step_back_adds_nothing_and_is_made_up_for_first() -> None:
    totals = GroupTotals()
    seen = []
    for value in (100.0, 99.0, 99.5, 101.0):
        totals.update({0: [value]}, by_parity)
        seen.append(totals.totals["even"][0])

    assert seen == [100.0, 100.0, 100.0, 101.0]


def test_large_fall_is_a_new_beginning() -> None:
    totals = GroupTotals()
    seen = []
    for value in (100.0, 1.0, 3.0):
        totals.update({0: [value]}, by_parity)
        seen.append(totals.totals["even"][0])

    assert seen == [100.0, 100.0, 102.0]


def test_missing_member_keeps_its_past() -> None:
    totals = GroupTotals()
    totals.update({0: [100.0], 2: [50.0]}, by_parity)
    totals.update({0: [105.0]}, by_parity)

    assert totals.totals == {"even": [155.0]}


def test_member_that_returns_lower_counts_from_there() -> None:
    totals = GroupTotals()
    totals.update({0: [2.0]}, by_parity)
    totals.update({}, by_parity)
    totals.update({0: [1.0]}, by_parity)  # within what would be jitter of a member that had been there
    totals.update({0: [1.5]}, by_parity)

    assert totals.totals == {"even": [2.5]}


def test_member_that_returns_higher_adds_the_difference() -> None:
    totals = GroupTotals()
    totals.update({0: [2.0]}, by_parity)
    totals.update({}, by_parity)
    totals.update({0: [2.25]}, by_parity)

    assert totals.totals == {"even": [2.25]}


def test_member_that_changes_group_is_not_counted_twice() -> None:
    totals = GroupTotals()
    totals.update({0: [10.0]}, lambda _: "unknown")
    totals.update({0: [12.0]}, lambda _: "0")

    assert totals.totals == {"unknown": [10.0], "0": [2.0]}


@given(st.lists(st.dictionaries(st.integers(0, 3), st.floats(0, 1e6), max_size=4), max_size=12))
def test_totals_never_fall(rounds: list[dict[int, float]]) -> None:
    totals = GroupTotals()
    before: dict[str, float] = {}
    for readings in rounds:
        totals.update({member: [value] for member, value in readings.items()}, by_parity)
        after = {group: values[0] for group, values in totals.totals.items()}
        assert all(after[group] >= value for group, value in before.items())
        before = after


def test_wrapping_sum_goes_on() -> None:
    totals = WrappingTotals()
    first = dict(totals.update({"TIMER": 2**32 + 100}))
    second = dict(totals.update({"TIMER": 150}))  # one of two CPUs wrapped: the sum fell by 2**32 less 50

    assert (first, second) == ({"TIMER": 2**32 + 100}, {"TIMER": 2**32 + 150})


def test_fall_that_is_no_wrap_adds_nothing() -> None:
    totals = WrappingTotals()
    totals.update({"TIMER": 1000})

    assert totals.update({"TIMER": 10}) == {"TIMER": 1000}
    assert totals.update({"TIMER": 15}) == {"TIMER": 1005}
