"""Judge the placement of a process: which of its memory is remote, and whether its CPUs and memory nodes agree."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from inferwatch.samplers._support.numa_cpu import nodes_run_on
from inferwatch.sources.procfs.pid_affinity import PidAffinity
from inferwatch.sources.sysfs.node import NodeTopology


@dataclass(frozen=True, slots=True)
class Placement:
    """One process.

    Args:
        memory: Resident bytes by node; None when not known.
        affinity: Where it may run and allocate; None when not known.
        cpu_seconds: CPU time by node of late, empty when not known or when it did not run.
    """

    memory: Mapping[int, int] | None
    affinity: PidAffinity | None
    cpu_seconds: Mapping[int, float]


def allowed_nodes(affinity: PidAffinity, topology: NodeTopology) -> frozenset[int]:
    """Return the nodes of the online CPUs that a process may use."""
    if len(topology.nodes) == 1:
        return frozenset(topology.nodes)
    return frozenset(topology.node_of_cpu[cpu] for cpu in affinity.cpus if cpu in topology.node_of_cpu)


def is_aligned(affinity: PidAffinity, topology: NodeTopology) -> bool:
    """Return whether a process's CPUs are on one node, from which it may allocate.

    More memory nodes may be allowed: the kernel takes the node of the CPU first.
    """
    nodes = allowed_nodes(affinity, topology)
    return len(nodes) == 1 and (not affinity.memory_nodes or nodes <= set(affinity.memory_nodes))


def remote_bytes(placement: Placement, topology: NodeTopology) -> tuple[int, int] | None:
    """Return the bytes on other nodes than those that a process's CPUs are on, and all its bytes.

    Its CPUs are those on which it ran of late. A process that may run everywhere would otherwise have no remote memory
    by definition, which is the very thing that is looked for.
    """
    if placement.memory is None:
        return None
    near: Collection[int] = nodes_run_on(placement.cpu_seconds)
    if not near and placement.affinity is not None:
        near = allowed_nodes(placement.affinity, topology)
    if not near:
        return None
    every = sum(placement.memory.values())
    return every - sum(size for node, size in placement.memory.items() if node in near), every


def remote_accesses(placement: Placement) -> tuple[float, float] | None:
    """Return how much CPU time would wait for another node if all pages were used alike, and all CPU time."""
    every = sum(placement.memory.values()) if placement.memory else 0
    seconds = sum(placement.cpu_seconds.values())
    if placement.memory is None or not every or not seconds:
        return None
    near = sum(share * placement.memory.get(node, 0) / every for node, share in placement.cpu_seconds.items())
    return seconds - near, seconds
