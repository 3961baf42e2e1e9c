"""Parse /proc/vmstat (mm/vmstat.c): counters of the memory management, named by the kernel."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from inferwatch.errors import ParseError
from inferwatch.sources.procfs.fields import excerpt, name, unsigned

WELL_FORMED: Final = re.compile(rb"(?:[!-~]+ [0-9]{1,20}\n)+")
FILE: Final = "/proc/vmstat"
ZONES: Final = ("dma", "dma32", "normal", "high", "movable", "device")  # include/linux/vmstat.h, FOR_ALL_ZONES()


@dataclass(frozen=True, slots=True)
class VmStat:
    """All values of /proc/vmstat by the kernel's name; which names there are depends on version and configuration."""

    values: Mapping[str, int]

    def over_zones(self, counter: str) -> int | None:
        """Return a counter that the kernel keeps as one or, in other versions, once per zone; None when it has neither.

        pgscan_* and pgsteal_* were per zone before 4.8, allocstall has been per zone since. The zones are named rather
        than matched by prefix: pgscan_direct_throttle is not a zone of pgscan_direct.
        """
        names = (counter, *(f"{counter}_{zone}" for zone in ZONES))
        found = [self.values[key] for key in names if key in self.values]
        return sum(found) if found else None


def parse_vmstat(data: bytes) -> VmStat:
    """Parse /proc/vmstat.

    Raises:
        ParseError: When a line is not a name and a number, or there is none.
    """
    if WELL_FORMED.fullmatch(data):  # as ever; one look at the whole costs a third of one at each of 180 lines
        words = data.decode("ascii").split()
        return VmStat(dict(zip(words[::2], map(int, words[1::2]), strict=True)))
    values: dict[str, int] = {}
    for line in data.splitlines():
        key, _, value = line.partition(b" ")
        label = name(key, f"{FILE}: name in {excerpt(line)}")
        values[label] = unsigned(value, f"{FILE}: value of {label}")
    if not values:
        raise ParseError(f"{FILE}: empty, expected lines of a name and a number")
    return VmStat(values)
