"""Parse the limit of open files in /proc/PID/limits (fs/proc/base.c, proc_pid_limits())."""

import re
from dataclasses import dataclass
from typing import Final

from inferwatch.errors import ParseError
from inferwatch.sources.procfs.fields import excerpt, unsigned

FILE: Final = "/proc/PID/limits"
OPEN_FILES: Final = re.compile(rb"^Max open files +(\S+) +(\S+) +files *$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class OpenFilesLimit:
    """How many file descriptors a process may have; None is unlimited.

    Args:
        soft: What open() obeys.
        hard: Up to which the process may raise it.
    """

    soft: int | None
    hard: int | None


def parse_open_files_limit(data: bytes) -> OpenFilesLimit:
    """Parse the line `Max open files`.

    Raises:
        ParseError: When there is no such line or a value is neither a number nor `unlimited`.
    """
    match = OPEN_FILES.search(data)
    if match is None:
        raise ParseError(f"{FILE}: no line 'Max open files' with two values (begins with {excerpt(data)})")
    soft, hard = (
        None if value == b"unlimited" else unsigned(value, f"{FILE}: Max open files") for value in match.groups()
    )
    return OpenFilesLimit(soft, hard)
