import os

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inferwatch.errors import ParseError
from inferwatch.sources.sysfs.cpulist import parse_cpulist
from support import LIVE


def test_ranges_and_numbers_are_expanded() -> None:
    assert parse_cpulist(b"0-3,8,10-11\n", "cpulist") == (0, 1, 2, 3, 8, 10, 11)


@pytest.mark.parametrize("data", [b"", b"\n"])
def test_node_without_cpus_has_an_empty_list(data: bytes) -> None:
    assert parse_cpulist(data, "cpulist") == ()


@pytest.mark.parametrize("data", [b"0-", b"-3", b"3-1", b"0,,1", b"a", b"0-3:1/2", b"0-9999999", b"1,", b"0 1"])
def test_anything_else_is_a_parse_error_that_names_the_file(data: bytes) -> None:
    with pytest.raises(ParseError, match=r"^node0/cpulist: .*expected"):
        parse_cpulist(data, "node0/cpulist")


@given(st.sets(st.integers(0, 8191), max_size=50))
def test_written_list_reads_back(numbers: set[int]) -> None:
    text = ",".join(map(str, sorted(numbers))).encode()

    assert parse_cpulist(text, "cpulist") == tuple(sorted(numbers))


def test_live_list_of_online_cpus_has_as_many_as_the_system_call_says() -> None:
    online = parse_cpulist(LIVE.sys("devices", "system", "cpu", "online").read_bytes(), "online")

    assert len(online) == os.sysconf("SC_NPROCESSORS_ONLN")
