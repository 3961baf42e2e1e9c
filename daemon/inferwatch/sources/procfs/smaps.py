"""Parse /proc/PID/smaps_rollup (fs/proc/task_mmu.c, show_smaps_rollup(); since 4.14)."""

from dataclasses import dataclass
from typing import Final

from inferwatch.errors import ParseError
from inferwatch.sources.procfs.fields import excerpt
from inferwatch.sources.procfs.kibibytes import known_sizes

FILE: Final = "/proc/PID/smaps_rollup"
SIZES: Final = {
    b"Rss": "resident_bytes",
    b"Pss": "proportional_bytes",
    b"Pss_Anon": "proportional_anonymous_bytes",
    b"Pss_File": "proportional_file_bytes",
    b"Pss_Shmem": "proportional_shared_bytes",
    b"Anonymous": "anonymous_bytes",
    b"AnonHugePages": "anonymous_huge_bytes",
    b"Private_Clean": "private_clean_bytes",
    b"Private_Dirty": "private_dirty_bytes",
    b"SwapPss": "proportional_swap_bytes",
    b"Swap": "swap_bytes",
}


@dataclass(frozen=True, slots=True)
class SmapsRollup:
    """Memory of one process, counted page by page; None is what this kernel does not tell.

    Proportional: a page that n processes map counts for 1/n in each, so that sums over processes are true.

    Args:
        resident_bytes: Resident memory.
        proportional_bytes: The same, proportionally (PSS).
        anonymous_bytes: Resident memory with no file behind it.
        proportional_anonymous_bytes: Part of the PSS that is anonymous (since 5.3, as the next two).
        proportional_file_bytes: Part of the PSS that belongs to files.
        proportional_shared_bytes: Part of the PSS that belongs to tmpfs, memfd and shared memory segments.
        anonymous_huge_bytes: Anonymous memory in transparent huge pages.
        private_clean_bytes: Unchanged pages that no other process maps.
        private_dirty_bytes: Changed pages that no other process maps.
        swap_bytes: Memory in swap.
        proportional_swap_bytes: The same, proportionally.
    """

    resident_bytes: int
    proportional_bytes: int | None = None
    anonymous_bytes: int | None = None
    proportional_anonymous_bytes: int | None = None
    proportional_file_bytes: int | None = None
    proportional_shared_bytes: int | None = None
    anonymous_huge_bytes: int | None = None
    private_clean_bytes: int | None = None
    private_dirty_bytes: int | None = None
    swap_bytes: int | None = None
    proportional_swap_bytes: int | None = None

    @property
    def private_bytes(self) -> int | None:
        """Return the memory that would be free if the process ended (USS)."""
        if self.private_clean_bytes is None or self.private_dirty_bytes is None:
            return None
        return self.private_clean_bytes + self.private_dirty_bytes


def parse_smaps_rollup(data: bytes) -> SmapsRollup:
    """Parse smaps_rollup.

    Raises:
        ParseError: When a known line is malformed or `Rss` is missing.
    """
    sizes = dict(known_sizes(data, SIZES, FILE))
    if "resident_bytes" not in sizes:
        raise ParseError(f"{FILE}: no line 'Rss:', expected one (begins with {excerpt(data)})")
    return SmapsRollup(**sizes)
