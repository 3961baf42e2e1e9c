"""What is published never falls and never exceeds what happened, whatever a reading misses."""

from hypothesis import given
from hypothesis import strategies as st

from inferwatch.sources.task_ledger import COUNTS, RUNTIME, SYSTEM, USER, Counts, CpuModes, ProcessLedger
from inferwatch.sources.task_totals import ProcessTotals, ThreadStates, thread_name


def alike(value: int) -> Counts:
    return (value,) * COUNTS


def publish(ledger: ProcessLedger, total: int, *names: tuple[str, int]) -> ProcessTotals:
    return ledger.publish(
        7, alike(total), [(name, 1, alike(count)) for name, count in names], ThreadStates(), has_wait=True
    )


def test_what_no_name_has_is_the_difference() -> None:
    totals = publish(ProcessLedger(), 100, ("a", 60), ("b", 15))

    assert totals.total.voluntary_switches == 100
    assert totals.by_name["a"].sums.voluntary_switches == 60
    assert totals.unattributed.voluntary_switches == 25


def test_reading_that_missed_a_thread_leaves_the_total_where_it_was() -> None:
    ledger = ProcessLedger()
    publish(ledger, 110, ("a", 50), ("b", 50))
    missed = publish(ledger, 60, ("a", 50), ("b", 60))

    assert missed.total.voluntary_switches == 120
    assert missed.unattributed.voluntary_switches == 10


def test_names_that_read_alike_are_one() -> None:
    totals = publish(ProcessLedger(), 10, ("a", 4), ("a", 5))

    assert totals.by_name["a"].threads == 2
    assert totals.by_name["a"].sums.voluntary_switches == 9


def test_kernel_that_counts_no_wait_has_none() -> None:
    totals = ProcessLedger().publish(7, alike(5), [], ThreadStates(), has_wait=False)

    assert totals.total.run_queue_wait_seconds is None
    assert totals.total.timeslices is None


def test_precise_time_is_divided_as_the_samples_are() -> None:
    assert CpuModes().divide(1_000, 30, 10) == (750, 250)
    assert CpuModes().divide(1_000, 0, 10) == (0, 1_000)
    assert CpuModes().divide(1_000, 0, 0) == (1_000, 0)


@given(st.lists(st.tuples(*[st.integers(0, 2**40)] * 3), max_size=12))
def test_neither_mode_falls_and_both_are_all(steps: list[tuple[int, int, int]]) -> None:
    modes, before = CpuModes(), (0, 0)
    runtime, utime, stime = 0, 0, 0
    for more, user, system in steps:
        runtime, utime, stime = runtime + more, utime + user, stime + system
        now = modes.divide(runtime, utime, stime)

        assert sum(now) == runtime
        assert now[0] >= before[0]
        assert now[1] >= before[1]
        before = now


# One step: which thread (born when it is new), how much it does, whether it dies, whether the reading misses its death.
STEPS = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 1000), st.booleans(), st.booleans()), max_size=40)


@given(STEPS)
def test_nothing_falls_and_nothing_is_counted_twice(steps: list[tuple[int, int, bool, bool]]) -> None:
    ledger = ProcessLedger()
    living: dict[int, int] = {}
    seen: dict[int, int] = {}  # of the living
    names = dict.fromkeys(range(4), 0)
    dead = happened = 0
    before: ProcessTotals | None = None
    for thread, did, dies, missed in steps:
        living[thread] = living.get(thread, 0) + did
        happened += did
        shown_dead = dead
        if dies:
            dead += living.pop(thread)
            seen.pop(thread, None)
            shown_dead = shown_dead if missed else dead  # its death falls between the two halves of the reading
        for one, count in living.items():
            names[one] += count - seen.get(one, 0)
            seen[one] = count
        totals = publish(ledger, shown_dead + sum(living.values()), *[(f"n{one}", n) for one, n in names.items()])

        assert totals.total.minor_faults <= happened
        assert totals.total.minor_faults == happened or missed
        if before:
            assert totals.total.minor_faults >= before.total.minor_faults
            assert totals.unattributed.minor_faults >= before.unattributed.minor_faults
        before = totals


def test_places_are_those_of_the_program() -> None:
    assert (RUNTIME, USER, SYSTEM, COUNTS) == (0, 1, 2, 9)


def test_name_is_printable_and_has_no_numbers() -> None:
    assert thread_name(b"worker-17") == "worker-#"
    assert thread_name(b"pool-3-thread-12") == "pool-#-thread-#"
    assert thread_name(b"a) b) (c\n") == "a) b) (c\\n"
    assert thread_name(b"\xff\xfe") == "\\xff\\xfe"
    assert thread_name("caf\N{LATIN SMALL LETTER E WITH ACUTE}".encode()) == "caf\N{LATIN SMALL LETTER E WITH ACUTE}"
    assert thread_name(b"") == ""


@given(st.binary(max_size=15))
def test_any_name_is_printable(comm: bytes) -> None:
    assert thread_name(comm).isprintable()
