import pytest

from inferwatch.errors import ParseError
from inferwatch.sources.sysfs.node import NOT_READ, WITHOUT_NUMA, parse_topology

TWO_NODES = {0: b"0-1,4\n", 1: b"2-3,5\n", 2: b"\n"}


def test_cpus_are_labelled_with_their_node() -> None:
    topology = parse_topology(TWO_NODES)

    assert [topology.label(cpu) for cpu in range(6)] == ["0", "0", "1", "1", "0", "1"]


def test_node_without_cpus_is_a_node() -> None:
    assert parse_topology(TWO_NODES).nodes == (0, 1, 2)


def test_unlisted_cpu_of_a_host_with_several_nodes_is_unknown() -> None:
    assert parse_topology(TWO_NODES).label(6) == "unknown"


def test_unlisted_cpu_of_a_host_with_one_node_is_in_it() -> None:
    assert parse_topology({0: b"0-1\n"}).label(2) == "0"


def test_kernel_without_numa_has_node_zero() -> None:
    assert WITHOUT_NUMA.label(7) == "0"


def test_topology_that_could_not_be_read_is_unknown() -> None:
    assert NOT_READ.label(0) == "unknown"


def test_topology_covers_the_cpus_that_it_lists() -> None:
    topology = parse_topology(TWO_NODES)

    assert topology.covers({0: None, 5: None})
    assert not topology.covers({0: None, 6: None})


def test_cpu_in_two_nodes_is_a_parse_error() -> None:
    with pytest.raises(ParseError, match=r"CPU 1 is in node 0 too, expected in one node"):
        parse_topology({0: b"0-1\n", 1: b"1-2\n"})
