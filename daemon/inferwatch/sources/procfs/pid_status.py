"""Parse what /proc/PID/status (fs/proc/array.c) tells of a process's identity: its user and its pids."""

from dataclasses import dataclass
from typing import Final

from inferwatch.errors import ParseError
from inferwatch.sources.procfs.fields import unsigned

FILE: Final = "/proc/PID/status"
USER_IDS: Final = 4  # real, effective, saved, file system


@dataclass(frozen=True, slots=True)
class PidStatus:
    """Whose a process is.

    Args:
        uid: Its real user id, as the procfs' user namespace sees it.
        namespace_pids: Its pid in every pid namespace from the procfs' own inwards (NSpid, since kernel 4.1); empty
            where the kernel does not say.
    """

    uid: int
    namespace_pids: tuple[int, ...]


def parse_pid_status(data: bytes) -> PidStatus:
    """Parse the lines Uid and NSpid.

    Raises:
        ParseError: When the line Uid is missing, or one of them is malformed.
    """
    uid: int | None = None
    pids: tuple[int, ...] = ()
    for line in data.split(b"\n"):  # the line Name escapes line ends
        key, _, rest = line.partition(b":")
        if key == b"Uid":
            ids = rest.split()
            if len(ids) != USER_IDS:
                raise ParseError(f"{FILE}: Uid has {len(ids)} numbers, expected {USER_IDS}")
            uid = unsigned(ids[0], f"{FILE}: Uid")
        elif key == b"NSpid":
            pids = tuple(unsigned(field, f"{FILE}: NSpid") for field in rest.split())
    if uid is None:
        raise ParseError(f"{FILE}: there is no line Uid")
    return PidStatus(uid, pids)
