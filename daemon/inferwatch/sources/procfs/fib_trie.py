"""Parse a network namespace's own addresses: net/fib_trie (net/ipv4/fib_trie.c), net/if_inet6 (net/ipv6/addrconf.c)."""

import ipaddress
from collections.abc import Iterable
from typing import Final

from inferwatch.errors import ParseError
from inferwatch.sources.procfs.fields import excerpt

MAX_LINES: Final = 100_000  # a router's table can have a million
LEAF: Final = b"|--"
LOCAL: Final = [b"/32", b"host", b"LOCAL"]
IF_INET6: Final = "/proc/PID/net/if_inet6"
IF_INET6_LINE: Final = "address, interface number, prefix length, scope, flags and name"
SCOPES: Final = frozenset({b"00", b"10"})  # global, host (::1)
NOT_USABLE: Final = 0x08 | 0x40  # IFA_F_DADFAILED, IFA_F_TENTATIVE, include/uapi/linux/if_addr.h


def parse_local_ipv4(lines: Iterable[bytes]) -> tuple[ipaddress.IPv4Address, ...]:
    """Return the addresses of the namespace's own interfaces, loopback left out, in the table's order.

    Raises:
        ParseError: When what stands before `/32 host LOCAL` is no address.
    """
    found: dict[ipaddress.IPv4Address, None] = {}
    leaf = b""
    for _, line in zip(range(MAX_LINES), lines, strict=False):
        words = line.split()
        if words[:1] == [LEAF]:
            leaf = words[1] if len(words) > 1 else b""
        elif words == LOCAL:
            try:
                address = ipaddress.IPv4Address(leaf.decode("ascii"))
            except ValueError as error:
                raise ParseError(f"/proc/PID/net/fib_trie: {excerpt(leaf)} is no IPv4 address") from error
            if not address.is_loopback:
                found[address] = None
    return tuple(found)


def parse_local_ipv6(data: bytes) -> tuple[ipaddress.IPv6Address, ...]:
    """Return the addresses of the namespace's own interfaces that can be used: global ones and `::1`.

    Raises:
        ParseError: When a line is malformed.
    """
    found: list[ipaddress.IPv6Address] = []
    for line in data.split(b"\n"):
        fields = line.split()
        if not fields:
            continue
        try:
            digits, _, _, scope, flag_digits, _ = fields
            address = ipaddress.IPv6Address(bytes.fromhex(digits.decode("ascii")))
            flags = int.from_bytes(bytes.fromhex(flag_digits.decode("ascii")), "big")
        except ValueError as error:
            raise ParseError(f"{IF_INET6}: {excerpt(line)} found, expected {IF_INET6_LINE}") from error
        if scope in SCOPES and not flags & NOT_USABLE:
            found.append(address)
    return tuple(found)
