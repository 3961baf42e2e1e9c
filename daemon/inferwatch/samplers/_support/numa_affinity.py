"""Read where processes may run and allocate, at an interval of its own: it changes with a call of taskset at most."""

from collections.abc import Collection
from pathlib import Path
from typing import Final

from inferwatch.samplers._support.troubles import Troubles
from inferwatch.sources.hostfs import HostFs, read_bytes
from inferwatch.sources.procfs.pid_affinity import PidAffinity, parse_pid_affinity
from inferwatch.targets.model import ProcessId

GOOD_NS: Final = 15_000_000_000


class NumaAffinities:
    """Keeps the newest affinity of each process.

    Args:
        hostfs: The host's file systems.
    """

    def __init__(self, hostfs: HostFs) -> None:
        self._hostfs = hostfs
        self._found: dict[ProcessId, tuple[int, PidAffinity]] = {}

    def keep_only(self, processes: Collection[ProcessId]) -> None:
        """Forget all other processes."""
        for process in self._found.keys() - set(processes):
            del self._found[process]

    def read(self, process: ProcessId, now_ns: int, troubles: Troubles) -> PidAffinity | None:
        """Return a process's affinity, at most 15 seconds old; None when it can't be read, which is told each time."""
        known = self._found.get(process)
        if known is not None and now_ns - known[0] < GOOD_NS:
            return known[1]
        path = self._hostfs.proc(str(process.pid), "status")
        found = troubles.attempt(lambda: _read(path))
        if found is None:
            self._found.pop(process, None)
        else:
            self._found[process] = (now_ns, found)
        return found


def _read(path: Path) -> PidAffinity:
    return parse_pid_affinity(read_bytes(path))
