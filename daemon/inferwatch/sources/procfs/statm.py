"""Parse /proc/PID/statm (fs/proc/array.c, proc_pid_statm()): memory in pages, for kernels before 4.5."""

from dataclasses import dataclass
from typing import Final

from inferwatch.errors import ParseError
from inferwatch.sources.procfs.fields import excerpt, unsigned

FILE: Final = "/proc/PID/statm"
FIELDS: Final = 7
RESIDENT, SHARED = 1, 2


@dataclass(frozen=True, slots=True)
class Statm:
    """Memory of one process.

    Args:
        resident_bytes: Resident memory.
        shared_bytes: Part of it that belongs to files or to shared memory; the rest is anonymous.
    """

    resident_bytes: int
    shared_bytes: int

    @property
    def anonymous_bytes(self) -> int:
        """Return the resident memory with no file behind it."""
        return max(0, self.resident_bytes - self.shared_bytes)


def parse_statm(data: bytes, page_bytes: int) -> Statm:
    """Parse a statm file.

    Args:
        data: The file.
        page_bytes: Size of a page.

    Raises:
        ParseError: When it is not seven numbers.
    """
    fields = data.split()
    if len(fields) != FIELDS:
        raise ParseError(f"{FILE}: {len(fields)} fields, expected {FIELDS} ({excerpt(data)})")
    pages = [unsigned(field, f"{FILE}: field of {excerpt(data)}") for field in fields]
    return Statm(pages[RESIDENT] * page_bytes, pages[SHARED] * page_bytes)
