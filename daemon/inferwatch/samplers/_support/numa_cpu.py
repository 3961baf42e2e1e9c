"""Find out on which NUMA nodes processes really run: where each thread was when its CPU time had risen."""

import os
from collections.abc import Collection, Mapping
from functools import partial
from typing import Final

from inferwatch.errors import NoData, SourceError
from inferwatch.samplers._support.troubles import Troubles
from inferwatch.sources.hostfs import ABSENT_ERRNOS, DENIED_ERRNOS, HostFs, read_bytes
from inferwatch.sources.procfs.thread_cpu import ThreadCpu, parse_thread_cpu
from inferwatch.sources.sysfs.node import NodeTopology
from inferwatch.targets.model import ProcessId

LEAST_SHARE: Final = 0.05  # of the CPU time: a thread that strays to another node for a moment is not on it
WHOLE: Final = 0  # in place of a thread's id: all threads of a process, also those that have ended

Thread = tuple[int, int]  # id and start time: an id alone is used again


class NumaCpu:
    """Keeps the CPU time that each thread had, to see which have run since.

    Where there is one node only, the process's own figure tells the same in one file.

    Args:
        hostfs: The host's file systems.
        most_threads: Of one process; of a larger one, a part is looked at.
    """

    def __init__(self, hostfs: HostFs, most_threads: int) -> None:
        self._hostfs = hostfs
        self._most_threads = most_threads
        self._user_hz = os.sysconf("SC_CLK_TCK")
        self._seconds: dict[ProcessId, dict[Thread, float]] = {}
        self._looked_ns: dict[ProcessId, int] = {}

    def keep_only(self, processes: Collection[ProcessId]) -> None:
        """Forget all other processes."""
        for process in self._seconds.keys() - set(processes):
            del self._seconds[process]
            self._looked_ns.pop(process, None)

    def read(self, process: ProcessId, topology: NodeTopology, now_ns: int, troubles: Troubles) -> Mapping[int, float]:
        """Return the CPU seconds by node since the last call; empty the first time, and when no thread ran."""
        since = self._looked_ns.get(process, 0)
        known = self._seconds.get(process)
        now: dict[Thread, float] = {}
        nodes: dict[int, float] = {}
        one_node = len(topology.nodes) == 1
        tids = (WHOLE,) if one_node else troubles.attempt(partial(self._threads, process))
        for tid in tids or ():
            thread = troubles.attempt(partial(self._thread, process, tid))
            if thread is None:
                continue
            key = (tid, thread.start_ticks)
            now[key] = thread.seconds
            node = topology.nodes[0] if one_node else topology.node_of_cpu.get(thread.cpu)
            before = known.get(key) if known is not None else thread.seconds
            if before is None:
                # a new thread used all its time since the last call; one that was only not looked at then did not
                before = 0.0 if self._began_ns(thread) >= since else thread.seconds
            spent = thread.seconds - before
            if node is not None and spent > 0:
                nodes[node] = nodes.get(node, 0.0) + spent
        self._seconds[process] = now
        self._looked_ns[process] = now_ns
        return nodes

    def _began_ns(self, thread: ThreadCpu) -> int:
        """Return the end of the clock tick in which a thread began, after boot."""
        return (thread.start_ticks + 1) * 1_000_000_000 // self._user_hz

    def _thread(self, process: ProcessId, tid: int) -> ThreadCpu:
        place = () if tid == WHOLE else ("task", str(tid))
        return parse_thread_cpu(read_bytes(self._hostfs.proc(str(process.pid), *place, "stat")), self._user_hz)

    def _threads(self, process: ProcessId) -> Collection[int]:
        """Return the lowest thread ids, which are the oldest and so the same ones each time."""
        path = self._hostfs.proc(str(process.pid), "task")
        try:
            return sorted(int(entry.name) for entry in path.iterdir() if entry.name.isdigit())[: self._most_threads]
        except OSError as error:
            if error.errno in ABSENT_ERRNOS:
                raise NoData(f"{path}: {error.strerror}") from error
            reason = "permission_denied" if error.errno in DENIED_ERRNOS else "io"
            raise SourceError(f"{path}: {error.strerror or error}", reason=reason) from error


def nodes_run_on(seconds: Mapping[int, float]) -> frozenset[int]:
    """Return the nodes that have a share worth the name of CPU times by node."""
    least = LEAST_SHARE * sum(seconds.values())
    return frozenset(node for node, share in seconds.items() if share > 0 and share >= least)
