from collections.abc import Callable
from contextlib import suppress
from functools import partial

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from inferwatch.errors import ParseError
from inferwatch.sources.cgroup.mounts import CgroupMount, parse_cgroup_mounts
from inferwatch.sources.cgroup.values import parse_cpu_max, parse_flat_keyed, parse_limit, parse_number, quota_cores
from strategies import mutated, mutated_tokens

MOUNTINFO = (
    b"22 27 0:21 / /proc rw,relatime - proc proc rw\n"
    b"32 31 0:29 / /sys/fs/cgroup/cpu,cpuacct rw,nosuid shared:9 - cgroup cgroup rw,cpu,cpuacct\n"
    b"33 31 0:30 /docker/abc /sys/fs/cg\\040roup rw,nosuid shared:9 master:1 - cgroup2 cgroup2 rw,nsdelegate\n"
)
PARSERS: dict[str, tuple[Callable[[bytes], object], bytes]] = {
    "flat_keyed": (partial(parse_flat_keyed, file="memory.stat"), b"anon 1\ninactive_file 2\n"),
    "limit": (partial(parse_limit, file="memory.max"), b"max\n"),
    "number": (partial(parse_number, file="memory.current"), b"123\n"),
    "cpu_max": (partial(parse_cpu_max, file="cpu.max"), b"20000 100000\n"),
    "mounts": (parse_cgroup_mounts, MOUNTINFO),
}


@pytest.mark.parametrize("name", PARSERS)
@given(data=st.data())
@settings(max_examples=80, deadline=None)
def test_any_bytes_raise_nothing_but_a_parse_error(name: str, data: st.DataObject) -> None:
    parser, original = PARSERS[name]

    with suppress(ParseError):
        parser(data.draw(st.binary(max_size=100) | mutated(original) | mutated_tokens(original)))


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b"9223372036854771712\n", None),
        (b"9223372036854710272\n", None),
        (b"9223372036854775807\n", None),
        (b"max\n", None),
        (b"-1\n", None),
        (b"33554432\n", 33554432),
        (b"0\n", 0),
    ],
    ids=["v1, 4 KiB pages", "v1, 64 KiB pages", "v1, old kernel", "v2", "minus one", "a limit", "none at all"],
)
def test_limit(data: bytes, expected: int | None) -> None:
    assert parse_limit(data, "limit") == expected


@pytest.mark.parametrize(("data", "expected"), [(b"max 100000\n", None), (b"150000 100000\n", 1.5)])
def test_quota_is_in_cores(data: bytes, expected: float | None) -> None:
    assert parse_cpu_max(data, "cpu.max") == expected


def test_period_of_zero_is_a_parse_error() -> None:
    with pytest.raises(ParseError, match="period is 0"):
        quota_cores(b"1", b"0", "cpu.max")


def test_mounts_are_found_with_root_and_controllers() -> None:
    assert parse_cgroup_mounts(MOUNTINFO) == (
        CgroupMount(1, frozenset({"rw", "cpu", "cpuacct"}), "/", "/sys/fs/cgroup/cpu,cpuacct"),
        CgroupMount(2, frozenset(), "/docker/abc", "/sys/fs/cg roup"),
    )
