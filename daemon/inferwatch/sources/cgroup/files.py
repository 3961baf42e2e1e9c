"""Read the files of control groups sparingly: each once a round, and settings, which rarely change, less often."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final, TypeVar, cast

from inferwatch.errors import NoData
from inferwatch.sources.cgroup.tree import Level
from inferwatch.sources.hostfs import read_bytes

T = TypeVar("T")

SETTING_NS: Final = 30_000_000_000
FORGET_NS: Final = 4 * SETTING_NS


@dataclass(slots=True)
class _Entry:
    path: Path
    name: str
    value: object = None
    round: int = 0
    good_until_ns: int = 0
    used_ns: int = 0


class GroupFiles:
    """What was read of files, so that targets with a group or an ancestor in common don't cost twice.

    A setting is good for 30 seconds. So is the absence of a file in a directory that is there: it means that the kernel
    or the group has no such thing.
    """

    def __init__(self) -> None:
        self._entries: dict[tuple[Path, str, str], _Entry] = {}
        self._round = 1
        self._now_ns = 0
        self._forget_ns = 0

    def begin(self, now_ns: int) -> None:
        """Begin a round; what is no longer asked for is forgotten."""
        self._round += 1
        self._now_ns = now_ns
        if now_ns >= self._forget_ns:
            self._forget_ns = now_ns + FORGET_NS
            old = now_ns - FORGET_NS
            self._entries = {key: entry for key, entry in self._entries.items() if entry.used_ns > old}

    def read(self, level: Level, name: str, parse: Callable[[bytes, str], T]) -> T | None:
        """Return a file's content as of this round; None when there is no such file.

        Args:
            level: The group.
            name: The file's name.
            parse: Makes the content of the bytes and the file's name for messages; always the same one for a file.

        Raises:
            ParseError: When the file is malformed.
            SourceError: When it can't be read.
        """
        return self._read(level, name, parse, 0)

    def setting(self, level: Level, name: str, parse: Callable[[bytes, str], T]) -> T | None:
        """Return a file's content, at most 30 seconds old; as `read` otherwise."""
        return self._read(level, name, parse, SETTING_NS)

    def has(self, level: Level, name: str) -> bool:
        """Return whether there is such a file, or was in the last 30 seconds."""
        entry = self._entry(level, name, "has")
        if self._is_due(entry):
            found = entry.path.exists()
            self._keep(entry, found, SETTING_NS if found or level.directory.is_dir() else 0)
        return bool(entry.value)

    def _read(self, level: Level, name: str, parse: Callable[[bytes, str], T], good_ns: int) -> T | None:
        entry = self._entry(level, name, "read")
        if self._is_due(entry):
            try:
                self._keep(entry, parse(read_bytes(entry.path), entry.name), good_ns)
            except NoData:
                self._keep(entry, None, SETTING_NS if level.directory.is_dir() else 0)
        return cast("T | None", entry.value)

    def _entry(self, level: Level, name: str, kind: str) -> _Entry:
        key = (level.directory, name, kind)
        entry = self._entries.get(key)
        if entry is None:
            path = level.directory / name
            entry = self._entries[key] = _Entry(path, str(path))
        entry.used_ns = self._now_ns
        return entry

    def _is_due(self, entry: _Entry) -> bool:
        return entry.round != self._round and self._now_ns >= entry.good_until_ns

    def _keep(self, entry: _Entry, value: object, good_ns: int) -> None:
        entry.value, entry.round, entry.good_until_ns = value, self._round, self._now_ns + good_ns


def plain(data: bytes, _file: str) -> bytes:
    """Return the bytes themselves."""
    return data
