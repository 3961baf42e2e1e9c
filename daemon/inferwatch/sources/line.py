"""Where the value of a line of a metrics page may begin; which of the places it is, the client's parser decides."""

import re
from collections.abc import Iterator
from typing import Final

NUMBER: Final = rb"[-+0-9.eE]+|[-+]?(?i:inf|nan)"
EXEMPLAR: Final = re.compile(
    rb' # \{(?:[A-Za-z_][A-Za-z0-9_]*="(?:[^"\\]|\\.)*",?)*\} (?:' + NUMBER + rb")(?: [-+0-9.eE]+)?\Z"
)


def splits(line: bytes) -> Iterator[tuple[bytes, float]]:
    """Return where the value of a line may begin: before the last word, the last but one, or an exemplar."""
    head, _, last = line.rpartition(b" ")
    value = _number(last)
    if value is not None:
        yield head, value
        before, _, last_but_one = head.rpartition(b" ")
        if (value := _number(last_but_one)) is not None:
            yield before, value
    if b" # " in line and (exemplar := EXEMPLAR.search(line)) is not None:
        head, _, last = line[: exemplar.start()].rpartition(b" ")
        if (value := _number(last)) is not None:
            yield head, value


def _number(text: bytes) -> float | None:
    """Read a number as the format means it: `float()` also takes `1_0`."""
    try:
        return None if b"_" in text else float(text)
    except ValueError:
        return None
