import pytest
from hypothesis import given

from inferwatch.errors import ParseError
from inferwatch.sources.procfs.pid_stat import parse_pid_stat
from strategies import mutated
from support import LIVE

# this machine's cat /proc/self/stat, shortened behind the start time
STAT = b"3131 (cat) R 3129 3129 3080 0 -1 4194304 93 0 0 0 0 0 0 0 20 0 1 0 184571 2596864 368\n"


def test_fields_are_read_from_their_columns() -> None:
    stat = parse_pid_stat(STAT)

    assert (stat.pid, stat.comm, stat.state, stat.ppid) == (3131, b"cat", "R", 3129)
    assert (stat.kernel_thread, stat.start_ticks) == (False, 184571)


@pytest.mark.parametrize("comm", [b"(sd-pam)", b"a) b", b"a) R 1 (b", b"c\n", b"", b"\xff\xfe", b") S 1"])
def test_name_ends_at_the_last_parenthesis(comm: bytes) -> None:
    stat = parse_pid_stat(STAT.replace(b"cat", comm))

    assert (stat.comm, stat.ppid) == (comm, 3129)


def test_kernel_threads_are_told_by_their_flag() -> None:
    assert parse_pid_stat(b"2 (kthreadd) S 0 0 0 0 -1 2129984 0 0 0 0 0 0 0 0 20 0 1 0 7 0 0\n").kernel_thread


def test_the_first_process_of_this_machine_has_no_parent() -> None:
    stat = parse_pid_stat(LIVE.proc("1", "stat").read_bytes())

    assert (stat.pid, stat.ppid, stat.kernel_thread) == (1, 0, False)


@pytest.mark.parametrize("data", [b"", b"1", b"1 (a", b"1 (a) ", b"1 (a) S 1 2\n", b"x (a) S" + b" 1" * 30])
def test_anything_else_is_a_parse_error(data: bytes) -> None:
    with pytest.raises(ParseError):
        parse_pid_stat(data)


@given(mutated(STAT))
def test_damage_is_a_parse_error_or_a_plausible_process(data: bytes) -> None:
    try:
        stat = parse_pid_stat(data)
    except ParseError:
        return

    assert stat.ppid >= 0
    assert stat.start_ticks >= 0
