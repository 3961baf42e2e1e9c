from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from inferwatch.errors import ParseError
from inferwatch.sources.procfs.task import (
    STATES,
    TaskSchedstat,
    TaskStat,
    TaskSwitches,
    parse_task_schedstat,
    parse_task_stat,
    parse_task_switches,
)
from strategies import mutated, mutated_tokens

# Recorded on Debian 12, Linux 6.18: a thread of a Python process.
STAT = (
    b"25281 (python) S 25185 25185 10953 0 -1 4194560 37338 410 3 4 59 127 25 8 20 0 8001 0 260399 1741864960 36025 "
    b"18446744073709551615 94146724265984 94146724266325 140721058218272 0 0 0 0 16781312 2 0 0 0 17 1 0 0 0 0 0 "
    b"94146724277680 94146724278296 94147487395840 140721058224815 140721058224843 140721058224843 140721058226151 0\n"
)
STATUS = b"Name:\tpython\nUmask:\t0022\nThreads:\t1\nvoluntary_ctxt_switches:\t150\nnonvoluntary_ctxt_switches:\t545\n"
Parser = Callable[[bytes], object]
PARSERS: dict[str, tuple[Parser, bytes]] = {
    "stat": (parse_task_stat, STAT),
    "schedstat": (parse_task_schedstat, b"1859831586 2134020102 19256\n"),
    "status": (parse_task_switches, STATUS),
}


def test_recorded_stat_gives_its_fields() -> None:
    assert parse_task_stat(STAT) == TaskStat(
        comm=b"python",
        state="S",
        minor_faults=37338,
        major_faults=3,
        user_ticks=59,
        system_ticks=127,
        start_ticks=260399,
        reaped_minor_faults=410,
        reaped_major_faults=4,
        reaped_user_ticks=25,
        reaped_system_ticks=8,
    )


def test_schedstat_is_nanoseconds_and_timeslices() -> None:
    assert parse_task_schedstat(b"1859831586 2134020102 19256\n") == TaskSchedstat(1859831586, 2134020102, 19256)


def test_both_kinds_of_switches_are_found() -> None:
    assert parse_task_switches(STATUS) == TaskSwitches(voluntary=150, involuntary=545)


@pytest.mark.parametrize(
    "comm", [b"(sd-pam)", b"a) b) (c\n", b") S 1 2", b"", b" ", b"\xff\xfe", b"kworker/u8:2-events_unbound"]
)
def test_name_ends_at_the_last_parenthesis(comm: bytes) -> None:
    rest = STAT.split(b") ", 1)[1]

    stat = parse_task_stat(b"42 (" + comm + b") " + rest)

    assert (stat.comm, stat.state, stat.start_ticks) == (comm, "S", 260399)


def test_name_that_looks_like_a_line_of_status_is_not_one() -> None:
    # The kernel escapes line ends in Name (proc_task_name() in fs/proc/array.c).
    data = STATUS.replace(b"python", b"x\\nvoluntary_ctxt_switches: 9")

    assert parse_task_switches(data) == TaskSwitches(150, 545)


def test_own_files_are_parsed() -> None:
    folder = Path("/proc/thread-self")

    assert parse_task_stat((folder / "stat").read_bytes()).state == "R"
    assert parse_task_schedstat((folder / "schedstat").read_bytes()).runtime_ns > 0
    assert parse_task_switches((folder / "status").read_bytes()).voluntary >= 0


@pytest.mark.parametrize(
    ("parser", "data", "message"),
    [
        (parse_task_stat, b"", r"stat: b'', expected 'TID \(name\) S' and 19 numbers"),
        (parse_task_stat, STAT[:40], "stat: .*expected 'TID"),
        (parse_task_stat, STAT.replace(b") S ", b") Q "), "stat: state is b'Q', expected one letter of RSDT"),
        (parse_task_stat, STAT.replace(b" 59 ", b" x "), "stat: utime is b'x', expected a number"),
        (parse_task_stat, b"x" + STAT, "stat: thread id is b'x25281'"),
        (parse_task_schedstat, b"1 2\n", "schedstat: 2 fields, expected 3"),
        (parse_task_schedstat, b"1 2 -3\n", "schedstat: field is b'-3', expected a number"),
        (parse_task_switches, STATUS.replace(b"non", b"xxx"), "status: expected the lines voluntary_ctxt"),
        (parse_task_switches, STATUS.replace(b"545", b""), "status: nonvoluntary_ctxt_switches is b''"),
    ],
)
def test_malformed_file_is_a_parse_error_that_names_it(parser: Parser, data: bytes, message: str) -> None:
    with pytest.raises(ParseError, match=f"^/proc/PID/task/TID/{message}"):
        parser(data)


@given(
    comm=st.binary(max_size=15),
    state=st.sampled_from(STATES.decode()),
    numbers=st.lists(st.integers(0, 2**64 - 1), min_size=49, max_size=49),
)
def test_what_the_kernel_writes_is_read_back(comm: bytes, state: str, numbers: list[int]) -> None:
    fields = " ".join(map(str, numbers)).encode()

    stat = parse_task_stat(b"7 (" + comm + b") " + state.encode() + b" " + fields + b"\n")

    assert (stat.comm, stat.state) == (comm, state)
    assert (stat.minor_faults, stat.major_faults) == (numbers[6], numbers[8])
    assert (stat.user_ticks, stat.system_ticks, stat.start_ticks) == (numbers[10], numbers[11], numbers[18])


@pytest.mark.parametrize("name", PARSERS)
@given(data=st.data())
@settings(max_examples=100, deadline=None)
def test_damaged_files_raise_nothing_but_a_parse_error(name: str, data: st.DataObject) -> None:
    parser, original = PARSERS[name]
    damaged = data.draw(mutated(original) | mutated_tokens(original) | st.binary(max_size=200))
    with suppress(ParseError):
        parser(damaged)
