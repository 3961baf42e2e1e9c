"""Parse a file of /proc/pressure (kernel/sched/psi.c, psi_show())."""

from dataclasses import dataclass
from typing import Final

from inferwatch.errors import ParseError
from inferwatch.sources.procfs.fields import excerpt, unsigned

MICROSECONDS: Final = 1e6


@dataclass(frozen=True, slots=True)
class Pressure:
    """Stall time of one resource since boot.

    Args:
        some_seconds: Time in which at least one thread was stalled; None where the file has no such line (irq).
        full_seconds: Time in which all non-idle threads were; None where the file has no such line (cpu before 5.13).
    """

    some_seconds: float | None
    full_seconds: float | None


def parse_pressure(data: bytes, resource: str) -> Pressure:
    """Parse /proc/pressure/`resource`.

    The averages are left out: they can be computed from the totals over any window.

    Raises:
        ParseError: When a line has no `total=` in microseconds, or neither line is there.
    """
    totals: dict[bytes, float] = {}
    for line in data.splitlines():
        share, *fields = line.split() or [b""]
        if share in {b"some", b"full"}:
            totals[share] = _total(fields, line, resource)
    if not totals:
        raise ParseError(f"/proc/pressure/{resource}: {excerpt(data)} found, expected a line 'some' or 'full'")
    return Pressure(totals.get(b"some"), totals.get(b"full"))


def _total(fields: list[bytes], line: bytes, resource: str) -> float:
    """Return the seconds of the field `total=`, which is in microseconds."""
    for field in fields:
        key, _, value = field.partition(b"=")
        if key == b"total":
            return unsigned(value, f"/proc/pressure/{resource}: total") / MICROSECONDS
    raise ParseError(
        f"/proc/pressure/{resource}: no total= in {excerpt(line)}, expected the stall time in microseconds"
    )
