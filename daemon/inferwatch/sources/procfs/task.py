"""Parse what /proc tells of one thread: stat, schedstat and status (fs/proc/array.c, fs/proc/base.c).

The same files of a process, /proc/PID/stat and the like, have the same form. Its stat sums the whole thread group, dead
threads included; its status and schedstat are the first thread's alone.
"""

import re
from dataclasses import dataclass
from typing import Final

from inferwatch.errors import ParseError
from inferwatch.sources.procfs.fields import excerpt, unsigned

STAT: Final = "/proc/PID/task/TID/stat"
SCHEDSTAT: Final = "/proc/PID/task/TID/schedstat"
STATUS: Final = "/proc/PID/task/TID/status"

# Places behind the name; proc(5) counts from 1 and the name is its field 2, so these are its numbers less 3.
STATE, MINFLT, CMINFLT, MAJFLT, CMAJFLT, UTIME, STIME, CUTIME, CSTIME, STARTTIME = 0, 7, 8, 9, 10, 11, 12, 13, 14, 19
FEWEST_FIELDS: Final = 20
SCHEDSTAT_FIELDS: Final = 3
STATES: Final = b"RSDTtXZPIxKW"  # of all kernels since 2.6; 4.14 dropped x, K and W
SWITCHES: Final = re.compile(rb"\n(non)?voluntary_ctxt_switches:[ \t]*([^\n]*)")


@dataclass(frozen=True, slots=True)
class TaskStat:
    """A stat file.

    Args:
        comm: Name, any bytes but NUL; kernel threads of workqueues have more than 15.
        state: One letter, as ps shows it.
        minor_faults: Page faults without I/O.
        major_faults: Page faults with I/O.
        user_ticks: CPU time in user mode in clock ticks (USER_HZ).
        system_ticks: CPU time in the kernel in clock ticks.
        start_ticks: Start in clock ticks after boot.
        reaped_minor_faults: Page faults without I/O of children that were waited for, and of theirs.
        reaped_major_faults: Page faults with I/O of the same.
        reaped_user_ticks: Their CPU time in user mode in clock ticks.
        reaped_system_ticks: Their CPU time in the kernel in clock ticks.
    """

    comm: bytes
    state: str
    minor_faults: int
    major_faults: int
    user_ticks: int
    system_ticks: int
    start_ticks: int
    reaped_minor_faults: int
    reaped_major_faults: int
    reaped_user_ticks: int
    reaped_system_ticks: int


@dataclass(frozen=True, slots=True)
class TaskSchedstat:
    """A schedstat file; all zero where the kernel has no CONFIG_SCHED_INFO.

    Args:
        runtime_ns: CPU time.
        run_delay_ns: Time ready to run and waiting for a CPU.
        timeslices: How often it was put on a CPU.
    """

    runtime_ns: int
    run_delay_ns: int
    timeslices: int


@dataclass(frozen=True, slots=True)
class TaskSwitches:
    """The context switches in a status file."""

    voluntary: int
    involuntary: int


def parse_task_stat(data: bytes) -> TaskStat:
    r"""Parse `42 (a) b) (c\n) S 1 ...`: a name can hold parentheses, blanks and line ends, so its end is the last `)`.

    Raises:
        ParseError: When it is malformed.
    """
    begin, end = data.find(b" ("), data.rfind(b") ")
    fields = data[end + 2 :].split() if 0 < begin < end else []
    if len(fields) < FEWEST_FIELDS:
        raise ParseError(f"{STAT}: {excerpt(data)}, expected 'TID (name) S' and {FEWEST_FIELDS - 1} numbers at least")
    unsigned(data[:begin], f"{STAT}: thread id")
    if len(fields[STATE]) != 1 or fields[STATE] not in STATES:
        raise ParseError(f"{STAT}: state is {excerpt(fields[STATE])}, expected one letter of {STATES.decode()}")
    return TaskStat(
        comm=data[begin + 2 : end],
        state=fields[STATE].decode("ascii"),
        minor_faults=unsigned(fields[MINFLT], f"{STAT}: minflt"),
        major_faults=unsigned(fields[MAJFLT], f"{STAT}: majflt"),
        user_ticks=unsigned(fields[UTIME], f"{STAT}: utime"),
        system_ticks=unsigned(fields[STIME], f"{STAT}: stime"),
        start_ticks=unsigned(fields[STARTTIME], f"{STAT}: starttime"),
        reaped_minor_faults=unsigned(fields[CMINFLT], f"{STAT}: cminflt"),
        reaped_major_faults=unsigned(fields[CMAJFLT], f"{STAT}: cmajflt"),
        reaped_user_ticks=unsigned(fields[CUTIME], f"{STAT}: cutime"),
        reaped_system_ticks=unsigned(fields[CSTIME], f"{STAT}: cstime"),
    )


def parse_task_schedstat(data: bytes) -> TaskSchedstat:
    """Parse `<runtime ns> <run delay ns> <timeslices>`.

    Raises:
        ParseError: When it is malformed.
    """
    fields = data.split()
    if len(fields) != SCHEDSTAT_FIELDS:
        raise ParseError(f"{SCHEDSTAT}: {len(fields)} fields, expected {SCHEDSTAT_FIELDS} ({excerpt(data)})")
    return TaskSchedstat(*(unsigned(field, f"{SCHEDSTAT}: field") for field in fields))


def parse_task_switches(data: bytes) -> TaskSwitches:
    """Parse the lines `voluntary_ctxt_switches` and `nonvoluntary_ctxt_switches` of a status file.

    Raises:
        ParseError: When one of them is missing or malformed.
    """
    found = {match[1]: match[2] for match in SWITCHES.finditer(data)}
    if found.keys() != {None, b"non"}:
        raise ParseError(f"{STATUS}: expected the lines voluntary_ctxt_switches and nonvoluntary_ctxt_switches")
    return TaskSwitches(
        voluntary=unsigned(found[None], f"{STATUS}: voluntary_ctxt_switches"),
        involuntary=unsigned(found[b"non"], f"{STATUS}: nonvoluntary_ctxt_switches"),
    )
