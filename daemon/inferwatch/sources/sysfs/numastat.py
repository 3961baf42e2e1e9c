"""Parse /sys/devices/system/node/nodeN/numastat (drivers/base/node.c, node_read_numastat())."""

from dataclasses import dataclass
from typing import Final

from inferwatch.errors import ParseError
from inferwatch.sources.procfs.fields import excerpt, unsigned

FIELDS: Final = {
    b"numa_hit": "hit",
    b"numa_miss": "miss",
    b"numa_foreign": "foreign",
    b"interleave_hit": "interleave",
    b"local_node": "local",
    b"other_node": "other",
}


@dataclass(frozen=True, slots=True)
class NumaStat:
    """Pages allocated on a node since boot, by what was wanted.

    Args:
        hit: Wanted on this node and got there.
        miss: Wanted on another node, but taken here because that one was short.
        foreign: Wanted here, but taken from another node; that node counts it as its miss.
        interleave: Part of the hits that an interleave policy wanted here.
        local: Taken here by a thread that ran on this node.
        other: Taken here by a thread that ran on another node.
    """

    hit: int
    miss: int
    foreign: int
    interleave: int
    local: int
    other: int


def parse_numastat(data: bytes, node: int) -> NumaStat:
    """Parse the file of a node.

    Raises:
        ParseError: When a line is malformed or one is missing.
    """
    file = f"node{node}/numastat"
    values: dict[str, int] = {}
    for line in data.splitlines():
        key, _, value = line.partition(b" ")
        if field := FIELDS.get(key):
            values[field] = unsigned(value, f"{file}: {key.decode()}")
    if missing := set(FIELDS.values()) - values.keys():
        raise ParseError(f"{file}: {sorted(missing)} missing, expected one line each (begins with {excerpt(data)})")
    return NumaStat(**values)
