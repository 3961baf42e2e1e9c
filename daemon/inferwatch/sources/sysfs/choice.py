"""Parse a sysfs file that shows its choices with the one in force in brackets: `always [madvise] never`."""

import re
from typing import Final

from inferwatch.errors import ParseError
from inferwatch.sources.procfs.fields import excerpt

CHOSEN: Final = re.compile(rb"\[([a-z_+]{1,32})\]")


def parse_choice(data: bytes, file: str) -> str:
    """Return the word in brackets.

    Args:
        data: The file.
        file: Its name in messages.

    Raises:
        ParseError: When there is none.
    """
    match = CHOSEN.search(data)
    if match is None:
        raise ParseError(f"{file}: {excerpt(data)} found, expected a word in brackets")
    return match[1].decode()
