"""One client's connection, with the limits that keep slow or hostile clients from costing the agent anything."""

import asyncio
from typing import Any, Final, cast

from aiohttp import web

from inferwatch.logs import get_logger

SERVER: Final = "inferwatch"  # aiohttp would tell its own version and Python's
KEEPALIVE_SECONDS: Final = 75.0  # above the usual scrape intervals
HEAD_SECONDS: Final = 10.0  # for the head of a request, from the connection or its first byte on, however it trickles
LINGER_SECONDS: Final = 2.0  # for the rest of a body that nobody reads
WRITE_SECONDS: Final = 30.0  # a client that takes longer to read its answer is cut off
CONNECTION_LIMIT: Final = 256  # far below the usual 1024 file descriptors, which the samplers need too


class Connection(web.RequestHandler):
    """aiohttp's protocol, with time limits on heads and writing, a limit on the number, and errors in our words.

    Over the limit the oldest connection without a request is closed, so that clients that only connect, or send half a
    request, can't lock out one that asks; the new one only when all the others have a request in progress.

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
        self._since = 0.0
        self._head_limit: asyncio.TimerHandle | None = None
        self._cut_off: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Take the connection, and close one when there are too many."""
        super().connection_made(transport)
        self._wire = cast(asyncio.Transport, transport)
        # writing is "paused" while any byte waits for the client, so the clock below sees small answers too
        self._wire.set_write_buffer_limits(high=0)
        self._since = asyncio.get_running_loop().time()
        self._start_head_limit()
        if self._make_room():
            self._open.add(self)
        else:
            self.abort()

    @property
    def since(self) -> float:
        """Return when it was made, on the loop's clock."""
        return self._since

    @property
    def has_request(self) -> bool:
        """Return whether a request has come whose answer is not sent yet."""
        # aiohttp's loop has a waiter while it waits for a request, and only then; before the first one it has not begun
        return bool(self._messages) or (self._request_count > 0 and self._waiter is None)

    def data_received(self, data: bytes) -> None:
        """Take some bytes; the first ones of a request start the clock for its head, its end stops it."""
        before = self._request_count
        if data and not self.has_request:
            self._start_head_limit()
        super().data_received(data)
        if self._request_count > before:
            self._stop_head_limit()

    def connection_lost(self, exc: BaseException | None) -> None:
        """Forget the connection."""
        self._open.discard(self)
        self._stop_head_limit()
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

    def _make_room(self) -> bool:
        """Close the oldest connection without a request when there are too many; return whether there is room."""
        if len(self._open) < CONNECTION_LIMIT:
            return True
        oldest = min((one for one in self._open if not one.has_request), key=lambda one: one.since, default=None)
        if oldest is None:
            return False
        self._open.discard(oldest)  # now: the loop tells it later that it is lost, and more may come before
        oldest.abort()
        return True

    def _start_head_limit(self) -> None:
        if self._head_limit is None:
            self._head_limit = asyncio.get_running_loop().call_later(HEAD_SECONDS, self.abort)

    def _stop_head_limit(self) -> None:
        if self._head_limit is not None:
            self._head_limit.cancel()
            self._head_limit = None

    def _stop_clock(self) -> None:
        if self._cut_off is not None:
            self._cut_off.cancel()
            self._cut_off = None
