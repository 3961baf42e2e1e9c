"""Parse the head of /proc/PID/stat (do_task_stat() in fs/proc/array.c): name, parent, kind and start of a process."""

from dataclasses import dataclass
from typing import Final

from inferwatch.errors import ParseError
from inferwatch.sources.procfs.fields import excerpt, signed, unsigned

FILE: Final = "/proc/PID/stat"
KERNEL_THREAD: Final = 0x0020_0000  # PF_KTHREAD, include/linux/sched.h

# Columns after the name, counted from the state, which is field 3 of proc_pid_stat(5).
PPID: Final = 1
FLAGS: Final = 6
START_TICKS: Final = 19


@dataclass(frozen=True, slots=True)
class PidStat:
    """Who a process is.

    Args:
        pid: Its pid in the procfs' pid namespace.
        comm: Name of its main thread, as the kernel has it: any bytes but NUL, also `)` and line ends.
        state: One letter: R, S, D, Z, T, ...
        ppid: Its parent's pid, 0 when that is outside the pid namespace.
        kernel_thread: Whether it is a thread of the kernel.
        start_ticks: When it started, in clock ticks after boot.
    """

    pid: int
    comm: bytes
    state: str
    ppid: int
    kernel_thread: bool
    start_ticks: int


def parse_pid_stat(data: bytes) -> PidStat:
    """Parse the fields up to the start time; what follows is ignored.

    The name stands in parentheses and may hold some itself, as in `(sd-pam)`: it ends at the last one.

    Raises:
        ParseError: When it is not of that form.
    """
    opening, closing = data.find(b" ("), data.rfind(b") ")
    fields = data[closing + 2 :].split(None, START_TICKS + 1)
    if opening < 1 or closing < opening or len(fields) <= START_TICKS or len(fields[0]) != 1 or not fields[0].isalpha():
        raise ParseError(f"{FILE}: {excerpt(data)} found, expected `pid (name) state ppid ...`")
    return PidStat(
        pid=unsigned(data[:opening], f"{FILE}: pid"),
        comm=data[opening + 2 : closing],
        state=fields[0].decode("ascii"),
        ppid=max(signed(fields[PPID], f"{FILE}: ppid"), 0),
        kernel_thread=bool(unsigned(fields[FLAGS], f"{FILE}: flags") & KERNEL_THREAD),
        start_ticks=unsigned(fields[START_TICKS], f"{FILE}: starttime"),
    )
