"""Read which CPUs and memory nodes a control group may use, of either version."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from inferwatch.errors import NoData
from inferwatch.sources.cgroup.tree import Level
from inferwatch.sources.hostfs import read_bytes
from inferwatch.sources.sysfs.cpulist import parse_cpulist

FILES: Final = {
    1: ("cpuset.effective_cpus", "cpuset.effective_mems"),
    2: ("cpuset.cpus.effective", "cpuset.mems.effective"),
}


@dataclass(frozen=True, slots=True)
class Cpuset:
    """What is left of the host.

    Args:
        cpus: Numbers of the CPUs.
        memory_nodes: Numbers of the NUMA nodes from which memory may come.
    """

    cpus: tuple[int, ...]
    memory_nodes: tuple[int, ...]


def read_cpuset(levels: Sequence[Level]) -> Cpuset:
    """Read the cpuset of the nearest group that has one; its effective lists have the ancestors' limits in them.

    Args:
        levels: The group and its ancestors, itself first.

    Raises:
        NoData: When none has one.
        ParseError: When a list is malformed.
        SourceError: When a file can't be read.
    """
    for level in levels:
        cpus, nodes = (level.directory / name for name in FILES[level.version])
        try:
            return Cpuset(parse_cpulist(read_bytes(cpus), str(cpus)), parse_cpulist(read_bytes(nodes), str(nodes)))
        except NoData:
            continue
    raise NoData("no cpuset in the control group or its ancestors")
