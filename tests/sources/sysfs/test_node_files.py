import pytest

from inferwatch.errors import ParseError
from inferwatch.sources.sysfs.choice import parse_choice
from inferwatch.sources.sysfs.node_meminfo import NodeMemInfo, parse_node_meminfo
from inferwatch.sources.sysfs.numastat import NumaStat, parse_numastat
from support import LIVE


def test_node_memory_is_in_bytes() -> None:
    data = b"Node 12 MemTotal:       1000 kB\nNode 12 MemFree:         10 kB\nNode 12 Active(anon):    7 kB\n"

    assert parse_node_meminfo(data, 12) == NodeMemInfo(1000 * 1024, 10 * 1024)


def test_node_without_memory_has_zero_bytes() -> None:
    assert parse_node_meminfo(b"Node 1 MemTotal: 0 kB\nNode 1 MemFree: 0 kB\n", 1).total_bytes == 0


def test_missing_sum_is_a_parse_error() -> None:
    with pytest.raises(ParseError, match=r"^node3/meminfo: \['free_bytes'\] missing, expected one line each"):
        parse_node_meminfo(b"Node 3 MemTotal: 1 kB\n", 3)


def test_allocations_by_outcome() -> None:
    data = b"numa_hit 1\nnuma_miss 2\nnuma_foreign 3\ninterleave_hit 4\nlocal_node 5\nother_node 6\n"

    assert parse_numastat(data, 0) == NumaStat(hit=1, miss=2, foreign=3, interleave=4, local=5, other=6)


def test_missing_outcome_is_a_parse_error() -> None:
    with pytest.raises(ParseError, match=r"^node0/numastat: .* missing"):
        parse_numastat(b"numa_hit 1\n", 0)


def test_choice_is_the_word_in_brackets() -> None:
    assert parse_choice(b"always defer defer+madvise [madvise] never\n", "defrag") == "madvise"


def test_live_node_is_parsed() -> None:
    node = LIVE.sys("devices", "system", "node", "node0")

    assert parse_node_meminfo((node / "meminfo").read_bytes(), 0).free_bytes > 0
    assert parse_numastat((node / "numastat").read_bytes(), 0).hit > 0
