from inferwatch.sources.offsets import SteadyTotals


def test_first_sight_is_the_counter_itself() -> None:
    assert SteadyTotals().update("s", "a", 100) == 100


def test_counter_that_began_anew_goes_on() -> None:
    totals = SteadyTotals()

    assert [totals.update("s", "a", value) for value in (100, 110, 4, 6)] == [100, 110, 114, 116]


def test_other_source_is_a_new_base_line() -> None:
    totals = SteadyTotals()
    readings = (("a", 100), ("b", 1_000_000), ("b", 1_000_005), ("a", 3), ("a", 4))

    assert [totals.update("s", source, value) for source, value in readings] == [100, 100, 105, 105, 106]


def test_series_that_was_away_goes_on() -> None:
    totals = SteadyTotals()
    totals.update("s", "a", 100)
    totals.update("other", "a", 5)

    assert totals.update("s", "b", 2) == 100


def test_number_of_series_is_bounded() -> None:
    totals = SteadyTotals(limit=2)
    for series in ("one", "two", "three"):
        totals.update(series, "a", 100)

    assert totals.update("three", "a", 101) == 101
    assert totals.update("one", "a", 7) == 7  # forgotten, so at first sight again
