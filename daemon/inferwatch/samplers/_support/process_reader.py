"""Read what /proc/PID tells of one process's memory and files."""

import os
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
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
SIZES_NS: Final = 15_000_000_000  # a server with thousands of connections has as many entries in fd
NEVER: Final = -SETTINGS_NS
FILES: Final = ("status", "statm", "fd", "limits", "oom_score", "oom_score_adj")


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


class _Known:
    """What is kept of a process between reads: where its files are, and what is not read each time."""

    __slots__ = ("limit", "oom_score", "oom_score_adj", "open_fds", "paths", "settings_ns", "sizes_ns")

    def __init__(self, directory: Path) -> None:
        self.paths: Final = {name: directory / name for name in FILES}
        self.settings_ns = self.sizes_ns = NEVER
        self.limit: OpenFilesLimit | None = None
        self.oom_score_adj: int | None = None
        self.open_fds: int | None = None
        self.oom_score: int | None = None


class ProcessReader:
    """Reads processes; memory each time, open files and the score every 15 seconds, settings once a minute.

    Args:
        hostfs: The host's file systems.
        clock: Time.
    """

    def __init__(self, hostfs: HostFs, clock: Clock) -> None:
        self._hostfs = hostfs
        self._clock = clock
        self._page_bytes = os.sysconf("SC_PAGE_SIZE")
        self._known: dict[ProcessId, _Known] = {}

    def keep_only(self, processes: Collection[ProcessId]) -> None:
        """Forget all other processes."""
        for process in self._known.keys() - set(processes):
            del self._known[process]

    def read(self, process: TargetProcess, troubles: Troubles) -> ProcessReading | None:
        """Read one process; None when it has ended or has no memory any more."""
        known = self._known.get(process.id)
        if known is None:
            known = self._known[process.id] = _Known(self._hostfs.proc(str(process.id.pid)))
        memory = troubles.attempt(partial(self._memory, known.paths))
        if memory is None:
            return None
        now = self._clock.monotonic_ns()
        self._read_sizes(known, now, troubles)
        self._read_settings(known, now, troubles)
        return ProcessReading(
            process=process,
            memory=memory,
            open_fds=known.open_fds,
            limit=known.limit,
            oom_score=known.oom_score,
            oom_score_adj=known.oom_score_adj,
        )

    def _read_sizes(self, known: _Known, now: int, troubles: Troubles) -> None:
        if now - known.sizes_ns < SIZES_NS:
            return
        known.open_fds = troubles.attempt(partial(_count_fds, known.paths["fd"]))
        known.oom_score = troubles.attempt(partial(_number, known.paths["oom_score"]))
        if known.open_fds is not None and known.oom_score is not None:  # what failed is told, and tried again
            known.sizes_ns = now

    def _read_settings(self, known: _Known, now: int, troubles: Troubles) -> None:
        if now - known.settings_ns < SETTINGS_NS:
            return
        known.limit = troubles.attempt(partial(_limit, known.paths["limits"]))
        known.oom_score_adj = troubles.attempt(partial(_number, known.paths["oom_score_adj"]))
        if known.limit is not None and known.oom_score_adj is not None:
            known.settings_ns = now

    def _memory(self, paths: Mapping[str, Path]) -> PidMemory | None:
        memory = parse_pid_memory(read_bytes(paths["status"]))
        if memory is None or memory.anonymous_bytes is not None:
            return memory
        statm = parse_statm(read_bytes(paths["statm"]), self._page_bytes)
        return PidMemory(
            resident_bytes=statm.resident_bytes,
            peak_bytes=memory.peak_bytes,
            anonymous_bytes=statm.anonymous_bytes,
            file_bytes=statm.shared_bytes,  # with shared memory in it: statm does not tell them apart
            swap_bytes=memory.swap_bytes,
            locked_bytes=memory.locked_bytes,
            pinned_bytes=memory.pinned_bytes,
        )


def _limit(path: Path) -> OpenFilesLimit:
    return parse_open_files_limit(read_bytes(path))


def _number(path: Path) -> int:
    return signed(read_bytes(path).strip(), str(path))


def _count_fds(path: Path) -> int | None:
    try:
        with os.scandir(path) as entries:
            return sum(1 for _ in entries)
    except OSError as error:
        if error.errno in ABSENT_ERRNOS:
            return None
        reason = "permission_denied" if error.errno in DENIED_ERRNOS else "io"
        raise SourceError(f"{path}: {error.strerror or error}", reason=reason) from error
