"""Parse the kernel's lists of numbers such as `0-3,8,10-11` (lib/bitmap-str.c, format `%*pbl`)."""

import re
from typing import Final

from inferwatch.errors import ParseError

ITEM: Final = re.compile(rb"([0-9]{1,7})(?:-([0-9]{1,7}))?")
MAX_NUMBER: Final = 1 << 20  # far above NR_CPUS (8192) and MAX_NUMNODES (1024): a damaged file must not fill memory


def parse_cpulist(data: bytes, file: str) -> tuple[int, ...]:
    """Return the numbers, ascending; an empty list (a memory-only NUMA node's CPUs) is a valid one.

    Args:
        data: The file.
        file: Its name in messages.

    Raises:
        ParseError: When it is not a list of numbers and ranges.
    """
    numbers: set[int] = set()
    text = data.strip()
    for item in text.split(b",") if text else ():
        match = ITEM.fullmatch(item)
        if match is None:
            raise ParseError(f"{file}: {item[:40]!r} in the list, expected a number or a range such as 0-3")
        first = int(match[1])
        last = int(match[2] or match[1])
        if not first <= last < MAX_NUMBER:
            raise ParseError(f"{file}: range {first}-{last}, expected ascending numbers below {MAX_NUMBER}")
        numbers.update(range(first, last + 1))
    return tuple(sorted(numbers))
