import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Sequence
from contextlib import suppress

import pytest
from structlog.testing import capture_logs

from inferwatch.exposition import Renderer
from inferwatch.model import Snapshot
from inferwatch.web import connection
from inferwatch.web.app import WebServer
from support_web import FakeAgent, connect, exchange, fetch, value_family

SCRAPE = b"GET /metrics HTTP/1.1\r\nHost: a\r\n\r\n"
LARGE = 20_000_000  # more than the kernel buffers for one connection


class Server:
    """A server with a page that does not fit into the kernel's buffers."""

    def __init__(self) -> None:
        self.agent = FakeAgent(enable_reload=True)
        samples = (value_family("large")(1, "x" * LARGE),)
        self.agent.store.publish(Snapshot("large", "", samples, 0, 0.0), Renderer().render(samples), 10**18)
        self.web = WebServer(self.agent)
        self.url = ""

    async def until_gone(self) -> None:
        """Wait until the server has no connection left."""
        async with asyncio.timeout(5):
            while self.web._open:
                await asyncio.sleep(0.005)


@pytest.fixture
async def server() -> AsyncIterator[Server]:
    one = Server()
    one.url = await one.web.start("127.0.0.1:0")
    yield one
    await one.web.close()


async def ask_and_read_nothing(url: str) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """Ask for the large page; the stream's own buffer is full after 128 KiB, and then nothing is read any more."""
    reader, writer = await connect(url)
    writer.write(SCRAPE)
    await reader.readuntil(b"\r\n\r\n")
    return reader, writer


async def test_client_that_does_not_read_is_cut_off(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "WRITE_SECONDS", 0.05)
    with capture_logs() as logs:
        reader, writer = await ask_and_read_nothing(server.url)
        await server.until_gone()
        with pytest.raises((ConnectionResetError, asyncio.IncompleteReadError)):
            await reader.readexactly(LARGE)

    writer.close()
    assert logs == []


async def test_client_that_does_not_read_delays_nobody(server: Server) -> None:
    _, writer = await ask_and_read_nothing(server.url)
    answer = await fetch(server.url, "/-/healthy")

    writer.close()
    assert answer.status == 200


async def test_client_that_leaves_is_not_an_error(server: Server) -> None:
    with capture_logs() as logs:
        _, writer = await ask_and_read_nothing(server.url)
        writer.transport.abort()
        await server.until_gone()

    assert logs == []


HEALTHY = b"GET /-/healthy HTTP/1.1\r\nHost: a\r\n\r\n"


async def is_closed(reader: asyncio.StreamReader) -> bool:
    """Wait for the end: the client sees a reset or the end of the data, whichever is faster."""
    with suppress(ConnectionResetError):
        async with asyncio.timeout(5):
            return await reader.read() == b""
    return True


async def test_connection_over_the_limit_is_closed_when_all_others_have_a_request(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connection, "CONNECTION_LIMIT", 1)
    first, first_writer = await ask_and_read_nothing(server.url)
    second, second_writer = await connect(server.url)

    assert await is_closed(second)
    assert len(await first.readexactly(1000)) == 1000
    first_writer.close()
    second_writer.close()


async def test_oldest_connection_without_a_request_makes_room(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "CONNECTION_LIMIT", 3)
    _, busy = await ask_and_read_nothing(server.url)
    half, half_writer = await connect(server.url)
    half_writer.write(b"GET / HTTP/1.1\r\nHost:")
    answered, answered_writer = await connect(server.url)
    answered_writer.write(HEALTHY)
    await answered.readuntil(b"healthy\n")
    newest, newest_writer = await connect(server.url)
    newest_writer.write(HEALTHY)

    assert await newest.readuntil(b"healthy\n")
    assert await is_closed(half)
    answered_writer.write(HEALTHY)
    assert await answered.readuntil(b"healthy\n")
    for writer in (busy, half_writer, answered_writer, newest_writer):
        writer.close()


async def test_clients_that_send_half_a_request_lock_nobody_out(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connection, "CONNECTION_LIMIT", 20)
    writers = []
    for _ in range(30):
        _, writer = await connect(server.url)
        writer.write(b"GET /metrics HTTP/1.1\r\nHost:")
        writers.append(writer)
    answer = await fetch(server.url, "/-/healthy")

    assert answer.status == 200
    assert len(server.web._open) <= 20
    for writer in writers:
        writer.close()


@pytest.mark.parametrize("sent", [b"", b"GET / HTTP/1.1\r\nHost:"], ids=["nothing", "half"])
async def test_head_that_does_not_come_ends_the_connection(
    server: Server, monkeypatch: pytest.MonkeyPatch, sent: bytes
) -> None:
    monkeypatch.setattr(connection, "HEAD_SECONDS", 0.05)
    reader, writer = await connect(server.url)
    writer.write(sent)

    assert await is_closed(reader)
    writer.close()


async def test_head_that_trickles_ends_at_the_limit_all_the_same(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connection, "HEAD_SECONDS", 0.1)
    reader, writer = await connect(server.url)
    began = time.monotonic()
    while not reader.at_eof() and time.monotonic() - began < 5 and reader.exception() is None:
        writer.write(b"G")
        await asyncio.sleep(0.01)  # the trickle

    assert time.monotonic() - began < 2
    writer.transport.abort()


async def test_half_of_a_second_head_ends_the_connection_and_an_idle_one_stays(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    idle, idle_writer = await connect(server.url)
    half, half_writer = await connect(server.url)
    for reader, writer in ((idle, idle_writer), (half, half_writer)):
        writer.write(HEALTHY)
        await reader.readuntil(b"healthy\n")
    monkeypatch.setattr(connection, "HEAD_SECONDS", 0.05)
    half_writer.write(b"GET /-/heal")

    assert await is_closed(half)
    idle_writer.write(HEALTHY)
    assert await idle.readuntil(b"healthy\n")
    idle_writer.close()
    half_writer.close()


async def test_answer_may_take_longer_than_a_head(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "HEAD_SECONDS", 0.05)
    reader, writer = await ask_and_read_nothing(server.url)
    await asyncio.sleep(0.15)  # the limit is long over

    assert len(await reader.readexactly(LARGE)) == LARGE
    writer.close()


@pytest.mark.parametrize(
    "request_bytes",
    [
        b"\x16\x03\x01\x02\x00\x01\x00\r\n\r\n",
        b"GET / HTTP/9.9.9\r\n\r\n",
        b"GET /" + b"a" * 9000 + b" HTTP/1.1\r\n\r\n",
    ],
    ids=["tls", "version", "long"],
)
async def test_what_is_not_http_gets_one_line(server: Server, request_bytes: bytes) -> None:
    with capture_logs() as logs:
        answer = await exchange(server.url, request_bytes)

    assert (answer.status, answer.body) == (400, b"bad request\n")
    assert answer.headers["server"] == "inferwatch"
    assert logs == []


async def test_large_body_is_not_read(server: Server) -> None:
    head = b"POST /-/reload HTTP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Length: 1000000000\r\n\r\n"
    reader, writer = await connect(server.url)
    writer.write(head)

    assert (await reader.readuntil(b"reloaded\n")).startswith(b"HTTP/1.1 200")
    writer.close()


async def closed_in_seconds(web: WebServer) -> float:
    began = time.monotonic()
    await web.close()
    return time.monotonic() - began


async def test_close_does_not_wait_for_idle_or_stuck_clients(server: Server) -> None:
    idle_reader, idle = await connect(server.url)
    idle.write(b"GET /-/healthy HTTP/1.1\r\nHost: a\r\n\r\n")
    await idle_reader.readuntil(b"healthy\n")
    _, silent = await connect(server.url)
    _, stuck = await ask_and_read_nothing(server.url)
    seconds = await closed_in_seconds(server.web)

    assert seconds < 1.5
    assert not server.web._open
    with pytest.raises(ConnectionRefusedError):
        await connect(server.url)
    for writer in (idle, silent, stuck):
        writer.close()


async def test_close_does_not_wait_for_a_handler_that_hangs(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    started = asyncio.Event()

    async def hang() -> Sequence[str]:
        started.set()
        await asyncio.Event().wait()
        return ()

    def reload() -> Awaitable[Sequence[str]]:
        return hang()

    monkeypatch.setattr(server.agent, "reload", reload)
    _, writer = await connect(server.url)
    writer.write(b"POST /-/reload HTTP/1.1\r\nHost: a\r\n\r\n")
    await started.wait()
    seconds = await closed_in_seconds(server.web)

    assert seconds < 1.5
    writer.close()
