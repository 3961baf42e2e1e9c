"""Read lines of the form `VmRSS:	    1704 kB`, of which several files below /proc/PID and /sys are made."""

from collections.abc import Iterator, Mapping
from typing import Final

from inferwatch.errors import ParseError
from inferwatch.sources.procfs.fields import MAX_DIGITS, excerpt, unsigned

KIBIBYTE: Final = 1024  # these files say kB and mean KiB


def known_sizes(data: bytes, known: Mapping[bytes, str], file: str) -> Iterator[tuple[str, int]]:
    """Yield field name and bytes of each known line; other lines are passed over, whatever their form.

    Args:
        data: The file.
        known: Key of a line to field name.
        file: Its name in messages.

    Raises:
        ParseError: When a known line is not a number and `kB`.
    """
    for line in data.splitlines():
        key, colon, rest = line.partition(b":")
        field = known.get(key)
        if field is None or not colon:
            continue
        number = rest[:-3].strip()
        if rest.endswith(b" kB") and number.isdigit() and len(number) <= MAX_DIGITS:  # as ever; a third of the cost
            yield field, int(number) * KIBIBYTE
        else:
            yield field, kibibytes(rest, f"{file}: {key.decode('ascii')}")


def kibibytes(text: bytes, what: str) -> int:
    """Return the bytes of `  24684096 kB`; a unit other than kB is refused rather than guessed.

    Raises:
        ParseError: When it is anything else.
    """
    fields = text.split()
    if fields[1:] != [b"kB"]:
        raise ParseError(f"{what} is {excerpt(text)}, expected a number and 'kB'")
    return unsigned(fields[0], what) * KIBIBYTE
