"""Parse /proc/softirqs (fs/proc/softirqs.c): how often each kind of soft interrupt ran, per CPU."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from inferwatch.errors import ParseError
from inferwatch.sources.procfs.fields import excerpt, name, unsigned

FILE: Final = "/proc/softirqs"


@dataclass(frozen=True, slots=True)
class Softirqs:
    """Runs since boot by kind (HI, TIMER, NET_TX, ...), added up over all possible CPUs.

    Each CPU's count is an unsigned int (include/linux/kernel_stat.h) and wraps at 2**32, so a sum may fall by 2**32.
    """

    runs: Mapping[str, int]


def parse_softirqs(data: bytes) -> Softirqs:
    """Parse /proc/softirqs.

    Raises:
        ParseError: When there is no header or a row has another number of columns than it.
    """
    header, *rows = data.splitlines() or [b""]
    columns = len(header.split())
    if not columns or not header.lstrip().startswith(b"CPU"):
        raise ParseError(f"{FILE}: first line is {excerpt(header)}, expected the names of the CPUs")
    runs: dict[str, int] = {}
    for row in rows:
        key, _, rest = row.partition(b":")
        kind = name(key.strip(), f"{FILE}: name in {excerpt(row)}")
        fields = rest.split()
        if len(fields) != columns:
            raise ParseError(f"{FILE}: {kind} has {len(fields)} columns, expected {columns}, one per CPU")
        runs[kind] = sum(unsigned(field, f"{FILE}: runs of {kind}") for field in fields)
    if not runs:
        raise ParseError(f"{FILE}: no row below the header, expected one per kind")
    return Softirqs(runs)
