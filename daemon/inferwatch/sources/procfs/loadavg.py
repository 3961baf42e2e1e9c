"""Parse /proc/loadavg (fs/proc/loadavg.c)."""

from dataclasses import dataclass
from typing import Final

from inferwatch.errors import ParseError
from inferwatch.sources.procfs.fields import decimal, excerpt

FILE: Final = "/proc/loadavg"
FEWEST_FIELDS: Final = 3


@dataclass(frozen=True, slots=True)
class LoadAverage:
    """Damped mean number of threads that run, are ready to run or sleep uninterruptibly, over 1, 5 and 15 minutes."""

    load1: float
    load5: float
    load15: float


def parse_loadavg(data: bytes) -> LoadAverage:
    """Parse /proc/loadavg.

    Raises:
        ParseError: When its first three fields are not numbers with decimals.
    """
    fields = data.split()
    if len(fields) < FEWEST_FIELDS:
        raise ParseError(f"{FILE}: {len(fields)} fields, expected at least {FEWEST_FIELDS} ({excerpt(data)})")
    load1, load5, load15 = (decimal(field, f"{FILE}: load average") for field in fields[:FEWEST_FIELDS])
    return LoadAverage(load1, load5, load15)
