"""Read which CPUs and memory nodes a control group may use, of either version."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from inferwatch.errors import NoData
from inferwatch.sources.cgroup.files import GroupFiles
from inferwatch.sources.cgroup.tree import Level
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


def read_cpuset(files: GroupFiles, levels: Sequence[Level]) -> Cpuset:
    """Read the cpuset of the nearest group that has one; its effective lists have the ancestors' limits in them.

    Args:
        files: Reads; the lists are up to 30 seconds old.
        levels: The group and its ancestors, itself first.

    Raises:
        NoData: When none has one.
        ParseError: When a list is malformed.
        SourceError: When a file can't be read.
    """
    for level in levels:
        cpus, nodes = (files.setting(level, name, parse_cpulist) for name in FILES[level.version])
        if cpus is not None and nodes is not None:
            return Cpuset(cpus, nodes)
    raise NoData("no cpuset in the control group or its ancestors")
