"""One client's connection, with the limits that keep slow or hostile clients from costing the agent anything."""

import asyncio
from typing import Any, Final, cast

from aiohttp import web

from inferwatch.logs import get_logger

SERVER: Final = "inferwatch"  # aiohttp would tell its own version and Python's
KEEPALIVE_SECONDS: Final = 75.0  # above the usual scrape intervals; it also limits the wait for a request's headers
LINGER_SECONDS: Final = 2.0  # for the rest of a body that nobody reads
WRITE_SECONDS: Final = 30.0  # a client that takes longer to read its answer is cut off
CONNECTION_LIMIT: Final = 256  # far below the usual 1024 file descriptors, which the samplers need too


class Connection(web.RequestHandler):
    """aiohttp's protocol, with a time limit on writing, a limit on the number, and errors in our words.

    Args:
        server: The server it belongs to.
        open_connections: All connections that are open now; this one enters and leaves by itself.
    """

    def __init__(self, server: web.Server, open_connections: "set[Connection]") -> None:
        super().__init__(
            server,
            loop=asyncio.get_running_loop(),
            keepalive_timeout=KEEPALIVE_SECONDS,
            lingering_time=LINGER_SECONDS,
            access_log=cast(Any, None),  # None means no access log; aiohttp's annotation does not say so
        )
        self._open = open_connections
        self._wire: asyncio.Transport | None = None
        self._cut_off: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Take the connection, or close it at once when there are too many."""
        super().connection_made(transport)
        self._wire = cast(asyncio.Transport, transport)
        # writing is "paused" while any byte waits for the client, so the clock below sees small answers too
        self._wire.set_write_buffer_limits(high=0)
        self._open.add(self)
        if len(self._open) > CONNECTION_LIMIT:
            self.abort()

    def connection_lost(self, exc: BaseException | None) -> None:
        """Forget the connection."""
        self._open.discard(self)
        self._stop_clock()
        super().connection_lost(exc)

    def pause_writing(self) -> None:
        """Start the clock: the client has to read now."""
        super().pause_writing()
        self._cut_off = asyncio.get_running_loop().call_later(WRITE_SECONDS, self.abort)

    def resume_writing(self) -> None:
        """Stop the clock: the client has read everything."""
        self._stop_clock()
        super().resume_writing()

    def abort(self) -> None:
        """Close without waiting for the client to read what is left."""
        if self._wire is not None:
            self._wire.abort()

    def handle_error(
        self,
        request: web.BaseRequest,
        status: int = 500,
        exc: BaseException | None = None,
        message: str | None = None,
    ) -> web.StreamResponse:
        """Answer what is not HTTP, or what went wrong outside a handler, without telling about the inside."""
        if request.writer.output_size > 0:
            raise ConnectionError("an answer has begun and can't be taken back") from exc
        if status >= 500:  # noqa: PLR2004 - the first status that is our fault
            get_logger().error("web request failed", error=message or repr(exc), exc_info=exc)
        text = "bad request\n" if status < 500 else "internal error\n"  # noqa: PLR2004 - as above
        response = web.Response(
            status=status, text=text, headers={"Server": SERVER, "X-Content-Type-Options": "nosniff"}
        )
        response.force_close()
        return response

    def log_exception(self, *args: Any, **kw: Any) -> None:  # noqa: ANN401 - aiohttp's signature
        """Log through structlog what aiohttp could not handle; the standard library's logging is switched off."""
        get_logger().error("web connection failed", error=str(args[0]) if args else "", exc_info=kw.get("exc_info"))

    def _stop_clock(self) -> None:
        if self._cut_off is not None:
            self._cut_off.cancel()
            self._cut_off = None
