"""Records of what the threads of processes did, the same ones from the BPF iterator (bpf/tasks) and from tasks_proc."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

_NUMBER: Final = re.compile(rb"[0-9]+")
_COMM_BYTES: Final = 15  # TASK_COMM_LEN less the end; kernel threads show longer names in /proc


@dataclass(frozen=True, slots=True)
class TaskSums:
    """What threads did.

    Args:
        user_seconds: CPU time in user mode.
        system_seconds: CPU time in the kernel.
        run_queue_wait_seconds: Time in which they were ready to run and waited for a CPU; None where the kernel does
            not count it (no CONFIG_SCHED_INFO).
        timeslices: How often they were put on a CPU; None likewise.
        voluntary_switches: How often they gave up the CPU to wait for something; None where the source can't tell.
        involuntary_switches: How often the CPU was taken from them; None likewise.
        minor_faults: Page faults that needed no I/O.
        major_faults: Page faults that did.
    """

    user_seconds: float
    system_seconds: float
    run_queue_wait_seconds: float | None
    timeslices: int | None
    voluntary_switches: int | None
    involuntary_switches: int | None
    minor_faults: int
    major_faults: int


@dataclass(frozen=True, slots=True)
class ThreadStates:
    """How many threads are in which state now; `running` means on a CPU or waiting for one."""

    running: int = 0
    sleeping: int = 0
    disk_sleep: int = 0
    stopped: int = 0
    zombie: int = 0
    other: int = 0

    @property
    def threads(self) -> int:
        """Return the number of threads."""
        return self.running + self.sleeping + self.disk_sleep + self.stopped + self.zombie + self.other


@dataclass(frozen=True, slots=True)
class NameTotals:
    """Threads of one name in one process: how many there are now, and what all that had the name ever did."""

    threads: int
    sums: TaskSums


@dataclass(frozen=True, slots=True)
class ProcessTotals:
    """One process. No sum falls while the process lives.

    Args:
        start_ticks: When it started, as in field 22 of /proc/PID/stat; with the pid its identity.
        total: All its threads, also those that have ended, like /proc/PID/stat.
        by_name: The same by thread name (see `thread_name`), as far as it was seen while the threads lived.
        unattributed: What of the total is in no name: done by threads after the last reading that saw them alive, or
            by threads over a limit. Counts and `user_seconds + system_seconds` of the parts add up to the total's; the
            division into user and system is made for each part by itself, as the kernel makes it for each thread.
        states: Threads by state.
        reaped: What children did that have ended and were waited for, and their own such children, like cutime and its
            kin in /proc/PID/stat; without wait and timeslices, which the kernel does not keep.
    """

    start_ticks: int
    total: TaskSums
    by_name: Mapping[str, NameTotals]
    unattributed: TaskSums
    states: ThreadStates
    reaped: TaskSums | None = None


@dataclass(frozen=True, slots=True)
class OtherTotals:
    """All threads of all other processes of the node as one sum, as far as it was seen while they lived."""

    sums: TaskSums
    states: ThreadStates


@dataclass(frozen=True, slots=True)
class Omitted:
    """What a reading left out; all zero as a rule.

    Args:
        processes: Target processes over the limit.
        threads: Threads of targets over the limit: in the total and in no name, wait and timeslices not counted.
        names: Threads whose names are over the limit: in the total and in no name.
        other_threads: Threads of other processes over the limit: not counted.
        denied: Target processes, or threads of them, that may not be read.
    """

    processes: int = 0
    threads: int = 0
    names: int = 0
    other_threads: int = 0
    denied: int = 0


@dataclass(frozen=True, slots=True)
class TaskTotals:
    """One reading.

    Args:
        processes: By pid; a target that has ended is not among them.
        other: The rest of the node, or None where the source does not read it.
        omitted: What is missing.
    """

    processes: Mapping[int, ProcessTotals]
    other: OtherTotals | None
    omitted: Omitted


def thread_name(comm: bytes) -> str:
    """Return the name under which a thread is counted: its comm, every run of digits as one `#`.

    So the threads of a pool (`worker-17`, `worker-18`) are one name and the number of names stays small. What can't be
    printed is escaped.
    """
    text = _NUMBER.sub(b"#", comm[:_COMM_BYTES]).decode("utf-8", "backslashreplace")
    return text if text.isprintable() else text.encode("unicode_escape").decode("ascii")
