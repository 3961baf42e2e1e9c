r"""Parse /proc/PID/numa_maps (fs/proc/task_mmu.c, show_numa_map(); with CONFIG_NUMA only).

A line is `7f97560db000 default anon=3 dirty=3 N0=2 N1=1 kernelpagesize_kB=4`. The counts are in pages of the mapping's
own size: 4 KiB pages also where transparent huge pages back them (each counts 512 times), 2 MiB or 1 GiB for mappings
of the huge page pool. Blanks in a file's name are written as \040.
"""

from collections.abc import Mapping
from typing import Final

from inferwatch.errors import ParseError
from inferwatch.sources.procfs.fields import excerpt, unsigned

FILE: Final = "/proc/PID/numa_maps"
PAGE_SIZE_KEY: Final = b"kernelpagesize_kB"  # since 3.8; before, the sizes of huge page mappings can't be told
FEWEST_WORDS: Final = 2  # address and policy


def parse_numa_maps(data: bytes, page_bytes: int) -> Mapping[int, int]:
    """Return resident bytes per NUMA node, over all mappings; a node with none is absent.

    Args:
        data: The file; empty for a kernel thread.
        page_bytes: Size of a small page, for lines that don't tell theirs.

    Raises:
        ParseError: When a line is not an address, a policy and words, or a count is malformed.
    """
    totals: dict[int, int] = {}
    for line in data.splitlines():
        words = line.split()
        if len(words) < FEWEST_WORDS:
            raise ParseError(f"{FILE}: {excerpt(line)} found, expected an address, a policy and counts")
        size = page_bytes
        pages: list[tuple[int, int]] = []
        for word in words[FEWEST_WORDS:]:
            key, equals, value = word.partition(b"=")
            if not equals:
                continue
            if key == PAGE_SIZE_KEY:
                size = unsigned(value, f"{FILE}: {PAGE_SIZE_KEY.decode()}") * 1024
            elif key[:1] == b"N" and key[1:].isdigit():
                pages.append((unsigned(key[1:], f"{FILE}: node"), unsigned(value, f"{FILE}: pages of a node")))
        for node, count in pages:
            totals[node] = totals.get(node, 0) + count * size
    return totals
