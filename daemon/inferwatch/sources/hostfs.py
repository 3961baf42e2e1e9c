"""Reads of the host's procfs, sysfs and root below configurable roots."""

import errno
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Final

from inferwatch.errors import NoData, SourceError

MAX_BYTES: Final = (
    16 << 20
)  # the largest file read here is far below; a runaway or wrongly mounted one must not fill memory

# ESRCH: the process ended between open and read; EOPNOTSUPP: the file is there but the feature is off (PSI at psi=0).
ABSENT_ERRNOS: Final = frozenset({errno.ENOENT, errno.ENOTDIR, errno.ESRCH, errno.EOPNOTSUPP, errno.ENODEV})
DENIED_ERRNOS: Final = frozenset({errno.EACCES, errno.EPERM})


@dataclass(frozen=True, slots=True)
class HostFs:
    """The host's file systems.

    Args:
        procfs: Where its procfs is mounted.
        sysfs: Where its sysfs is mounted.
        rootfs: Where its root is mounted.
    """

    procfs: Path
    sysfs: Path
    rootfs: Path

    def proc(self, *parts: str) -> Path:
        """Return a path below procfs. `self` and `net` mean the host's first process, not the agent.

        A /proc that is mounted from the host (say at /host/proc) has a `self` that names a process of the host's pid
        namespace, or nothing at all: it is the agent's own pid there, if it has one. `net` is a link to `self/net`,
        the *agent's* network namespace. Process 1 is the host's own in both respects.
        """
        parts = PurePosixPath(*parts).parts
        if parts and parts[0] in {"self", "thread-self", "net", "mounts"} and not self.is_own_proc:
            if parts[0] == "net" and self._is_recorded_net:
                return self.procfs.joinpath(*parts)
            parts = ("1", *parts) if parts[0] in {"net", "mounts"} else ("1", *parts[1:])
        return self.procfs.joinpath(*parts)

    @property
    def _is_recorded_net(self) -> bool:
        """Return whether this is a recorded tree with a `net` of its own: a real one's is a link to `self/net`."""
        net = self.procfs / "net"
        return not net.is_symlink() and net.is_dir() and not (self.procfs / "1" / "net").exists()

    @property
    def is_own_proc(self) -> bool:
        """Return whether procfs is the agent's own, so that `self` means what it says."""
        return self.procfs == Path("/proc")

    def sys(self, *parts: str) -> Path:
        """Return a path below sysfs."""
        return self.sysfs.joinpath(*parts)

    def root(self, *parts: str) -> Path:
        """Return a path below the root file system."""
        return self.rootfs.joinpath(*(part.lstrip("/") for part in parts))


def read_bytes(path: Path, limit: int = MAX_BYTES) -> bytes:
    """Read a whole file of procfs, sysfs or cgroupfs.

    Raises:
        NoData: When the file, process or feature is absent (ENOENT, ENOTDIR, ESRCH, EOPNOTSUPP, ENODEV).
        SourceError: When it can't be read; reason `permission_denied`, `io` or `too_large`.
    """
    try:
        with path.open("rb", buffering=0) as file:
            data = bytearray()
            while chunk := file.read(limit + 1 - len(data) if len(data) > limit - 65_536 else 65_536):
                data += chunk
                if len(data) > limit:
                    raise SourceError(f"{path}: larger than {limit} bytes, refused", reason="too_large")
            return bytes(data)
    except OSError as error:
        if error.errno in ABSENT_ERRNOS:
            raise NoData(f"{path}: {error.strerror}") from error
        reason = "permission_denied" if error.errno in DENIED_ERRNOS else "io"
        raise SourceError(f"{path}: {error.strerror or error}", reason=reason) from error
