"""Parse where a thread ran last, from /proc/PID/task/TID/stat (fs/proc/array.c, do_task_stat())."""

from dataclasses import dataclass
from typing import Final

from inferwatch.errors import ParseError
from inferwatch.sources.procfs.fields import excerpt, unsigned

FILE: Final = "/proc/PID/task/TID/stat"
# Places after the name, which is field 2 and ends with the last `)`: it may hold blanks and parentheses itself.
UTIME, STIME, START, PROCESSOR = 14 - 3, 15 - 3, 22 - 3, 39 - 3


@dataclass(frozen=True, slots=True)
class ThreadCpu:
    """CPU use of one thread.

    Args:
        seconds: CPU time in user and kernel mode since it started.
        start_ticks: When it started, in clock ticks after boot; with the id it is the thread's identity.
        cpu: On which CPU it is or was last.
    """

    seconds: float
    start_ticks: int
    cpu: int


def parse_thread_cpu(data: bytes, user_hz: int) -> ThreadCpu:
    """Parse a stat file.

    Args:
        data: The file.
        user_hz: Clock ticks a second.

    Raises:
        ParseError: When the name's end or a field is missing or malformed.
    """
    _, end, rest = data.rpartition(b")")
    fields = rest.split()
    if not end or len(fields) <= PROCESSOR:
        raise ParseError(f"{FILE}: {len(fields)} fields after the name, expected over {PROCESSOR} ({excerpt(data)})")
    utime, stime, start, cpu = (
        unsigned(fields[place], f"{FILE}: field {place + 3}") for place in (UTIME, STIME, START, PROCESSOR)
    )
    return ThreadCpu((utime + stime) / user_hz, start, cpu)
