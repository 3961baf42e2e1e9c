"""Find the mounted cgroup hierarchies in /proc/PID/mountinfo (fs/proc_namespace.c, show_mountinfo()); pure."""

import re
from dataclasses import dataclass
from typing import Final

ESCAPE: Final = re.compile(rb"\\([0-3][0-7]{2})")
FEWEST_BEFORE, FEWEST_AFTER = 6, 3  # words before and after the word `-`
ROOT, MOUNT_POINT = 3, 4


@dataclass(frozen=True, slots=True)
class CgroupMount:
    """One mount of a hierarchy.

    Args:
        version: 1 or 2.
        controllers: Names of a v1 hierarchy's controllers and the other options of its mount; empty for v2.
        root: Which group the mount shows at its top: `/`, or another in a container.
        mount_point: Where it is mounted.
    """

    version: int
    controllers: frozenset[str]
    root: str
    mount_point: str


def parse_cgroup_mounts(data: bytes) -> tuple[CgroupMount, ...]:
    """Return the cgroup mounts in the file's order; lines of other file systems and odd ones are passed over."""
    return tuple(mount for line in data.splitlines() if (mount := _mount(line)) is not None)


def _mount(line: bytes) -> CgroupMount | None:
    before, _, after = line.partition(b" - ")
    left, right = before.split(b" "), after.split(b" ")
    if len(left) < FEWEST_BEFORE or len(right) < FEWEST_AFTER or right[0] not in {b"cgroup", b"cgroup2"}:
        return None
    version = 2 if right[0] == b"cgroup2" else 1
    options = _text(right[2]).split(",") if version == 1 else []
    return CgroupMount(version, frozenset(options), _text(left[ROOT]), _text(left[MOUNT_POINT]))


def _text(word: bytes) -> str:
    """Undo the escapes of blanks and backslashes (mangle())."""
    plain = ESCAPE.sub(lambda match: bytes([int(match[1], 8)]), word)
    return plain.decode("utf-8", "surrogateescape")
