"""Parse the forms of values that cgroup files have; pure."""

import re
from collections.abc import Mapping
from typing import Final

from inferwatch.errors import ParseError
from inferwatch.sources.procfs.fields import excerpt, unsigned

# v1 has no word for "no limit": it prints LONG_MAX rounded down to a page, 9223372036854771712 with 4 KiB pages, other
# numbers with larger ones (mm/memcontrol-v1.c, PAGE_COUNTER_MAX). No machine has a quarter of that.
UNLIMITED_FROM: Final = 1 << 62
MICROSECONDS: Final = 1e6
KEYED: Final = re.compile(rb"([!-~]{1,128}) (-?[0-9]{1,20})")
ALL_KEYED: Final = re.compile(rb"(?:[!-~]{1,128} -?[0-9]{1,20}\n)+")  # the usual case, which costs a fifth
CPU_MAX_FIELDS: Final = 2


def parse_flat_keyed(data: bytes, file: str) -> Mapping[str, int]:
    """Parse lines of a name and a number: memory.stat, memory.events, cpu.stat, memory.oom_control.

    Raises:
        ParseError: When a line is anything else.
    """
    if ALL_KEYED.fullmatch(data):
        words = data.decode("ascii").split()
        return dict(zip(words[::2], map(int, words[1::2]), strict=True))
    values: dict[str, int] = {}
    for line in data.splitlines():
        match = KEYED.fullmatch(line)
        if match is None:
            raise ParseError(f"{file}: {excerpt(line)} found, expected a name and a number")
        values[match[1].decode("ascii")] = int(match[2])
    return values


def parse_number(data: bytes, file: str) -> int:
    """Parse a file of one number.

    Raises:
        ParseError: When it is anything else.
    """
    return unsigned(data.strip(), f"{file}: value")


def parse_limit(data: bytes, file: str) -> int | None:
    """Parse a limit of either version; None when there is none.

    Raises:
        ParseError: When it is neither a number nor `max`.
    """
    text = data.strip()
    if text in {b"max", b"-1"}:
        return None
    limit = unsigned(text, f"{file}: limit")
    return None if limit >= UNLIMITED_FROM else limit


def parse_cpu_max(data: bytes, file: str) -> float | None:
    """Parse cpu.max (`20000 100000`) into a number of cores; None when there is no quota.

    Raises:
        ParseError: When it is not a quota and a period.
    """
    fields = data.split()
    if len(fields) != CPU_MAX_FIELDS:
        raise ParseError(f"{file}: {excerpt(data)} found, expected a quota and a period")
    return quota_cores(fields[0], fields[1], file)


def quota_cores(quota: bytes, period: bytes, file: str) -> float | None:
    """Return quota by period; None when the quota is `max` (v2) or -1 (v1).

    Raises:
        ParseError: When either is malformed or the period is 0.
    """
    if quota.strip() in {b"max", b"-1"}:
        return None
    length = unsigned(period.strip(), f"{file}: period")
    if not length:
        raise ParseError(f"{file}: period is 0, expected microseconds")
    return unsigned(quota.strip(), f"{file}: quota") / length
