"""From listening sockets to endpoints: at which URL the agent reaches each, or why it can't."""

import ipaddress
from collections.abc import Callable, Sequence
from typing import Final

from inferwatch.sources.procfs.net_tcp import Address, Listener
from inferwatch.targets.model import Endpoint, Unreachable

ENDPOINT_LIMIT: Final = 16
SENTENCES: Final = {
    Unreachable.UNKNOWN: "its network namespace can't be compared with the agent's (/proc/PID/ns/net is denied or the"
    " agent is not in this procfs); run the agent as root or with CAP_SYS_PTRACE",
    Unreachable.LOOPBACK: "listens only on {address} of another network namespace; let it listen on 0.0.0.0, or run"
    " the agent in that namespace",
    Unreachable.NO_ADDRESS: "its network namespace has no address but loopback; publish it in the host's network",
    Unreachable.LINK_LOCAL: "listens only on the link-local address {address}; let it listen on another one",
}


def endpoint(
    listener: Listener, *, same_namespace: bool | None, addresses: Callable[[], Sequence[Address]], front: bool
) -> Endpoint:
    """Return how the agent reaches a listening socket.

    Args:
        listener: The socket.
        same_namespace: Whether it is in the agent's network namespace, None when that is not known.
        addresses: Returns the addresses of the socket's namespace; asked only when needed.
        front: Whether clients are meant to connect.
    """
    address: Address | None = listener.address
    reason = Unreachable.NO
    if same_namespace is None:
        reason = Unreachable.UNKNOWN
    elif listener.address.is_link_local:
        reason = Unreachable.LINK_LOCAL
    elif listener.address.is_unspecified:
        address = _loopback(listener, addresses) if same_namespace else _reachable(listener, addresses())
        reason = Unreachable.NO if address is not None else Unreachable.NO_ADDRESS
    elif listener.address.is_loopback and not same_namespace:
        reason = Unreachable.LOOPBACK
    if reason is not Unreachable.NO or address is None:
        sentence = SENTENCES[reason].format(address=listener.address)
        return Endpoint("", listener.port, sentence, reason, front=front)
    host = f"[{address}]" if address.version == 6 else str(address)  # noqa: PLR2004 - IP's version
    return Endpoint(f"http://{host}:{listener.port}", listener.port, front=front)


def select(endpoints: Sequence[Endpoint], expected: Sequence[int]) -> tuple[Endpoint, ...]:
    """Return one endpoint a port, the best of each, those first that clients most likely connect to.

    Args:
        endpoints: All that was found, in any order.
        expected: Ports at which the HTTP server is expected.
    """

    def rank(found: Endpoint) -> tuple[bool, int, int, bool, bool, str]:
        place = expected.index(found.port) if found.port in expected else len(expected)
        return not found.front, place, found.port, not found.url, "[" in found.url, found.url

    best: dict[int, Endpoint] = {}
    for found in sorted(endpoints, key=rank):
        best.setdefault(found.port, found)
    return tuple(best.values())[:ENDPOINT_LIMIT]


def _loopback(listener: Listener, addresses: Callable[[], Sequence[Address]]) -> Address:
    """Return the loopback address of the socket's kind.

    asyncio's servers on `::` take no IPv4 (IPV6_V6ONLY), which no table shows; a namespace without any IPv6 address has
    it switched off, and the socket then is of a server that takes both.
    """
    six = listener.address.version == 6 and any(own.version == 6 for own in addresses())  # noqa: PLR2004 - IP's version
    return ipaddress.ip_address("::1" if six else "127.0.0.1")


def _reachable(listener: Listener, addresses: Sequence[Address]) -> Address | None:
    """Return the first address of a namespace at which a socket bound to all addresses is reached."""
    usable = [own for own in addresses if not own.is_loopback]
    same = [own for own in usable if own.version == listener.address.version]
    # a socket bound to `::` takes IPv4 too, unless it was told not to
    other = usable if listener.address.version == 6 else []  # noqa: PLR2004 - IP's version
    return next(iter([*same, *other]), None)
