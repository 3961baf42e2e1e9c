"""Which addresses mean the same port: the agent's own host has many, and a user's entry may name it by any of them."""

import asyncio
import ipaddress
import os
import socket
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final
from urllib.parse import urlsplit

from inferwatch.errors import SourceError
from inferwatch.sources.procfs.net_tcp import Address
from inferwatch.sources.resolver import GetAddrInfo, RunBlocking
from inferwatch.targets.tracker import Clock

DEFAULT_PORTS: Final = {"http": 80, "https": 443}
LOOPBACK: Final = "loopback"
NAMES_LIMIT: Final = 100
WAIT_SECONDS: Final = 1.0
AGAIN_NS: Final = 60_000_000_000
NO_HOSTS: Final[Mapping[str, frozenset[Address]]] = MappingProxyType({})

Place = tuple[str, int]


def places(
    url: str, own_addresses: Collection[Address] = frozenset(), hosts: Mapping[str, frozenset[Address]] = NO_HOSTS
) -> frozenset[Place]:
    """Return host and port of an address, one for each address of its host; the agent's own host is always the same.

    Args:
        url: The address.
        own_addresses: The agent's own, which are as good as `localhost`.
        hosts: Host name to its addresses, as far as they are known.
    """
    parts = urlsplit(url)
    host = _plain(parts.hostname)
    port = parts.port or DEFAULT_PORTS.get(parts.scheme, 0)
    address = _number(host)
    found = [address] if address is not None else hosts.get(host, ())
    if found:
        return frozenset((_host(each, own_addresses), port) for each in found)
    # also while names can't be resolved
    own = host == "localhost" or host.endswith(".localhost") or host == os.uname().nodename.lower()
    return frozenset({(LOOPBACK if own else host, port)})


@dataclass(slots=True)
class _Name:
    """What is known of a host name."""

    addresses: frozenset[Address] = frozenset()
    next_ns: int = 0


class HostNames:
    """Addresses of the hosts that users' entries name, asked for once a minute and kept when that fails.

    Args:
        clock: Time.
        run_blocking: Runs the resolver in a thread of its own: one that hangs holds up nobody.
        getaddrinfo: Resolves a name.
    """

    def __init__(self, clock: Clock, run_blocking: RunBlocking, getaddrinfo: GetAddrInfo = socket.getaddrinfo) -> None:
        self._clock = clock
        self._run_blocking = run_blocking
        self._getaddrinfo = getaddrinfo
        self._known: dict[str, _Name] = {}

    async def of(self, urls: Iterable[str]) -> Mapping[str, frozenset[Address]]:
        """Return the addresses of these hosts, of those that are known after `WAIT_SECONDS` at the latest."""
        named = (_plain(urlsplit(url).hostname) for url in urls)
        names = list(dict.fromkeys(name for name in named if name and _number(name) is None))[:NAMES_LIMIT]
        self._known = {name: self._known.get(name) or _Name() for name in names}
        now_ns = self._clock.monotonic_ns()
        due = [(name, known) for name, known in self._known.items() if known.next_ns <= now_ns]
        if due:
            with suppress(SourceError, TimeoutError):  # an earlier one has not returned: what was known is kept
                async with asyncio.timeout(WAIT_SECONDS):
                    await self._run_blocking(self._resolve, due, now_ns + AGAIN_NS)
        return {name: known.addresses for name, known in self._known.items() if known.addresses}

    def _resolve(self, due: Sequence[tuple[str, _Name]], next_ns: int) -> None:
        """Resolve names, in the thread; each is noted at once, so that those before one that hangs are known."""
        for name, known in due:
            known.next_ns = next_ns
            try:
                answers = self._getaddrinfo(name, None, type=socket.SOCK_STREAM)
            except (OSError, ValueError):  # UnicodeError of what idna can't write is a ValueError
                continue
            numbers = (_number(str(answer[4][0])) for answer in answers)
            found = frozenset(number for number in numbers if number is not None)
            known.addresses = found or known.addresses


def _plain(host: str | None) -> str:
    return (host or "").rstrip(".")


def _number(host: str) -> Address | None:
    """Return a host that is a number; IPv4 in IPv6's clothes is IPv4, and the interface of a link is left out."""
    try:
        address = ipaddress.ip_address(host.partition("%")[0])
    except ValueError:
        return None
    mapped = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
    return mapped or address


def _host(address: Address, own_addresses: Collection[Address]) -> str:
    own = address.is_loopback or address.is_unspecified or address in own_addresses
    return LOOPBACK if own else str(address)
