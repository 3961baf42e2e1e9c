"""Parse /proc/meminfo (fs/proc/meminfo.c, mm/hugetlb.c)."""

from dataclasses import dataclass
from typing import Final

from inferwatch.errors import ParseError
from inferwatch.sources.procfs.fields import excerpt, unsigned

FILE: Final = "/proc/meminfo"
KIBIBYTE: Final = 1024  # the file says kB and means KiB (show_val_kb() shifts pages by PAGE_SHIFT - 10)

BYTES: Final = {
    b"MemTotal": "total_bytes",
    b"MemFree": "free_bytes",
    b"MemAvailable": "available_bytes",
    b"Buffers": "buffers_bytes",
    b"Cached": "cached_bytes",
    b"AnonPages": "anonymous_bytes",
    b"AnonHugePages": "anonymous_huge_bytes",
    b"Shmem": "shared_bytes",
    b"SReclaimable": "slab_reclaimable_bytes",
    b"SUnreclaim": "slab_unreclaimable_bytes",
    b"Dirty": "dirty_bytes",
    b"Writeback": "writeback_bytes",
    b"Mlocked": "mlocked_bytes",
    b"Committed_AS": "committed_bytes",
    b"CommitLimit": "commit_limit_bytes",
    b"SwapTotal": "swap_total_bytes",
    b"SwapFree": "swap_free_bytes",
    b"Hugepagesize": "huge_page_size_bytes",
}
COUNTS: Final = {
    b"HugePages_Total": "huge_pages_total",
    b"HugePages_Free": "huge_pages_free",
    b"HugePages_Rsvd": "huge_pages_reserved",
    b"HugePages_Surp": "huge_pages_surplus",
}


@dataclass(frozen=True, slots=True)
class MemInfo:
    """What is read of /proc/meminfo; None is what this kernel does not have (MemAvailable came with 3.14)."""

    total_bytes: int
    free_bytes: int | None = None
    available_bytes: int | None = None
    buffers_bytes: int | None = None
    cached_bytes: int | None = None
    anonymous_bytes: int | None = None
    anonymous_huge_bytes: int | None = None
    shared_bytes: int | None = None
    slab_reclaimable_bytes: int | None = None
    slab_unreclaimable_bytes: int | None = None
    dirty_bytes: int | None = None
    writeback_bytes: int | None = None
    mlocked_bytes: int | None = None
    committed_bytes: int | None = None
    commit_limit_bytes: int | None = None
    swap_total_bytes: int | None = None
    swap_free_bytes: int | None = None
    huge_page_size_bytes: int | None = None
    huge_pages_total: int | None = None
    huge_pages_free: int | None = None
    huge_pages_reserved: int | None = None
    huge_pages_surplus: int | None = None


def parse_meminfo(data: bytes) -> MemInfo:
    """Parse /proc/meminfo; lines with an unknown name are passed over, whatever their form.

    Raises:
        ParseError: When a known line is malformed or MemTotal is missing.
    """
    values: dict[str, int] = {}
    for line in data.splitlines():
        key, _, rest = line.partition(b":")
        if field := BYTES.get(key):
            values[field] = _kibibytes(rest, key) * KIBIBYTE
        elif field := COUNTS.get(key):
            values[field] = unsigned(rest.strip(), f"{FILE}: {key.decode()}")
    if "total_bytes" not in values:
        raise ParseError(f"{FILE}: no line 'MemTotal:', expected one (begins with {excerpt(data)})")
    return MemInfo(**values)


def _kibibytes(rest: bytes, key: bytes) -> int:
    """Return the number of `  24684096 kB`; a unit other than kB is refused rather than guessed."""
    fields = rest.split()
    if fields[1:] != [b"kB"]:
        raise ParseError(f"{FILE}: {key.decode()} is {excerpt(rest)}, expected a number and 'kB'")
    return unsigned(fields[0], f"{FILE}: {key.decode()}")
