"""Servers that misbehave: they speak raw bytes on loopback, and everything is closed at the end."""

import asyncio
import contextlib
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field

Talk = Callable[[bytes, asyncio.StreamWriter], Awaitable[None]]


@dataclass
class Server:
    """A running server: its port, and the heads of the requests it got."""

    port: int
    requests: list[bytes] = field(default_factory=list)
    scheme: str = "http"

    def url(self, path: str = "/metrics", host: str = "127.0.0.1") -> str:
        return f"{self.scheme}://{host}:{self.port}{path}"


@contextlib.asynccontextmanager
async def serving(talk: Talk, tls: ssl.SSLContext | None = None) -> AsyncIterator[Server]:
    """Serve on a free port; `talk` is handed the request's head and writes what it likes, then the connection ends."""
    open_writers: set[asyncio.StreamWriter] = set()
    tasks: set[asyncio.Task[None]] = set()

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        tasks.add(task)
        open_writers.add(writer)
        try:
            head = await reader.readuntil(b"\r\n\r\n")
            server.requests.append(head)
            await talk(head, writer)
            await writer.drain()
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            tasks.discard(task)
            open_writers.discard(writer)
            writer.close()
            with contextlib.suppress(ConnectionError, ssl.SSLError):
                await writer.wait_closed()

    listener = await asyncio.start_server(handle, "127.0.0.1", 0, ssl=tls)
    server = Server(listener.sockets[0].getsockname()[1], scheme="https" if tls else "http")
    try:
        yield server
    finally:
        listener.close()
        for task in tuple(tasks):
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await listener.wait_closed()


def answer(
    body: bytes,
    *,
    status: str = "200 OK",
    headers: tuple[str, ...] = (),
    version: str = "HTTP/1.1",
    length: int | None = -1,
) -> bytes:
    """Return an answer's bytes; `length` is the Content-Length, the true one by default, None for no such header."""
    lines = [f"{version} {status}", "Content-Type: text/plain; version=0.0.4", *headers]
    if length is not None:
        lines.append(f"Content-Length: {len(body) if length < 0 else length}")
    return "\r\n".join([*lines, "", ""]).encode() + body


def always(data: bytes) -> Talk:
    """Answer the same to everything."""

    async def talk(_head: bytes, writer: asyncio.StreamWriter) -> None:
        writer.write(data)

    return talk


async def never_answer(_head: bytes, _writer: asyncio.StreamWriter) -> None:
    """Accept, read the request, and say nothing."""
    await asyncio.Event().wait()


async def trickle(_head: bytes, writer: asyncio.StreamWriter) -> None:
    """Send a byte every twentieth of a second, so that no single read ever waits long."""
    writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n")
    while True:
        writer.write(b"a")
        await writer.drain()
        await asyncio.sleep(0.05)


def endless(chunk: bytes, headers: str = "") -> Talk:
    """Send the same bytes for ever, in HTTP/1.0 manner without a length."""

    async def talk(_head: bytes, writer: asyncio.StreamWriter) -> None:
        writer.write(f"HTTP/1.0 200 OK\r\nContent-Type: text/plain\r\n{headers}\r\n".encode())
        while True:
            writer.write(chunk)
            await writer.drain()

    return talk
