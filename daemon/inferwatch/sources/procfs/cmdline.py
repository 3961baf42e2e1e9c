"""Parse /proc/PID/cmdline (get_mm_cmdline() in fs/proc/base.c): arguments, or the title that was written over them."""

from dataclasses import dataclass
from typing import Final

# setproctitle() fills what is left of the arguments' memory with NULs, or with blanks on some platforms.
PADDING: Final = b"\x00 \n\t"


@dataclass(frozen=True, slots=True)
class Cmdline:
    """How a process was started, or what it calls itself.

    Args:
        arguments: The arguments, argv[0] first; a title is a single one. Empty for kernel threads and zombies.
        truncated: Whether the file was longer than what was read, so that the last argument may be cut.
    """

    arguments: tuple[str, ...]
    truncated: bool = False


def parse_cmdline(data: bytes, limit: int) -> Cmdline:
    """Split the command line at its NULs; it never fails, since a process may write anything there.

    A process that gives itself a title overwrites its arguments: the title then is the first string and nothing, or
    blanks, come after it. What of the old arguments is left behind a short title can't be told from real ones.

    Args:
        data: At most `limit` bytes of the file.
        limit: How many bytes were asked for.
    """
    arguments = data.rstrip(PADDING).split(b"\x00") if data.strip(PADDING) else []
    return Cmdline(tuple(argument.decode("utf-8", "replace") for argument in arguments), len(data) >= limit)
