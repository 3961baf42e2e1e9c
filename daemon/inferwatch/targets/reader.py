"""Cheap reads below /proc/PID: thousands a minute, most of them of processes that are gone a moment later."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from inferwatch.errors import InferwatchError, NoData, SourceError
from inferwatch.sources.hostfs import ABSENT_ERRNOS, DENIED_ERRNOS

FIRST_BYTES: Final = 4096
LINE_LIMIT: Final = 4096
FD_LIMIT: Final = 65_536
DENIED: Final = "permission_denied"


class ProcReader:
    """Reads of one procfs. All raise NoData when the process is gone, SourceError when it can't be read.

    Args:
        procfs: Where it is mounted.
    """

    def __init__(self, procfs: Path) -> None:
        self._root = str(procfs)

    def listing(self) -> dict[int, int]:
        """Return the pids, each with the inode of its directory.

        The kernel makes a new inode for a new process (proc_pid_make_inode() in fs/proc/base.c), so an inode that is
        still the same tells at no cost that the pid has not been used again.
        """
        with translated(self._root), os.scandir(self._root) as entries:
            return {int(name): entry.inode() for entry in entries if (name := entry.name).isdecimal()}

    def read(self, pid: int | str, name: str, limit: int) -> bytes:
        """Return the beginning of a file, `limit` bytes at most.

        The kernel fills the buffer as long as there is something (seq_read_iter() in fs/seq_file.c, get_mm_cmdline() in
        fs/proc/base.c), so a first part that is shorter is all of it: half of the files cost one read less.
        """
        path = f"{self._root}/{pid}/{name}"
        try:
            file = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
            try:
                first = min(limit, FIRST_BYTES)
                data = os.read(file, first)
                if len(data) < first:
                    return data
                while len(data) < limit and (more := os.read(file, limit - len(data))):
                    data += more
                return data
            finally:
                os.close(file)
        except OSError as error:  # a context manager would cost as much as the reads
            raise translation(path, error) from error

    def lines(self, pid: int | str, name: str) -> Iterator[bytes]:
        """Return a file's lines one by one; an overlong one comes in pieces."""
        path = f"{self._root}/{pid}/{name}"
        with translated(path), open(path, "rb") as file:  # noqa: PTH123 - Path.open costs twice as much
            while line := file.readline(LINE_LIMIT):
                yield line

    def link(self, pid: int | str, name: str) -> str:
        """Return what a link points to."""
        path = f"{self._root}/{pid}/{name}"
        with translated(path):
            return os.readlink(path)  # noqa: PTH115 - Path.readlink makes an object of what is no path

    def open_files(self, pid: int) -> Iterator[str]:
        """Return what the file descriptors of a process point to, `FD_LIMIT` of them at most."""
        directory = f"{self._root}/{pid}/fd"
        with translated(directory), os.scandir(directory) as entries:
            for _, entry in zip(range(FD_LIMIT), entries, strict=False):
                try:
                    yield os.readlink(entry.path)  # noqa: PTH115 - see `link`
                except FileNotFoundError:
                    continue

    def uid(self, pid: int) -> int:
        """Return the user that a process runs as, by the owner of its directory."""
        path = f"{self._root}/{pid}"
        with translated(path):
            return os.stat(path).st_uid  # noqa: PTH116 - see `lines`

    def own_pid(self) -> int | None:
        """Return the agent's own pid as this procfs has it; None when it is in another pid namespace."""
        try:
            return int(os.readlink(f"{self._root}/self"))  # noqa: PTH115 - see `link`
        except (OSError, ValueError):
            return None


@contextmanager
def translated(path: str) -> Iterator[None]:
    """Say the system's errors in those of the agent."""
    try:
        yield
    except OSError as error:
        raise translation(path, error) from error


def translation(path: str, error: OSError) -> InferwatchError:
    """Return the agent's own error for one of the system's."""
    if error.errno in ABSENT_ERRNOS:
        return NoData(f"{path}: {error.strerror}")
    reason = DENIED if error.errno in DENIED_ERRNOS else "io"
    return SourceError(f"{path}: {error.strerror or error}", reason=reason)
