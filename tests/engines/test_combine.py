from collections.abc import Hashable
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inferwatch.engines.combine import MAX_GONE, Ledger, Totals, combine
from inferwatch.engines.rules import Combine


def shown(*pages: dict[str, float]) -> list[float]:
    ledger = Ledger()
    result = []
    for page in pages:
        result.append(ledger.add("key", {source: (value,) for source, value in page.items()})[0])
        ledger.turn_page()
    return result


def test_counter_that_stands_alone_goes_through_as_it_is() -> None:
    assert shown({"a": 100}, {"a": 90}, {"a": 95}) == [100, 90, 95]


def test_parts_are_added_up() -> None:
    assert shown({"a": 100, "b": 50}, {"a": 110, "b": 50}) == [150, 160]


def test_restart_of_one_part_keeps_what_it_had_counted() -> None:
    assert shown({"a": 100, "b": 50}, {"a": 90, "b": 60}, {"a": 95, "b": 60}) == [150, 250, 255]


def test_restart_of_all_parts_is_a_reset_and_the_sum_agrees_with_the_page_again() -> None:
    assert shown({"a": 100, "b": 50}, {"a": 90, "b": 5}, {"a": 95, "b": 6}) == [150, 95, 101]


def test_parts_that_never_counted_anything_do_not_hide_a_restart() -> None:
    assert shown({"stop": 9, "length": 0}, {"stop": 1, "length": 0}) == [9, 1]


def test_part_that_vanishes_keeps_its_count_and_does_not_jump_when_it_returns() -> None:
    assert shown({"a": 100, "b": 50}, {"a": 110}, {"a": 110, "b": 55}) == [150, 160, 165]


def test_part_that_returns_restarted_adds_what_it_counted_anew() -> None:
    assert shown({"a": 100, "b": 50}, {"a": 110}, {"a": 110, "b": 5}) == [150, 160, 165]


def test_part_that_joins_adds_its_count() -> None:
    assert shown({"a": 100}, {"a": 100, "b": 7}, {"a": 100, "b": 8}) == [100, 107, 108]


def test_key_that_is_missing_for_a_while_goes_on_from_where_it_was() -> None:
    ledger = Ledger()
    parts: dict[Hashable, tuple[float, ...]] = {"a": (100.0,), "b": (50.0,)}
    first = ledger.add("key", parts)
    for _ in range(3):
        ledger.turn_page()

    assert first == ledger.add("key", parts) == (150.0,)


COUNTS = st.dictionaries(st.sampled_from("abc"), st.integers(0, 20).map(float), min_size=1)


@given(st.lists(COUNTS, min_size=1, max_size=12))
def test_sum_falls_only_when_every_part_that_had_counted_restarted_or_is_gone(pages: list[dict[str, float]]) -> None:
    totals = Totals(1, 0)
    values = [totals.add({source: (value,) for source, value in page.items()})[0] for page in pages]

    for (total, page), (next_total, next_page) in pairwise(zip(values, pages, strict=True)):
        counted = [source for source, count in page.items() if count > 0]
        if next_total < total:
            assert not [source for source in counted if next_page.get(source, -1.0) >= page[source]]
            assert [source for source in counted if next_page.get(source, page[source]) < page[source]]


def test_rounding_of_floats_never_looks_like_a_reset() -> None:
    totals = Totals(1, 0)
    pages = [{"a": 0.1, "b": 0.2}, {"b": 0.2}, {"a": 0.1, "b": 0.2}, {"a": 0.1}, {"b": 0.2, "a": 0.1}] * 5
    values = [totals.add({source: (value,) for source, value in page.items()})[0] for page in pages]

    assert values == sorted(values)
    assert values[-1] == pytest.approx(0.3)


def test_histogram_restarts_by_its_count_and_not_by_its_sum() -> None:
    totals = Totals(3, 1)
    totals.add({"a": (1.0, 2.0, 5.0), "b": (1.0, 1.0, 1.0)})

    assert totals.add({"a": (1.0, 3.0, 4.0), "b": (1.0, 1.0, 1.0)}) == (2.0, 4.0, 6.0)  # the sum never falls
    assert totals.add({"a": (1.0, 1.0, 1.0), "b": (1.0, 1.0, 1.0)}) == (3.0, 5.0, 6.0)


def test_memory_of_parts_and_keys_that_come_and_go_is_bounded() -> None:
    totals = Totals(1, 0)
    for number in range(5000):
        totals.add({"stays": (1.0,), f"part{number}": (1.0,)})
    ledger = Ledger()
    for number in range(5000):
        ledger.add(number, {"a": (1.0,), "b": (1.0,)})
        ledger.turn_page()

    assert len(totals._gone) <= MAX_GONE
    assert len(ledger._totals) <= MAX_GONE + 10


def test_gauges_are_combined_as_the_rule_says() -> None:
    assert combine(Combine.SUM, [1, 2, 3]) == 6
    assert combine(Combine.MAX, [1, 3, 2]) == 3
    assert combine(Combine.FIRST, [2, 1]) == 2
