"""Prints: what was asked for to standard output, what went wrong to standard error."""

import os
import sys
from contextlib import suppress
from pathlib import Path


def say(text: str) -> None:
    """Print text and a newline to standard output, in UTF-8 whatever the locale."""
    write(f"{text}\n".encode("utf-8", "replace"))


def write(data: bytes) -> None:
    """Write bytes to standard output; a reader that went away (`| head -1`) has what it wanted, so it is no error."""
    if sys.stdout is None:  # closed by whoever started the program
        return
    try:
        sys.stdout.buffer.write(data)
        sys.stdout.buffer.flush()
    except BrokenPipeError:
        _discard_the_rest()
    except OSError as error:
        _discard_the_rest()
        complain(f"can't write to standard output: {error.strerror or error}")
        sys.exit(1)


def _discard_the_rest() -> None:
    """Point standard output nowhere: the interpreter flushes once more when it exits, and would complain then."""
    with Path(os.devnull).open("wb") as sink:
        os.dup2(sink.fileno(), sys.stdout.fileno())


def complain(*lines: str) -> None:
    """Print lines to standard error, each problem on its own."""
    if sys.stderr is None:
        return
    with suppress(OSError):
        for line in lines:
            print(line, file=sys.stderr)  # noqa: T201 - this is where the program talks to people
        sys.stderr.flush()
