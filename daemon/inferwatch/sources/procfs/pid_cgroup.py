"""Parse /proc/PID/cgroup (proc_cgroup_show() in kernel/cgroup/cgroup.c): where a process stands in each hierarchy."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from inferwatch.errors import ParseError
from inferwatch.sources.procfs.fields import excerpt

FILE: Final = "/proc/PID/cgroup"
DELETED: Final = " (deleted)"  # the cgroup was removed, and the process is a zombie


@dataclass(frozen=True, slots=True)
class PidCgroup:
    """The content of /proc/PID/cgroup; paths begin with `/`, or with `/..` when they lead out of the cgroup namespace.

    Args:
        unified: Path in the v2 hierarchy, None when it is not mounted.
        controllers: v1 controller to path; a named hierarchy is there as `name=systemd`.
    """

    unified: str | None
    controllers: Mapping[str, str]


def parse_pid_cgroup(data: bytes) -> PidCgroup:
    """Parse lines of `number:controllers:path`; a path may hold colons, and any byte but NUL and line end.

    Raises:
        ParseError: When a line is not of that form.
    """
    unified: str | None = None
    controllers: dict[str, str] = {}
    for line in data.split(b"\n"):
        if not line:
            continue
        fields = line.split(b":", 2)
        if len(fields) != 3 or not fields[0].isdigit() or not fields[2].startswith(b"/"):  # noqa: PLR2004 - number, controllers, path
            raise ParseError(f"{FILE}: {excerpt(line)} found, expected number:controllers:/path")
        names, path = (field.decode("utf-8", "replace") for field in fields[1:])
        path = path.removesuffix(DELETED)
        if not names:
            unified = path
        else:
            controllers.update(dict.fromkeys(names.split(","), path))
    return PidCgroup(unified, controllers)
