"""Read what the threads of some processes did from /proc/PID/task/TID: for hosts where the BPF iterator can't be used.

It gives the same records as sources/bpf/tasks, with less: three files for each thread cost some 70 us, so the threads
are capped and the rest of the node is not read; context switches of dead threads are in no file, so what a thread
switched between the last reading and its end is lost, as run-queue wait and timeslices are in both sources.
"""

import os
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final

from inferwatch.errors import InferwatchError, NoData, SourceError
from inferwatch.sources.hostfs import ABSENT_ERRNOS, DENIED_ERRNOS, HostFs
from inferwatch.sources.procfs.task import TaskStat, parse_task_schedstat, parse_task_stat, parse_task_switches
from inferwatch.sources.task_ledger import (
    MAJOR,
    MINOR,
    RUNTIME,
    SYSTEM,
    TIMESLICES,
    USER,
    Counts,
    ProcessLedger,
    reaped_sums,
)
from inferwatch.sources.task_totals import Omitted, ProcessTotals, TaskSums, TaskTotals, ThreadStates, thread_name
from inferwatch.sources.thread_increases import ThreadIncreases

MAX_THREADS: Final = 2000  # of one reading, some 0.15 s of CPU time
FILE_BYTES: Final = 16_384  # a status file has 1,500; the kernel gives a small file in one piece
TICK_NS: Final = 1_000_000_000 // os.sysconf("SC_CLK_TCK")
STATES: Final = {"R": "running", "S": "sleeping", "D": "disk_sleep", "T": "stopped", "t": "stopped"}
DEAD_STATES: Final = {"Z": "zombie", "X": "zombie", "x": "zombie"}


@dataclass(slots=True)
class _Process:
    """What is kept of a target from one reading to the next; start and pid are its identity."""

    start_ticks: int
    ledger: ProcessLedger = field(default_factory=ProcessLedger)
    increases: ThreadIncreases = field(default_factory=ThreadIncreases)


@dataclass(slots=True)
class _Pass:
    """What one reading may still read, and what it left out."""

    budget: int
    threads: int = 0
    names: int = 0
    denied: int = 0


class TaskFiles:
    """Reads the threads of the targets; not for two threads at once.

    Args:
        hostfs: Where the host's /proc is.
        max_threads: Most threads of one reading, divided among the processes; the rest is in `Omitted.threads`, and
            not among the states.
    """

    def __init__(self, hostfs: HostFs, max_threads: int = MAX_THREADS) -> None:
        self._hostfs = hostfs
        self._max_threads = max_threads
        self._targets: dict[int, _Process | None] = {}  # None: not read yet
        self._has_wait = False

    def set_targets(self, pids: Iterable[int]) -> None:
        """Say which processes are targets from now on; a new one begins with its whole past."""
        self._targets = {pid: self._targets.get(pid) for pid in sorted(set(pids))}

    def read(self) -> TaskTotals:
        """Read all threads of the targets once; a process that has ended is left out in silence and dropped.

        Raises:
            SourceError: When a file can't be read for another reason than permission.
            ParseError: When a file is malformed.
        """
        this = _Pass(self._max_threads)
        found: dict[int, ProcessTotals] = {}
        # those with few threads first: what they leave of their share is for those with many
        pids = sorted(self._targets, key=self._thread_count)
        for place, pid in enumerate(pids):
            try:
                found[pid] = self._read_process(pid, this.budget // (len(pids) - place), this)
            except NoData:
                del self._targets[pid]
            except SourceError as error:
                _count_denied(error, this)
        return TaskTotals(found, None, Omitted(threads=this.threads, names=this.names, denied=this.denied))

    def _thread_count(self, pid: int) -> int:
        """Return about how many threads a process has: its folder has a link for each (proc_task_getattr())."""
        try:
            return os.stat(f"{self._hostfs.proc(str(pid))}/task").st_nlink  # noqa: PTH116 - done for each process
        except OSError:
            return 0

    def close(self) -> None:
        """Do nothing: no file is open between two readings."""

    def _read_process(self, pid: int, share: int, this: _Pass) -> ProcessTotals:
        # Before its threads: one that ends in between is missed in this reading; the other way round it counts twice.
        stat = parse_task_stat(_read(f"{self._hostfs.proc(str(pid))}/stat"))
        process = self._targets[pid]
        if process is None:
            process = self._targets[pid] = _Process(stat.start_ticks)
        elif process.start_ticks != stat.start_ticks:
            raise NoData(f"process {pid} has ended, its pid was given to another one")
        threads = self._list_threads(pid)
        process.increases.forget_others(threads)
        for thread in threads[share:]:
            process.increases.skip(thread)
        this.threads += len(threads[share:])
        this.budget -= len(threads[:share])
        return self._publish(process, stat, self._read_threads(pid, threads[:share], process.increases, this))

    def _list_threads(self, pid: int) -> list[int]:
        """Return the thread ids of a process, ascending."""
        path = self._hostfs.proc(str(pid), "task")
        try:
            with os.scandir(path) as entries:
                return sorted(int(entry.name) for entry in entries if entry.name.isdecimal())
        except OSError as error:
            raise _failure(path, error) from error

    def _read_threads(
        self, pid: int, threads: list[int], increases: ThreadIncreases, this: _Pass
    ) -> list[tuple[str, str]]:
        """Read these threads and return name and state of each; one that has ended is left out."""
        found = []
        folder = self._hostfs.proc(str(pid), "task")
        for thread in threads:
            try:
                stat, counts = _read_thread(f"{folder}/{thread}")
            except NoData:
                continue
            except SourceError as error:
                _count_denied(error, this)
                increases.skip(thread)
                continue
            name = thread_name(stat.comm)
            this.names += not increases.take(thread, stat.start_ticks, name, counts)
            found.append((name, stat.state))
        return found

    def _publish(self, process: _Process, stat: TaskStat, threads: list[tuple[str, str]]) -> ProcessTotals:
        total = list(process.increases.total())
        total[USER], total[SYSTEM] = stat.user_ticks * TICK_NS, stat.system_ticks * TICK_NS
        total[RUNTIME] = total[USER] + total[SYSTEM]
        total[MINOR], total[MAJOR] = stat.minor_faults, stat.major_faults
        self._has_wait = self._has_wait or total[TIMESLICES] > 0
        living = Counter(name for name, _ in threads)
        for name, counts in process.increases.retire(living):
            process.ledger.retire(name, counts)
        names = [(name, living[name], counts) for name, counts in process.increases.names.items()]
        states = _states(state for _, state in threads)
        return process.ledger.publish(
            process.start_ticks, total, names, states, has_wait=self._has_wait, reaped=_reaped(stat)
        )


def _reaped(stat: TaskStat) -> TaskSums:
    """Return what the process's children did that were waited for; no file tells their context switches."""
    faults = stat.reaped_minor_faults, stat.reaped_major_faults
    return reaped_sums(stat.reaped_user_ticks * TICK_NS, stat.reaped_system_ticks * TICK_NS, faults, (None, None))


def _states(letters: Iterable[str]) -> ThreadStates:
    return ThreadStates(**Counter((STATES | DEAD_STATES).get(letter, "other") for letter in letters))


def _count_denied(error: SourceError, this: _Pass) -> None:
    if error.reason != "permission_denied":
        raise error
    this.denied += 1


def _read_thread(folder: str) -> tuple[TaskStat, Counts]:
    stat = parse_task_stat(_read(f"{folder}/stat"))
    schedstat = parse_task_schedstat(_read(f"{folder}/schedstat"))
    switches = parse_task_switches(_read(f"{folder}/status"))
    user, system = stat.user_ticks * TICK_NS, stat.system_ticks * TICK_NS
    return stat, (
        schedstat.runtime_ns or user + system,  # without CONFIG_SCHED_INFO the file says 0
        user,
        system,
        schedstat.run_delay_ns,
        schedstat.timeslices,
        switches.voluntary,
        switches.involuntary,
        stat.minor_faults,
        stat.major_faults,
    )


def _read(path: str) -> bytes:
    """Read a small file; `hostfs.read_bytes` takes three times as long, and here it is done thousands of times."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            return os.read(fd, FILE_BYTES)
        finally:
            os.close(fd)
    except OSError as error:
        raise _failure(path, error) from error


def _failure(path: str | os.PathLike[str], error: OSError) -> InferwatchError:
    if error.errno in ABSENT_ERRNOS:
        return NoData(f"{path}: {error.strerror}")
    reason = "permission_denied" if error.errno in DENIED_ERRNOS else "io"
    return SourceError(f"{path}: {error.strerror}", reason=reason)
