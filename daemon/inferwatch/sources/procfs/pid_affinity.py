"""Parse where a process may run and allocate, from /proc/PID/status (kernel/cgroup/cpuset.c, fs/proc/array.c)."""

from dataclasses import dataclass
from typing import Final

from inferwatch.errors import ParseError
from inferwatch.sources.sysfs.cpulist import parse_cpulist

FILE: Final = "/proc/PID/status"
CPUS: Final = b"Cpus_allowed_list"
NODES: Final = b"Mems_allowed_list"


@dataclass(frozen=True, slots=True)
class PidAffinity:
    """What a thread's affinity mask and its cpuset leave it.

    Args:
        cpus: CPUs on which it may run; offline ones can be among them.
        memory_nodes: NUMA nodes from which it may allocate; empty where the kernel has no cpusets.
    """

    cpus: tuple[int, ...]
    memory_nodes: tuple[int, ...]


def parse_pid_affinity(data: bytes) -> PidAffinity:
    """Parse the two lists.

    Raises:
        ParseError: When there is no list of CPUs, or one of the two is malformed.
    """
    cpus, nodes = _list(data, CPUS), _list(data, NODES)
    if cpus is None:
        raise ParseError(f"{FILE}: no line {CPUS.decode()!r}, expected one since 2.6.26")
    return PidAffinity(cpus, nodes or ())


def _list(data: bytes, key: bytes) -> tuple[int, ...] | None:
    """Return the list of a line; the file is not split, of which these are two lines in sixty."""
    begin = data.find(b"\n" + key + b":")
    if begin < 0:
        return None
    begin += len(key) + 2
    end = data.find(b"\n", begin)
    return parse_cpulist(data[begin : end if end >= 0 else None], f"{FILE}: {key.decode()}")
