"""Parse /proc/PID/net/tcp and tcp6 (get_tcp4_sock() in net/ipv4/tcp_ipv4.c, get_tcp6_sock()): listening sockets."""

import ipaddress
import re
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Final

from inferwatch.errors import ParseError
from inferwatch.sources.procfs.fields import excerpt, unsigned

FILE: Final = "/proc/PID/net/tcp"
LISTEN: Final = b"0A"  # TCP_LISTEN, include/net/tcp_states.h
COLUMNS: Final = 10  # sl, local_address, rem_address, st, queues, timer, retrnsmt, uid, timeout, inode
MAX_ROWS: Final = 100_000
MAX_OTHER_ROWS: Final = 2000
ADDRESS: Final = re.compile(rb"([0-9A-F]{8}|[0-9A-F]{32}):([0-9A-F]{4})")

Address = ipaddress.IPv4Address | ipaddress.IPv6Address


@dataclass(frozen=True, slots=True)
class Listener:
    """A listening socket.

    Args:
        address: The address that it is bound to; an IPv4 address that IPv6 stands in for is given as IPv4.
        port: The port.
        uid: Who made it.
        inode: The socket's inode, as in /proc/PID/fd.
    """

    address: Address
    port: int
    uid: int
    inode: int


def parse_listeners(lines: Iterable[bytes]) -> Iterator[Listener]:
    """Return the listening sockets of a table, of which no more than needed is read.

    The kernel shows the listening ones first (tcp_seek_last_pos() in net/ipv4/tcp_ipv4.c), so reading ends after some
    that are not: a host with a million connections costs no more than one with a few thousand.

    Args:
        lines: The file's lines, its head included.

    Raises:
        ParseError: When a row is malformed.
    """
    others = 0
    for line in islice(lines, 1, MAX_ROWS):
        fields = line.split(None, COLUMNS)
        if len(fields) < COLUMNS:
            if not fields:
                continue
            raise ParseError(f"{FILE}: {excerpt(line)} found, expected at least {COLUMNS} columns")
        if fields[3] == LISTEN:
            address, port = _socket_address(fields[1])
            yield Listener(address, port, unsigned(fields[7], f"{FILE}: uid"), unsigned(fields[9], f"{FILE}: inode"))
            continue
        others += 1
        if others > MAX_OTHER_ROWS:
            return


def _socket_address(field: bytes) -> tuple[Address, int]:
    """Parse `0100007F:1F90`: words of 32 bits in the machine's byte order, the port in usual order."""
    found = ADDRESS.fullmatch(field)
    if found is None:
        raise ParseError(f"{FILE}: {excerpt(field)} is no address and port in hexadecimal digits")
    packed, port = (bytes.fromhex(digits.decode("ascii")) for digits in found.groups())
    if sys.byteorder == "little":
        packed = b"".join(packed[start : start + 4][::-1] for start in range(0, len(packed), 4))
    address = ipaddress.ip_address(packed)
    mapped = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
    return mapped or address, int.from_bytes(port, "big")
