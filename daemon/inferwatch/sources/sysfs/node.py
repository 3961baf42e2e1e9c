"""Tell which NUMA node a CPU belongs to, from /sys/devices/system/node (drivers/base/node.c)."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from inferwatch.errors import ParseError
from inferwatch.sources.sysfs.cpulist import parse_cpulist

UNKNOWN: Final = "unknown"


@dataclass(frozen=True, slots=True)
class NodeTopology:
    """NUMA nodes and their online CPUs.

    Args:
        nodes: Numbers of the online nodes, ascending; node 0 alone on a kernel without NUMA.
        node_of_cpu: Node number by CPU number; offline CPUs are not in it (cpulist_show() masks them out).
    """

    nodes: tuple[int, ...]
    node_of_cpu: Mapping[int, int]

    def label(self, cpu: int) -> str:
        """Return the value of the label `numa_node`: the only node there is, the CPU's node, or `unknown`."""
        if len(self.nodes) == 1:
            return str(self.nodes[0])
        node = self.node_of_cpu.get(cpu)
        return UNKNOWN if node is None else str(node)

    def covers(self, cpus: Mapping[int, object]) -> bool:
        """Return whether the node of every one of these CPUs is known."""
        return cpus.keys() <= self.node_of_cpu.keys()


WITHOUT_NUMA: Final = NodeTopology(nodes=(0,), node_of_cpu={})
NOT_READ: Final = NodeTopology(nodes=(), node_of_cpu={})


def parse_topology(cpulists: Mapping[int, bytes]) -> NodeTopology:
    """Build the topology from the file `cpulist` of each online node.

    Args:
        cpulists: Content of nodeN/cpulist by N; empty for a node that has memory but no CPUs.

    Raises:
        ParseError: When one is not a list, or a CPU stands in two nodes.
    """
    node_of_cpu: dict[int, int] = {}
    for node, data in sorted(cpulists.items()):
        for cpu in parse_cpulist(data, f"node{node}/cpulist"):
            if cpu in node_of_cpu:
                raise ParseError(
                    f"node{node}/cpulist: CPU {cpu} is in node {node_of_cpu[cpu]} too, expected in one node"
                )
            node_of_cpu[cpu] = node
    return NodeTopology(tuple(sorted(cpulists)), node_of_cpu)
