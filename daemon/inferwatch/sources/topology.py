"""Read which NUMA node each CPU belongs to."""

from typing import Final

from inferwatch.errors import NoData
from inferwatch.sources.hostfs import HostFs, read_bytes
from inferwatch.sources.sysfs.cpulist import parse_cpulist
from inferwatch.sources.sysfs.node import WITHOUT_NUMA, NodeTopology, parse_topology

NODES: Final = ("devices", "system", "node")


def read_topology(hostfs: HostFs) -> NodeTopology:
    """Read /sys/devices/system/node; a kernel without NUMA has no such directory and one node, 0.

    Raises:
        ParseError: When a list is malformed.
        SourceError: When a list can't be read.
    """
    try:
        online = read_bytes(hostfs.sys(*NODES, "online"))
    except NoData:
        return WITHOUT_NUMA
    cpulists: dict[int, bytes] = {}
    for node in parse_cpulist(online, "/sys/devices/system/node/online"):
        try:
            cpulists[node] = read_bytes(hostfs.sys(*NODES, f"node{node}", "cpulist"))
        except NoData:  # the node went offline since
            continue
    return parse_topology(cpulists)
