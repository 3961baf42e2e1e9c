"""The field types that procfs files are made of; strict, because int() and float() take more than the kernel prints."""

import re
from typing import Final

from inferwatch.errors import ParseError

MAX_DIGITS: Final = 20  # of the largest unsigned 64-bit number; int() of thousands of digits is slow, then a ValueError
DECIMAL: Final = re.compile(rb"[0-9]{1,20}\.[0-9]{1,9}")
EXCERPT_BYTES: Final = 40


def excerpt(data: bytes) -> str:
    """Return the beginning of what was found, fit for a message."""
    return repr(data) if len(data) <= EXCERPT_BYTES else f"{data[:EXCERPT_BYTES]!r}..."


def unsigned(field: bytes, what: str) -> int:
    """Return a number without sign.

    Args:
        field: The digits.
        what: File and field, the beginning of the message.

    Raises:
        ParseError: When it is anything but 1 to 20 ASCII digits.
    """
    if not field.isdigit() or len(field) > MAX_DIGITS:
        raise ParseError(f"{what} is {excerpt(field)}, expected a number")
    return int(field)


def signed(field: bytes, what: str) -> int:
    """Return a number that may have a minus sign.

    Raises:
        ParseError: When it is anything else.
    """
    return -unsigned(field[1:], what) if field.startswith(b"-") else unsigned(field, what)


def decimal(field: bytes, what: str) -> float:
    """Return a number with a fractional part, as the kernel prints load averages.

    Raises:
        ParseError: When it is anything else, NaN and exponents included.
    """
    if not DECIMAL.fullmatch(field):
        raise ParseError(f"{what} is {excerpt(field)}, expected a number with decimals such as 0.25")
    return float(field)


def name(field: bytes, what: str) -> str:
    """Return a printable ASCII word: the name of a counter, protocol or kind.

    Raises:
        ParseError: When it is empty or holds anything but printable ASCII without spaces.
    """
    if not field or not field.isascii() or not (text := field.decode("ascii")).isprintable() or " " in text:
        raise ParseError(f"{what} is {excerpt(field)}, expected a word of printable ASCII")
    return text
