import os

import pytest
from hypothesis import given

from inferwatch.errors import ParseError
from inferwatch.sources.procfs.pid_status import parse_pid_status
from strategies import mutated
from support import LIVE

STATUS = b"Name:\tcat\nUmask:\t0022\nUid:\t1000\t0\t0\t0\nGid:\t0\t0\t0\t0\nNStgid:\t3131\t7\nNSpid:\t3131\t7\n"


def test_real_user_and_pids_from_the_outside_inwards() -> None:
    status = parse_pid_status(STATUS)

    assert (status.uid, status.namespace_pids) == (1000, (3131, 7))


def test_a_name_can_not_pose_as_a_line() -> None:
    data = b"Name:\ta\\nUid:\t5\t5\t5\t5\n" + STATUS.partition(b"\n")[2]

    assert parse_pid_status(data).uid == 1000


def test_own_process() -> None:
    status = parse_pid_status(LIVE.proc("self", "status").read_bytes())

    assert (status.uid, status.namespace_pids[0]) == (os.getuid(), os.getpid())


def test_kernel_before_4_1_has_no_nspid() -> None:
    assert parse_pid_status(b"Name:\tx\nUid:\t0\t0\t0\t0\n").namespace_pids == ()


@pytest.mark.parametrize(
    "data", [b"", b"Name:\tx\n", b"Uid:\t0\n", b"Uid:\ta\tb\tc\td\n", b"Uid:\t0 0 0 0\nNSpid:\t-1\n"]
)
def test_anything_else_is_a_parse_error(data: bytes) -> None:
    with pytest.raises(ParseError):
        parse_pid_status(data)


@given(mutated(STATUS))
def test_damage_is_a_parse_error_or_numbers(data: bytes) -> None:
    try:
        status = parse_pid_status(data)
    except ParseError:
        return

    assert all(pid >= 0 for pid in (status.uid, *status.namespace_pids))
