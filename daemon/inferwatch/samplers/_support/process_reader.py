"""Read what /proc/PID tells of one process's memory and files."""

import os
from collections.abc import Collection
from dataclasses import dataclass
from functools import partial
from typing import Final

from inferwatch.errors import SourceError
from inferwatch.samplers._support.troubles import Troubles
from inferwatch.sources.hostfs import ABSENT_ERRNOS, DENIED_ERRNOS, HostFs, read_bytes
from inferwatch.sources.procfs.fields import signed
from inferwatch.sources.procfs.limits import OpenFilesLimit, parse_open_files_limit
from inferwatch.sources.procfs.pid_memory import PidMemory, parse_pid_memory
from inferwatch.sources.procfs.statm import parse_statm
from inferwatch.spec import Clock
from inferwatch.targets.model import ProcessId, TargetProcess

SETTINGS_NS: Final = 60_000_000_000


@dataclass(frozen=True, slots=True)
class ProcessReading:
    """What was read of a process; None is what could not be, or is not told.

    Args:
        process: Which.
        memory: From status; the sorts of resident memory from statm where status does not tell them.
        open_fds: Number of its file descriptors.
        limit: How many it may have.
        oom_score: How gladly the kernel would kill it, 0 to 2000 (in practice to 1333).
        oom_score_adj: What was added to that on purpose, -1000 to 1000.
    """

    process: TargetProcess
    memory: PidMemory
    open_fds: int | None
    limit: OpenFilesLimit | None
    oom_score: int | None
    oom_score_adj: int | None


@dataclass(frozen=True, slots=True)
class _Settings:
    read_ns: int
    limit: OpenFilesLimit
    oom_score_adj: int


class ProcessReader:
    """Reads processes; what rarely changes is read once a minute.

    Args:
        hostfs: The host's file systems.
        clock: Time.
    """

    def __init__(self, hostfs: HostFs, clock: Clock) -> None:
        self._hostfs = hostfs
        self._clock = clock
        self._page_bytes = os.sysconf("SC_PAGE_SIZE")
        self._settings: dict[ProcessId, _Settings] = {}

    def keep_only(self, processes: Collection[ProcessId]) -> None:
        """Forget all other processes."""
        for process in self._settings.keys() - set(processes):
            del self._settings[process]

    def read(self, process: TargetProcess, troubles: Troubles) -> ProcessReading | None:
        """Read one process; None when it has ended or has no memory any more."""
        pid = str(process.id.pid)

        memory = troubles.attempt(partial(self._memory, pid))
        if memory is None:
            return None
        limit, oom_score_adj = self._read_settings(process.id, troubles)
        return ProcessReading(
            process=process,
            memory=memory,
            open_fds=troubles.attempt(partial(self._count_fds, pid)),
            limit=limit,
            oom_score=troubles.attempt(partial(self._number, pid, "oom_score")),
            oom_score_adj=oom_score_adj,
        )

    def _read_settings(self, process: ProcessId, troubles: Troubles) -> tuple[OpenFilesLimit | None, int | None]:
        known, now = self._settings.get(process), self._clock.monotonic_ns()
        if known is not None and now - known.read_ns < SETTINGS_NS:
            return known.limit, known.oom_score_adj
        pid = str(process.pid)
        limit = troubles.attempt(partial(self._limit, pid))
        oom_score_adj = troubles.attempt(partial(self._number, pid, "oom_score_adj"))
        if limit is not None and oom_score_adj is not None:  # what failed is told, and tried again, each time
            self._settings[process] = _Settings(now, limit, oom_score_adj)
        return limit, oom_score_adj

    def _limit(self, pid: str) -> OpenFilesLimit:
        return parse_open_files_limit(read_bytes(self._hostfs.proc(pid, "limits")))

    def _number(self, pid: str, name: str) -> int:
        return signed(read_bytes(self._hostfs.proc(pid, name)).strip(), f"/proc/PID/{name}")

    def _memory(self, pid: str) -> PidMemory | None:
        memory = parse_pid_memory(read_bytes(self._hostfs.proc(pid, "status")))
        if memory is None or memory.anonymous_bytes is not None:
            return memory
        statm = parse_statm(read_bytes(self._hostfs.proc(pid, "statm")), self._page_bytes)
        return PidMemory(
            resident_bytes=statm.resident_bytes,
            peak_bytes=memory.peak_bytes,
            anonymous_bytes=statm.anonymous_bytes,
            file_bytes=statm.shared_bytes,  # with shared memory in it: statm does not tell them apart
            swap_bytes=memory.swap_bytes,
            locked_bytes=memory.locked_bytes,
            pinned_bytes=memory.pinned_bytes,
        )

    def _count_fds(self, pid: str) -> int | None:
        path = self._hostfs.proc(pid, "fd")
        try:
            with os.scandir(path) as entries:
                return sum(1 for _ in entries)
        except OSError as error:
            if error.errno in ABSENT_ERRNOS:
                return None
            reason = "permission_denied" if error.errno in DENIED_ERRNOS else "io"
            raise SourceError(f"{path}: {error.strerror or error}", reason=reason) from error
