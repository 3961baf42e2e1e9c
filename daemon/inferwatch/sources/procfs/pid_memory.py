"""Parse the memory lines of /proc/PID/status (fs/proc/task_mmu.c, task_mem())."""

from dataclasses import dataclass
from typing import Final

from inferwatch.errors import ParseError
from inferwatch.sources.procfs.fields import excerpt
from inferwatch.sources.procfs.kibibytes import known_sizes

FILE: Final = "/proc/PID/status"
SIZES: Final = {
    b"VmRSS": "resident_bytes",
    b"VmHWM": "peak_bytes",
    b"RssAnon": "anonymous_bytes",
    b"RssFile": "file_bytes",
    b"RssShmem": "shared_bytes",
    b"VmSwap": "swap_bytes",
    b"VmLck": "locked_bytes",
    b"VmPin": "pinned_bytes",
    b"HugetlbPages": "huge_bytes",
}


@dataclass(frozen=True, slots=True)
class PidMemory:
    """Memory of one process; None is what this kernel does not tell.

    Since 6.2 (commit f1a7941243c1) the kernel keeps these counters per CPU and prints a sum that may be off by some
    dozen pages per CPU; smaps_rollup is exact.

    Args:
        resident_bytes: Anonymous, file and shared together; huge pages of the pool (hugetlb) are not in it.
        peak_bytes: Largest resident size so far.
        anonymous_bytes: Resident memory with no file behind it (since 4.5, as the next two).
        file_bytes: Resident pages of mapped files, each process's count of a page that several map.
        shared_bytes: Resident pages of tmpfs, memfd and shared memory segments, counted in the same way.
        swap_bytes: Anonymous memory that is in swap; shared memory in swap is not in it.
        locked_bytes: Memory locked with mlock().
        pinned_bytes: Memory pinned for devices (since 3.2).
        huge_bytes: Huge pages of the pool in use (since 4.4).
    """

    resident_bytes: int
    peak_bytes: int | None = None
    anonymous_bytes: int | None = None
    file_bytes: int | None = None
    shared_bytes: int | None = None
    swap_bytes: int | None = None
    locked_bytes: int | None = None
    pinned_bytes: int | None = None
    huge_bytes: int | None = None


def parse_pid_memory(data: bytes) -> PidMemory | None:
    """Parse the memory lines; None for a process that has no memory (a zombie, a kernel thread).

    Raises:
        ParseError: When it is not a status file, or a memory line is malformed.
    """
    if not data.startswith(b"Name:"):
        raise ParseError(f"{FILE}: begins with {excerpt(data)}, expected 'Name:'")
    # a third of the file; fs/proc/array.c has them in this order
    begin, end = data.find(b"\nVm"), data.find(b"\nThreads:")
    sizes = dict(known_sizes(data[begin + 1 : end if end > begin else None], SIZES, FILE)) if begin >= 0 else {}
    return PidMemory(**sizes) if "resident_bytes" in sizes else None
