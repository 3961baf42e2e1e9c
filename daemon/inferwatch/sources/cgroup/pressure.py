"""Read pressure stall information of a control group (v2 only; kernel/sched/psi.c)."""

from pathlib import PurePath

from inferwatch.errors import ParseError
from inferwatch.sources.cgroup.files import GroupFiles
from inferwatch.sources.cgroup.tree import Level
from inferwatch.sources.procfs.pressure import Pressure, parse_pressure


def read_group_pressure(files: GroupFiles, level: Level, resource: str) -> Pressure | None:
    """Read one resource; None where the kernel or the group (cgroup.pressure = 0) has no pressure information.

    Raises:
        ParseError: When the file is malformed.
        SourceError: When it can't be read.
    """
    return files.read(level, f"{resource}.pressure", _parse)


def _parse(data: bytes, file: str) -> Pressure:
    resource = PurePath(file).stem
    try:
        return parse_pressure(data, resource)
    except ParseError as error:
        raise ParseError(str(error).replace(f"/proc/pressure/{resource}", file)) from error
