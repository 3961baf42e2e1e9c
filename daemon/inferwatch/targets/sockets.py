"""What processes listen on, in their own network namespace, and how the agent reaches it from its own."""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

from inferwatch.errors import NoData, ParseError, SourceError
from inferwatch.sources.procfs.fib_trie import parse_local_ipv4, parse_local_ipv6
from inferwatch.sources.procfs.net_tcp import Address, Listener, parse_listeners
from inferwatch.targets.reader import ProcReader

TABLES: Final = ("net/tcp", "net/tcp6")
NAMESPACE: Final = "ns/net"
SOCKET: Final = "socket:["
LISTENER_LIMIT: Final = 10_000
IF_INET6_BYTES: Final = 1 << 20


@dataclass(frozen=True, slots=True)
class Listening:
    """What a process listens on.

    Args:
        namespace: Its network namespace as its link says it, empty when that can't be read.
        listeners: Its listening sockets.
        pid: A process of this namespace.
        denied: Whether its file descriptors can't be read: the sockets then are those of its user at expected ports.
    """

    namespace: str
    listeners: tuple[Listener, ...]
    pid: int
    denied: bool = False


@dataclass(frozen=True, slots=True)
class _Table:
    """The listening sockets of a network namespace."""

    listeners: tuple[Listener, ...]
    inodes: frozenset[int]
    ports: frozenset[int]


class Sockets:
    """Joins processes with listening sockets; what is read of a namespace is kept for one round.

    Reading net/tcp takes some 4 ms however few sockets there are: the kernel walks its hash table to the end.

    Args:
        reader: Reads the procfs.
    """

    def __init__(self, reader: ProcReader) -> None:
        self._reader = reader
        self._tables: dict[str, _Table] = {}
        self._addresses: dict[str, tuple[Address, ...]] = {}
        self._own: str | None = None

    def begin_round(self) -> None:
        """Forget what was read in the last round."""
        self._tables.clear()
        self._addresses.clear()
        self._own = None

    @property
    def own_namespace(self) -> str:
        """Return the agent's network namespace, empty when it is not known.

        Asked of the agent's own process in this procfs: with the host's procfs in a container it is the container's.
        """
        if self._own is None:
            try:
                self._own = self._reader.link("self", NAMESPACE)
            except (NoData, SourceError):
                self._own = ""
        return self._own

    def own_addresses(self) -> frozenset[Address]:
        """Return the agent's own addresses, `::1` among them, but no IPv4 loopback."""
        try:
            return frozenset(self._addresses_of(self.own_namespace, "self"))
        except (NoData, SourceError, ParseError):
            return frozenset()

    def listening(self, pid: int, expected: Sequence[int]) -> Listening:
        """Return what a process listens on.

        Args:
            pid: The process.
            expected: Ports at which a socket is taken for the process's own where its file descriptors are denied.

        Raises:
            NoData: It is gone.
            SourceError: Its namespace's table can't be read.
            ParseError: The table is of an unknown form.
        """
        name = self._name(pid)
        table = self._of(name, pid)
        if not table.inodes:
            return Listening(name, (), pid)
        try:
            owned = table.inodes & self._socket_inodes(pid)
        except SourceError:
            return self._guess(pid, expected, table)
        return Listening(name, tuple(found for found in table.listeners if found.inode in owned), pid)

    def listens_on(self, pid: int, port: int) -> bool:
        """Return whether a process listens on a port; its file descriptors are read only if its namespace does."""
        table = self._of(self._name(pid), pid)
        if port not in table.ports:
            return False
        owned = self._socket_inodes(pid)
        return any(found.port == port and found.inode in owned for found in table.listeners)

    def addresses_of(self, listening: Listening) -> tuple[Address, ...]:
        """Return the addresses of the namespace that something listens in, `::1` among them, but no IPv4 loopback."""
        try:
            return self._addresses_of(listening.namespace, listening.pid)
        except (NoData, SourceError, ParseError):
            return ()

    def _guess(self, pid: int, expected: Sequence[int], table: _Table) -> Listening:
        """Take sockets of the process's user at expected ports for its own, in the agent's namespace or an unknown one.

        A socket's inode is its own on the whole host: one that the agent's own table has too is in the agent's
        namespace, whoever may read the link.
        """
        uid = self._reader.uid(pid)
        found = tuple(entry for entry in table.listeners if entry.port in expected and entry.uid == uid)
        own = self._of(self.own_namespace, "self").inodes
        same = bool(found) and all(entry.inode in own for entry in found)
        return Listening(self.own_namespace if same else "", found, pid, denied=True)

    def _name(self, pid: int) -> str:
        try:
            return self._reader.link(pid, NAMESPACE)
        except SourceError:
            return ""

    def _of(self, name: str, pid: int | str) -> _Table:
        key = name or f"of {pid}"
        known = self._tables.get(key)
        if known is None:
            found = self._read(pid)
            inodes, ports = frozenset(row.inode for row in found), frozenset(row.port for row in found)
            known = self._tables[key] = _Table(found, inodes, ports)
        return known

    def _read(self, pid: int | str) -> tuple[Listener, ...]:
        found: list[Listener] = []
        for table in TABLES:
            try:
                found += [row for row, _ in zip(parse_listeners(self._reader.lines(pid, table)), range(LISTENER_LIMIT))]  # noqa: B905 - the limit is the point
            except NoData:  # no IPv6, or the process is gone, which reading its descriptors will tell
                continue
        return tuple(found)

    def _addresses_of(self, name: str, pid: int | str) -> tuple[Address, ...]:
        key = name or f"of {pid}"
        if key not in self._addresses:
            found: list[Address] = list(parse_local_ipv4(self._reader.lines(pid, "net/fib_trie")))
            with suppress(NoData):  # no IPv6
                found += parse_local_ipv6(self._reader.read(pid, "net/if_inet6", IF_INET6_BYTES))
            self._addresses[key] = tuple(found)
        return self._addresses[key]

    def _socket_inodes(self, pid: int) -> frozenset[int]:
        numbers = (link[len(SOCKET) : -1] for link in self._reader.open_files(pid) if link.startswith(SOCKET))
        return frozenset(int(number) for number in numbers if number.isascii() and number.isdigit())
