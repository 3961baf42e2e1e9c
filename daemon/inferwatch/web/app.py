"""The HTTP server: routes, errors and its own start and end."""

import asyncio
import os
import socket
import ssl
from collections.abc import Sequence
from typing import Final

from aiohttp import hdrs, web
from aiohttp.typedefs import Handler, Middleware

from inferwatch.config import parse_listen_address
from inferwatch.logs import get_logger
from inferwatch.web.connection import SERVER, Connection
from inferwatch.web.pages import Pages
from inferwatch.web.view import AgentView

__all__ = ["AgentView", "WebServer"]

BACKLOG: Final = 256
BODY_LIMIT_BYTES: Final = 65_536
HANDSHAKE_SECONDS: Final = 10.0
SHUTDOWN_SECONDS: Final = 0.3  # aiohttp waits that long twice: for a handler to end and for it to be cancelled
HEADERS: Final = {
    hdrs.SERVER: SERVER,
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
}


class WebServer:
    """Serves until closed.

    Args:
        agent: Whose data is served.
        middlewares: What every request passes before its handler, unknown paths too: authentication.
        ssl_context: Makes it HTTPS.
    """

    def __init__(
        self,
        agent: AgentView,
        *,
        middlewares: Sequence[Middleware] = (),
        ssl_context: ssl.SSLContext | None = None,
    ) -> None:
        guarded = [_guard, *(web.middleware(middleware) for middleware in middlewares)]
        self._app = web.Application(middlewares=guarded, client_max_size=BODY_LIMIT_BYTES)
        self._app.add_routes(Pages(agent).routes())
        self._app.on_response_prepare.append(_add_headers)
        self._ssl_context = ssl_context
        self._runner: web.AppRunner | None = None
        self._listener: asyncio.Server | None = None
        self._open: set[Connection] = set()

    async def start(self, listen_address: str) -> str:
        """Listen and return the URL, without a slash at its end.

        Raises:
            OSError: When the address can't be listened on.
        """
        host, port = parse_listen_address(listen_address)
        self._runner = web.AppRunner(self._app, handle_signals=False, shutdown_timeout=SHUTDOWN_SECONDS)
        await self._runner.setup()
        try:
            self._listener = await self._listen(host, port)
        except (OSError, UnicodeError) as error:  # UnicodeError: a host name that can't be one
            await self.close()
            raise _explained(error, listen_address) from error
        port = self._listener.sockets[0].getsockname()[1]
        return f"{'https' if self._ssl_context else 'http'}://{_shown(host)}:{port}"

    async def _listen(self, host: str, port: int) -> asyncio.Server:
        server = self._runner.server if self._runner else None
        if server is None:
            raise RuntimeError("the runner has to be set up first")
        # instead of web.TCPSite, which can't be given a protocol of our own
        return await asyncio.get_running_loop().create_server(
            lambda: Connection(server, self._open),
            host,
            port,
            ssl=self._ssl_context,
            ssl_handshake_timeout=HANDSHAKE_SECONDS if self._ssl_context else None,
            backlog=BACKLOG,
        )

    async def close(self) -> None:
        """Stop listening; open requests get a moment to end, then their connections are cut."""
        listener, self._listener = self._listener, None
        runner, self._runner = self._runner, None
        if listener is not None:
            listener.close()
        if runner is not None:
            await runner.cleanup()
        for connection in tuple(self._open):  # those whose client does not read the rest of its answer
            connection.abort()
        await asyncio.sleep(0)  # the loop tells them in its next pass that they are lost


@web.middleware
async def _guard(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Turn errors into one line of text that tells nothing about the inside."""
    try:
        return await handler(request)
    except web.HTTPNotFound:
        return web.Response(status=404, text="not found; / lists the paths that exist\n")
    except web.HTTPMethodNotAllowed as error:
        allowed = ", ".join(sorted(error.allowed_methods))
        text = f"method not allowed; this path takes {allowed}\n"
        return web.Response(status=405, text=text, headers={hdrs.ALLOW: allowed})
    except (web.HTTPException, ConnectionError):
        raise
    except Exception as error:  # noqa: BLE001 - whatever a handler raises, the client gets an answer
        get_logger().error("web handler failed", method=request.method, path=request.path, exc_info=error)
        return web.Response(status=500, text="internal error\n")


async def _add_headers(_request: web.Request, response: web.StreamResponse) -> None:
    for name, value in HEADERS.items():
        response.headers[name] = value


def _explained(error: OSError | UnicodeError, listen_address: str) -> OSError:
    """Return an error that names the address and says what to do."""
    number = error.errno if isinstance(error, OSError) else None
    if number is None or isinstance(error, socket.gaierror):  # a failed look-up's number is of another kind
        reason = getattr(error, "strerror", None) or error
    else:
        reason = os.strerror(number)  # asyncio's sentence repeats the address, as a tuple
    explained = OSError(
        f"can't listen on {listen_address}: {reason}; choose another address or port with --web.listen-address"
    )
    explained.errno = number  # not given to the constructor, which would begin the sentence with it
    return explained


def _shown(host: str) -> str:
    """Return a host as it stands in a URL that can be opened on this machine."""
    if host in {"0.0.0.0", "::"}:  # noqa: S104 - compared, not listened on
        return "localhost"
    return f"[{host}]" if ":" in host else host
