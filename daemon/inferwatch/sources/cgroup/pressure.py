"""Read pressure stall information of a control group (v2 only; kernel/sched/psi.c)."""

from inferwatch.errors import NoData, ParseError
from inferwatch.sources.cgroup.tree import Level
from inferwatch.sources.hostfs import read_bytes
from inferwatch.sources.procfs.pressure import Pressure, parse_pressure


def read_group_pressure(level: Level, resource: str) -> Pressure | None:
    """Read one resource; None where the kernel or the group (cgroup.pressure = 0) has no pressure information.

    Raises:
        ParseError: When the file is malformed.
        SourceError: When it can't be read.
    """
    file = level.directory / f"{resource}.pressure"
    try:
        return parse_pressure(read_bytes(file), resource)
    except NoData:
        return None
    except ParseError as error:
        raise ParseError(str(error).replace(f"/proc/pressure/{resource}", str(file))) from error
