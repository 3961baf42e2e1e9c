"""A procfs of files, made process by process, and a tracker on it."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Final

from inferwatch.config_targets import DiscoveryConfig, TargetConfig
from inferwatch.sources.hostfs import HostFs
from inferwatch.targets.model import Target, TargetTable
from inferwatch.targets.tracker import TargetTracker
from support import FakeClock

HOST_NAMESPACE: Final = 4026531840
AGENT: Final = 900
UPTIME_SECONDS: Final = 100_000
OLD: Final = 1_000_000  # ticks: started long ago
HEAD: Final = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n"


def tcp_row(address: str, port: int, inode: int, *, state: str = "0A", uid: int = 0) -> str:
    """Return a row of /proc/net/tcp; the address as the kernel prints it, little-endian."""
    return (
        f"   0: {address}:{port:04X} 00000000:0000 {state} 00000000:00000000 00:00000000 00000000 "
        f"{uid:5d}        0 {inode} 1 0000000000000000 100 0 0 10 0\n"
    )


class FakeProc:
    """A procfs below a directory."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self._namespaces: dict[int, int] = {}
        self._rows: dict[int, tuple[str, str]] = {}
        self._removed = 0
        self.proc = root / "proc"
        self.proc.mkdir(parents=True)
        self.add(1, ["/sbin/init"], ppid=0, start=1)
        self.add(AGENT, ["/usr/bin/python3", "/usr/bin/inferwatch", "run"], comm="inferwatch")
        (self.proc / "self").symlink_to(str(AGENT))
        (self.proc / "uptime").write_text(f"{UPTIME_SECONDS}.00 1.00\n")
        (self.proc / "stat").write_text("cpu 1 2 3 4\nbtime 1700000000\n")

    @property
    def hostfs(self) -> HostFs:
        return HostFs(procfs=self.proc, sysfs=self.root / "sys", rootfs=self.root)

    def add(  # noqa: PLR0913 - the facets of a process, all named
        self,
        pid: int,
        cmdline: Sequence[str] | bytes,
        *,
        comm: str | None = None,
        ppid: int = 1,
        start: int = OLD,
        state: str = "S",
        cgroup: str = "0::/\n",
        namespace: int = HOST_NAMESPACE,
        uid: int = 0,
        nspid: Iterable[int] = (),
        sockets: Mapping[int, str] | None = None,
    ) -> None:
        """Add a process, or replace it where it stands.

        Args:
            sockets: Inode to row of net/tcp of its namespace; they are its own too.
        """
        home = self.proc / str(pid)
        for part in ("fd", "ns", "net"):
            (home / part).mkdir(parents=True, exist_ok=True)
        arguments = cmdline if isinstance(cmdline, bytes) else "".join(f"{word}\0" for word in cmdline).encode()
        name = comm or arguments.split(b"\0")[0].decode("utf-8", "replace").rpartition("/")[2][:15]
        (home / "cmdline").write_bytes(arguments)
        (home / "comm").write_text(f"{name}\n")
        zeros = "0 " * 12
        (home / "stat").write_text(f"{pid} ({name}) {state} {ppid} 1 1 0 -1 4194304 {zeros}{start} 0 0\n")
        pids = " ".join(str(number) for number in (pid, *nspid))
        (home / "status").write_text(f"Name:\t{name}\nUid:\t{uid}\t{uid}\t{uid}\t{uid}\nNSpid:\t{pids}\n")
        (home / "cgroup").write_text(cgroup)
        link(home / "ns/net", f"net:[{namespace}]")
        link(home / "exe", "/usr/bin/true")
        self._namespaces[pid] = namespace
        self.listen(pid, sockets or {})

    def listen(self, pid: int, sockets: Mapping[int, str], *, others: str = "", six: str = "") -> None:
        """Let a process have listening sockets; `others` are rows of its namespace that are no process's here."""
        home = self.proc / str(pid)
        for old in (home / "fd").iterdir():
            old.unlink()
        for number, inode in enumerate([*sockets], start=3):
            link(home / f"fd/{number}", f"socket:[{inode}]")
        link(home / "fd/0", "/dev/null")
        rows = others + "".join(sockets.values()), six
        unchanged = rows == self._rows.get(pid, ("", ""))
        self._rows[pid] = rows
        # all processes of a namespace see the same tables
        space = [other for other, name in self._namespaces.items() if name == self._namespaces[pid]]
        for name, part in (("tcp", 0), ("tcp6", 1)):
            table = HEAD + "".join(self._rows[other][part] for other in space if other in self._rows)
            for other in [pid] if unchanged else space:
                (self.proc / f"{other}/net/{name}").write_text(table)

    def addresses(self, pid: int, *four: str) -> None:
        """Let a process's namespace have IPv4 addresses."""
        leaves = "".join(f"        |-- {address}\n           /32 host LOCAL\n" for address in ("127.0.0.1", *four))
        (self.proc / f"{pid}/net/fib_trie").write_text(f"Main:\n  +-- 0.0.0.0/0 3 0 5\n{leaves}Local:\n{leaves}")

    def remove(self, pid: int) -> None:
        # moved, not deleted, so that its inode is not used again at once: a procfs never does that
        self._removed += 1
        (self.proc / str(pid)).rename(self.root / f"removed-{self._removed}")
        del self._namespaces[pid], self._rows[pid]

    def tracker(
        self, *rules: TargetConfig, clock: FakeClock | None = None, options: DiscoveryConfig | None = None
    ) -> TargetTracker:
        return TargetTracker(self.hostfs, rules, clock or FakeClock(), options)


def link(path: Path, target: str) -> None:
    path.unlink(missing_ok=True)
    path.symlink_to(target)


def names(table: TargetTable) -> list[str]:
    return [target.name for target in table.targets]


def named(table: TargetTable, name: str) -> Target:
    return next(target for target in table.targets if target.name == name)


def roles(target: Target) -> dict[int, str]:
    return {process.id.pid: process.role for process in target.processes}
