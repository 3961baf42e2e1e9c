import errno
from pathlib import Path

import pytest

from inferwatch.errors import SourceError
from inferwatch.sources.topology import read_topology
from support import LIVE, fail_open, host, tree

ONLINE = "sys/devices/system/node/online"


def test_nodes_and_their_cpus_are_read() -> None:
    topology = read_topology(host("two-nodes"))

    assert topology.nodes == (0, 1, 2)
    assert topology.node_of_cpu == {0: 0, 1: 0, 4: 0, 2: 1, 3: 1, 5: 1}


def test_host_without_numa_has_one_node(tmp_path: Path) -> None:
    assert read_topology(tree(tmp_path, {})).label(3) == "0"


def test_node_that_vanishes_between_list_and_read_is_left_out(tmp_path: Path) -> None:
    hostfs = tree(tmp_path, {ONLINE: b"0-1\n", "sys/devices/system/node/node0/cpulist": b"0-1\n"})

    assert read_topology(hostfs).nodes == (0,)


def test_denied_list_is_a_source_error(monkeypatch: pytest.MonkeyPatch) -> None:
    fail_open(monkeypatch, {"node1/cpulist": errno.EACCES})

    with pytest.raises(SourceError, match=r"node1/cpulist: Permission denied"):
        read_topology(host("two-nodes"))


def test_live_topology_covers_every_online_cpu() -> None:
    topology = read_topology(LIVE)
    lines = LIVE.proc("stat").read_text().splitlines()
    cpus = {int(line.split()[0][3:]): None for line in lines if line.startswith("cpu") and line[3].isdigit()}

    assert "unknown" not in {topology.label(cpu) for cpu in cpus}
