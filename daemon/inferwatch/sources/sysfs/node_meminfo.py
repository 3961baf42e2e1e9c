"""Parse /sys/devices/system/node/nodeN/meminfo (drivers/base/node.c, node_read_meminfo())."""

import re
from dataclasses import dataclass
from typing import Final

from inferwatch.errors import ParseError
from inferwatch.sources.procfs.fields import excerpt
from inferwatch.sources.procfs.kibibytes import known_sizes

LINE_START: Final = re.compile(rb"^Node [0-9]+ ", re.MULTILINE)
SIZES: Final = {
    b"MemTotal": "total_bytes",
    b"MemFree": "free_bytes",
    b"AnonPages": "anonymous_bytes",
    b"FilePages": "file_bytes",
    b"Shmem": "shared_bytes",
    b"Slab": "slab_bytes",
    b"AnonHugePages": "anonymous_huge_bytes",
}


@dataclass(frozen=True, slots=True)
class NodeMemInfo:
    """Memory of one NUMA node; None is what this kernel does not tell.

    Args:
        total_bytes: Memory of the node that the kernel manages; 0 for a node without memory.
        free_bytes: Memory in no use at all.
        anonymous_bytes: Memory of programs with no file behind it.
        file_bytes: Page cache, shared memory included.
        shared_bytes: tmpfs, memfd and shared memory segments.
        slab_bytes: The kernel's own objects.
        anonymous_huge_bytes: Part of the anonymous memory that is in transparent huge pages.
    """

    total_bytes: int
    free_bytes: int
    anonymous_bytes: int | None = None
    file_bytes: int | None = None
    shared_bytes: int | None = None
    slab_bytes: int | None = None
    anonymous_huge_bytes: int | None = None


def parse_node_meminfo(data: bytes, node: int) -> NodeMemInfo:
    """Parse the file of a node.

    Raises:
        ParseError: When a known line is malformed, or MemTotal or MemFree is missing.
    """
    file = f"node{node}/meminfo"
    sizes = dict(known_sizes(LINE_START.sub(b"", data), SIZES, file))
    if missing := {"total_bytes", "free_bytes"} - sizes.keys():
        raise ParseError(f"{file}: {sorted(missing)} missing, expected one line each (begins with {excerpt(data)})")
    return NodeMemInfo(**sizes)
