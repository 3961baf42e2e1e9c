"""Name resolution in an instance's own thread."""

import socket
from collections.abc import Awaitable, Callable
from typing import Any

from aiohttp.abc import AbstractResolver, ResolveResult

# The result depends on the function handed in, which a plain Callable can't say; the context's RunBlocking can, but it
# lives in a layer above this one.
RunBlocking = Callable[..., Awaitable[Any]]
GetAddrInfo = Callable[..., list[tuple[Any, ...]]]  # socket.getaddrinfo's own type


class ThreadResolver(AbstractResolver):
    """Resolves names in the instance's thread."""

    def __init__(self, run_blocking: RunBlocking, getaddrinfo: GetAddrInfo) -> None:
        self._run_blocking = run_blocking
        self._getaddrinfo = getaddrinfo
        self.busy = False

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_UNSPEC
    ) -> list[ResolveResult]:
        """Return the addresses of a host."""
        self.busy = True
        found = await self._run_blocking(self._getaddrinfo, host, port, family, socket.SOCK_STREAM)
        self.busy = False
        return [
            ResolveResult(hostname=host, host=address[0], port=address[1], family=kind, proto=protocol, flags=0)
            for kind, _, protocol, _, address in found
        ]

    async def close(self) -> None:
        """Do nothing: there is nothing to release."""
