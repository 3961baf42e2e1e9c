"""Read on which NUMA nodes the memory of processes is: a walk over all page tables, so rarely and within bounds."""

import os
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from inferwatch.errors import InferwatchError, NoData, ParseError, SourceError
from inferwatch.samplers._support.troubles import Troubles
from inferwatch.sources.hostfs import ABSENT_ERRNOS, DENIED_ERRNOS, HostFs, read_bytes
from inferwatch.sources.procfs.numa_maps import parse_numa_maps
from inferwatch.sources.procfs.pid_memory import parse_pid_memory
from inferwatch.spec import Clock
from inferwatch.targets.model import ProcessId

CHUNK_BYTES: Final = 65_536
YOUNG_NS: Final = 15_000_000_000  # shortest time between two walks over a process that is still loading
PART_OF_AGE: Final = 4
MOST_OF_TIME: Final = 100  # a walk may take a hundredth of the time, also of a young process
BUDGET_SHARE: Final = 0.5  # of the run's time limit, for all processes together


@dataclass(frozen=True, slots=True)
class _Entry:
    read_ns: int
    nodes: Mapping[int, int] | None
    problem: InferwatchError | None
    first_ns: int = 0
    good_ns: int = 0


@dataclass(frozen=True, slots=True)
class Bounds:
    """What a read may cost.

    Args:
        interval_seconds: How long a reading is good; of a young process, up to a quarter of its age.
        most_bytes: Largest numa_maps that is read.
        budget_seconds: How long all reads of one run may take.
    """

    interval_seconds: float
    most_bytes: int
    budget_seconds: float


class NumaMemory:
    """Keeps the newest reading of each process.

    Args:
        hostfs: The host's file systems.
        clock: Time.
        bounds: What a read may cost.
    """

    def __init__(self, hostfs: HostFs, clock: Clock, bounds: Bounds) -> None:
        self._hostfs = hostfs
        self._clock = clock
        self._bounds = bounds
        self._page_bytes = os.sysconf("SC_PAGE_SIZE")
        self._tick_ns = 1_000_000_000 // os.sysconf("SC_CLK_TCK")
        self._entries: dict[ProcessId, _Entry] = {}
        self._paths: dict[ProcessId, Path] = {}

    def refresh(self, processes: Collection[ProcessId], nodes: Collection[int], troubles: Troubles) -> None:
        """Read what is due, the oldest first; forget all other processes.

        Args:
            processes: All processes of targets.
            nodes: The host's nodes: where there is one only, all memory is on it, and its size is told by status, which
                costs so little that it is read each time.
            troubles: Where the problems of the newest readings are told.
        """
        now = self._clock.monotonic_ns()
        end = now + round(self._bounds.budget_seconds * 1e9)
        self._entries = {process: self._entries[process] for process in processes if process in self._entries}
        for process in self._paths.keys() - self._entries.keys():
            del self._paths[process]
        for process in sorted(processes, key=self._last_read):
            if self._clock.monotonic_ns() >= end:
                break
            if now - self._last_read(process) >= self._good_for(process):
                self._entries[process] = self._read(process, nodes, now, end)
        for entry in self._entries.values():
            if entry.problem is not None:
                troubles.note(entry.problem)

    def nodes(self, process: ProcessId) -> Mapping[int, int] | None:
        """Return bytes by node; None when they are not known."""
        entry = self._entries.get(process)
        return entry.nodes if entry else None

    def is_gone(self, process: ProcessId) -> bool:
        """Return whether a process had ended, or had no memory any more, when it was read."""
        entry = self._entries.get(process)
        return entry is not None and entry.nodes is None and entry.problem is None

    def _last_read(self, process: ProcessId) -> float:
        entry = self._entries.get(process)
        return entry.read_ns if entry else float("-inf")

    def _good_for(self, process: ProcessId) -> int:
        entry = self._entries.get(process)
        return entry.good_ns if entry else 0

    def _read(self, process: ProcessId, nodes: Collection[int], now_ns: int, end_ns: int) -> _Entry:
        before = self._entries.get(process)
        first = before.first_ns if before else now_ns
        good, begin = 0, self._clock.monotonic_ns()
        found: Mapping[int, int] | None = None
        problem: InferwatchError | None = None
        try:
            if len(nodes) == 1:
                found = self._whole(process, next(iter(nodes)))
            else:
                good = round(self._bounds.interval_seconds * 1e9)  # also when it fails
                data = self._read_within(self._hostfs.proc(str(process.pid), "numa_maps"), end_ns)
                found = parse_numa_maps(data, self._page_bytes)
                good = self._good_after(process, first, begin)
        except NoData:
            pass
        except (ParseError, SourceError) as error:
            problem = error
        return _Entry(now_ns, found, problem, first, good)

    def _good_after(self, process: ProcessId, first_ns: int, begin_ns: int) -> int:
        """Return how long a reading is good: less for a process that loads its model, or has just loaded it."""
        now = self._clock.monotonic_ns()
        age = max(now - first_ns, now - process.start_ticks * self._tick_ns)
        young = max(YOUNG_NS, age // PART_OF_AGE, (now - begin_ns) * MOST_OF_TIME)
        return min(round(self._bounds.interval_seconds * 1e9), young)

    def _whole(self, process: ProcessId, node: int) -> Mapping[int, int] | None:
        path = self._paths.get(process)
        if path is None:
            path = self._paths[process] = self._hostfs.proc(str(process.pid), "status")
        memory = parse_pid_memory(read_bytes(path))
        return None if memory is None else {node: memory.resident_bytes + (memory.huge_bytes or 0)}

    def _read_within(self, path: Path, end_ns: int) -> bytes:
        """Read a file whose every page costs time; half of it would give wrong shares, so it is all or nothing."""
        data = bytearray()
        try:
            with path.open("rb", buffering=0) as file:
                while chunk := file.read(CHUNK_BYTES):
                    data += chunk
                    if len(data) > self._bounds.most_bytes:
                        raise SourceError(
                            f"{path}: larger than numa_maps_bytes = {self._bounds.most_bytes}", reason="too_large"
                        )
                    if self._clock.monotonic_ns() >= end_ns:
                        raise SourceError(f"{path}: takes longer than the time that a run has for it", reason="timeout")
        except OSError as error:
            if error.errno in ABSENT_ERRNOS:
                raise NoData(f"{path}: {error.strerror}") from error
            reason = "permission_denied" if error.errno in DENIED_ERRNOS else "io"
            raise SourceError(f"{path}: {error.strerror or error}", reason=reason) from error
        return bytes(data)
