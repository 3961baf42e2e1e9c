"""Find the directories of a control group and its ancestors, in v1, v2 and hybrid hierarchies."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Final

from inferwatch.errors import NoData, SourceError
from inferwatch.sources.cgroup.mounts import CgroupMount, parse_cgroup_mounts
from inferwatch.sources.hostfs import HostFs, read_bytes

V1, V2 = 1, 2
CONVENTIONAL: Final = "/sys/fs/cgroup"
SYSFS: Final = PurePosixPath("/sys")
MOST_REMEMBERED: Final = 1000


@dataclass(frozen=True, slots=True)
class Level:
    """A control group: its directory, and the version of the hierarchy that it is in."""

    directory: Path
    version: int


class CgroupTree:
    """Resolves the paths of /proc/PID/cgroup.

    The mounts are looked up once, in the mount table of the host's first process (or, without permission or in a
    recorded tree, taken from where every distribution mounts them).

    Args:
        hostfs: The host's file systems.
    """

    def __init__(self, hostfs: HostFs) -> None:
        self._hostfs = hostfs
        self._mounts: tuple[CgroupMount, ...] | None = None
        self._found: dict[tuple[str, str], tuple[Level, ...]] = {}

    def levels(self, controller: str, unified: str | None, controllers: Mapping[str, str]) -> tuple[Level, ...]:
        """Return a group and its ancestors, the group itself first; the root, which has no limits, is not among them.

        A controller is in one hierarchy only: in v1 when /proc/PID/cgroup names it there, in v2 otherwise.

        Args:
            controller: Its name; empty for v2 alone, which is where pressure is told.
            unified: Path in v2, None when there is none.
            controllers: v1 controller name to path.
        """
        if controller in controllers:
            return self._remembered(V1, controller, controllers[controller])
        return self._remembered(V2, "", unified) if unified is not None else ()

    def _remembered(self, version: int, controller: str, path: str) -> tuple[Level, ...]:
        """Return what was found before: a group's place does not change, and one that is gone has no files to read."""
        levels = self._found.get((controller, path))
        if levels is None and (levels := self._directories(version, controller, path)) is not None:
            if len(self._found) >= MOST_REMEMBERED:
                self._found.clear()
            self._found[controller, path] = levels
        return levels or ()

    def _directories(self, version: int, controller: str, path: str) -> tuple[Level, ...] | None:
        """Return the levels, none for the root; None when there is no such directory."""
        for mount in self._candidates(version, controller):
            relative = _below(mount.root, path)
            if relative is None:
                continue
            top = self._locate(mount.mount_point)
            directory = top / relative
            if directory.is_dir():
                return tuple(_climb(directory, top, version))
        return None

    def _candidates(self, version: int, controller: str) -> Iterator[CgroupMount]:
        if self._mounts is None:
            self._mounts = self._read_mounts()
        for mount in self._mounts:
            if mount.version == version and (version == V2 or controller in mount.controllers):
                yield mount
        places = ("", "/unified") if version == V2 else (f"/{controller}",)  # systemd's hybrid has v2 in `unified`
        for place in places:
            if version == V1 or (self._locate(CONVENTIONAL + place) / "cgroup.controllers").exists():
                yield CgroupMount(version, frozenset(), "/", CONVENTIONAL + place)

    def _read_mounts(self) -> tuple[CgroupMount, ...]:
        try:
            return parse_cgroup_mounts(read_bytes(self._hostfs.proc("self", "mountinfo")))
        except (NoData, SourceError):
            return ()

    def _locate(self, mount_point: str) -> Path:
        """Return where a path of the host is seen from here."""
        place = PurePosixPath(mount_point)
        if place.is_relative_to(SYSFS):
            return self._hostfs.sys(str(place.relative_to(SYSFS)))
        return self._hostfs.root(mount_point)


def _below(root: str, path: str) -> str | None:
    """Return a group's path below a mount's top; None when the mount does not show it.

    A path that begins with /.. lies outside the cgroup namespace of whoever reads it.
    """
    group = PurePosixPath(path)
    if not group.is_absolute() or ".." in group.parts or not group.is_relative_to(root):
        return None
    return str(group.relative_to(root))


def _climb(directory: Path, top: Path, version: int) -> Iterator[Level]:
    while directory != top:
        yield Level(directory, version)
        directory = directory.parent
    if not _is_root(top, version):
        yield Level(top, version)


def _is_root(top: Path, version: int) -> bool:
    """Return whether a mount's top is the hierarchy's root; in a container it is often the container's own group."""
    if version == V1:
        return (top / "release_agent").exists()
    return not (top / "cgroup.events").exists()
