import asyncio
import gzip
import socket
import ssl
import threading
import time
import zlib
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from inferwatch.config_engines import TlsConfig
from inferwatch.errors import SourceError
from inferwatch.runtime.blocking import BlockingPool, Lane
from inferwatch.sources.compression import decode
from inferwatch.sources.http import HttpPage, PageClient
from support import run_here
from support_http import Server, Talk, always, answer, endless, never_answer, serving, trickle

PAGE = b"foo_total 12345\n"
TEXT = "text/plain;version=0.0.4"
TLS = Path(__file__).parent.parent / "fixtures" / "tls"


# Any: passed through to PageClient.
async def fetch(url: str, **options: Any) -> HttpPage:  # noqa: ANN401 - see above
    all_options: dict[str, Any] = {"timeout_seconds": 5.0, "run_blocking": run_here} | options
    client = PageClient(url, **all_options)
    try:
        return await client.fetch(TEXT)
    finally:
        await client.close()


async def refusal(talk: Talk, **options: Any) -> SourceError:  # noqa: ANN401 - as for fetch
    async with serving(talk) as server:
        with pytest.raises(SourceError) as caught:
            await fetch(server.url(), **options)
    return caught.value


async def test_page_is_fetched_as_it_was_sent() -> None:
    async with serving(always(answer(PAGE))) as server:
        page = await fetch(server.url())

    assert page == HttpPage(200, "text/plain; version=0.0.4", "", PAGE, length_known=True)
    assert b"Accept: text/plain;version=0.0.4" in server.requests[0]
    assert b"Accept-Encoding: identity" in server.requests[0]
    assert b"Connection: close" in server.requests[0]
    assert b"User-Agent: inferwatch/" in server.requests[0]


async def test_client_can_be_used_again_and_connects_anew_each_time() -> None:
    async with serving(always(answer(PAGE))) as server:
        client = PageClient(server.url(), timeout_seconds=5.0, run_blocking=run_here)
        pages = [await client.fetch(TEXT) for _ in range(3)]
        await client.close()
        pages.append(await client.fetch(TEXT))
        await client.close()

    assert [page.body for page in pages] == [PAGE] * 4


@pytest.mark.parametrize("status", ["404 Not Found", "501 Not Implemented", "503 Service Unavailable"])
async def test_other_statuses_come_without_a_body_for_the_caller_to_judge(status: str) -> None:
    async with serving(always(answer(b"<html>" * 100, status=status))) as server:
        page = await fetch(server.url())

    assert (page.status, page.body) == (int(status[:3]), b"")


# Completeness (B24, B26) ---------------------------------------------------------------------------------------------


async def test_body_shorter_than_its_content_length_is_refused_whole() -> None:
    error = await refusal(always(answer(b"foo_total 12", length=16)))

    assert error.reason == "incomplete"


async def test_chunked_body_without_its_last_chunk_is_refused_whole() -> None:
    head = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"

    error = await refusal(always(head + b"c\r\nfoo_total 12\r\n"))

    assert error.reason == "incomplete"


async def test_chunk_that_is_cut_is_refused_whole() -> None:
    head = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"

    error = await refusal(always(head + b"10\r\nfoo_total 12"))

    assert error.reason == "incomplete"


async def test_complete_chunked_body_has_a_known_length() -> None:
    head = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
    async with serving(always(head + b"4\r\nfoo \r\n2\r\n1\n\r\n0\r\n\r\n")) as server:
        page = await fetch(server.url())

    assert (page.body, page.length_known) == (b"foo 1\n", True)


async def test_body_that_only_the_end_of_the_connection_ends_has_no_known_length() -> None:
    async with serving(always(answer(PAGE, version="HTTP/1.0", length=None))) as server:
        page = await fetch(server.url())

    assert (page.body, page.length_known) == (PAGE, False)


@pytest.mark.parametrize("data", [b"", b"HTTP/1.1 200 OK\r\nContent-Le"])
async def test_connection_that_ends_before_the_answer_is_incomplete(data: bytes) -> None:
    assert (await refusal(always(data))).reason == "incomplete"


@pytest.mark.parametrize("data", [b"SSH-2.0-OpenSSH_9.2\r\n", b"HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\n"])
async def test_what_is_not_http_is_told_as_such(data: bytes) -> None:
    error = await refusal(always(data))

    assert error.reason == "http_status"
    assert "not HTTP" in str(error)


# Size (B25, B32) -----------------------------------------------------------------------------------------------------


async def test_page_with_a_declared_length_above_the_cap_is_not_read() -> None:
    error = await refusal(always(answer(b"", length=200 << 20)), max_bytes=1 << 20)

    assert error.reason == "too_large"


async def test_huge_page_without_a_length_is_aborted_at_the_cap() -> None:
    error = await refusal(endless(b"foo_total 12345\n" * 4096), max_bytes=4 << 20, timeout_seconds=30.0)

    assert error.reason == "too_large"


async def test_compressed_body_has_a_cap_of_its_own() -> None:
    talk = endless(b"\x1f" * 65536, headers="Content-Encoding: gzip\r\n")

    error = await refusal(talk, max_bytes=64 << 20, max_compressed_bytes=1 << 20, timeout_seconds=30.0)

    assert error.reason == "too_large"


async def test_gzip_answer_to_http_1_0_that_nobody_asked_for_is_decoded() -> None:
    data = answer(gzip.compress(PAGE), version="HTTP/1.0", headers=("Content-Encoding: gzip",), length=None)
    async with serving(always(data)) as server:
        page = await fetch(server.url())

    assert decode(page.body, page.content_encoding) == PAGE


async def test_gzip_bomb_arrives_compressed_and_stops_at_the_cap() -> None:
    bomb = zlib.compressobj(9, wbits=31)
    data = bomb.compress(b"\0" * (64 << 20)) + bomb.flush()
    async with serving(always(answer(data, headers=("Content-Encoding: gzip",)))) as server:
        page = await fetch(server.url())

    assert len(page.body) == len(data) < 100_000
    with pytest.raises(SourceError, match="larger than"):
        decode(page.body, page.content_encoding, 1 << 20)


# Time (B31) ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("talk", "doing"), [(never_answer, "waiting for the answer's head"), (trickle, "reading the body")]
)
async def test_silence_and_trickle_end_at_the_total_limit(talk: Talk, doing: str) -> None:
    began = time.monotonic()

    error = await refusal(talk, timeout_seconds=0.3)

    assert error.reason == "timeout"
    assert doing in str(error)
    assert 0.25 < time.monotonic() - began < 2


async def test_endless_head_ends_at_the_total_limit_or_as_no_http() -> None:
    async def talk(_head: bytes, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\n")
        while True:
            writer.write(b"X-Filler: " + b"a" * 4000 + b"\r\n")
            await writer.drain()
            await asyncio.sleep(0.01)

    assert (await refusal(talk, timeout_seconds=0.5)).reason in {"timeout", "http_status"}


async def test_names_that_hang_in_the_resolver_end_at_the_total_limit() -> None:
    release = threading.Event()

    def hang(*_arguments: object) -> list[tuple[Any, ...]]:
        release.wait(10)
        return []

    pool = BlockingPool()
    began = time.monotonic()
    try:
        with pytest.raises(SourceError, match="resolving the name") as caught:
            await fetch("http://engine.invalid/metrics", timeout_seconds=0.3, run_blocking=Lane(pool), getaddrinfo=hang)
    finally:
        release.set()
        pool.close()

    assert caught.value.reason == "timeout"
    assert time.monotonic() - began < 2


async def test_names_are_resolved_by_run_blocking_and_never_by_the_loops_own_threads() -> None:
    asked: list[tuple[str, int]] = []

    def resolve(host: str, port: int, *_rest: object) -> list[tuple[Any, ...]]:
        asked.append((host, port))
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", ("127.0.0.1", port))]

    async with serving(always(answer(PAGE))) as server:
        url = server.url(host="engine.test")
        client = PageClient(url, timeout_seconds=5.0, run_blocking=run_here, getaddrinfo=resolve)
        await client.fetch(TEXT)
        await client.fetch(TEXT)
        await client.close()

    assert asked == [("engine.test", server.port)] * 2  # not cached: an engine may move
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("asyncio_")]


async def test_ten_targets_of_which_four_hang_leave_the_others_on_time() -> None:
    release = threading.Event()
    pool = BlockingPool()

    def hang(*_arguments: object) -> list[tuple[Any, ...]]:
        release.wait(10)
        return []

    async def one(server: Server, host: str = "127.0.0.1", **options: Any) -> tuple[str, float]:  # noqa: ANN401 - as for fetch
        began = time.monotonic()
        try:
            await fetch(server.url(host=host), timeout_seconds=2.0, run_blocking=Lane(pool), **options)
        except SourceError as error:
            return error.reason, time.monotonic() - began
        return "up", time.monotonic() - began

    async with serving(always(answer(PAGE))) as good, serving(never_answer) as silent, serving(trickle) as slow:
        bad = [one(silent), one(silent), one(slow), one(good, host="engine.invalid", getaddrinfo=hang)]
        results = await asyncio.gather(*bad, *(one(good) for _ in range(6)))
        release.set()
    pool.close()

    assert [reason for reason, _ in results] == ["timeout"] * 4 + ["up"] * 6
    assert all(seconds < 3 for _, seconds in results)
    assert all(seconds < 1.8 for reason, seconds in results if reason == "up")


async def test_cancelled_fetch_leaves_no_connection() -> None:
    ended = asyncio.Event()

    async def talk(_head: bytes, _writer: asyncio.StreamWriter) -> None:
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()

    async with serving(talk) as server:
        client = PageClient(server.url(), timeout_seconds=30.0, run_blocking=run_here)
        task = asyncio.create_task(client.fetch(TEXT))
        while not server.requests:
            await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await client.close()

    assert ended.is_set()


# Where it goes -------------------------------------------------------------------------------------------------------


def closed_port() -> int:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port: int = taken.getsockname()[1]
        return port


async def test_nobody_listening_is_connect() -> None:
    with pytest.raises(SourceError) as caught:
        await fetch(f"http://127.0.0.1:{closed_port()}/metrics")

    assert caught.value.reason == "connect"


async def test_name_that_does_not_exist_is_dns() -> None:
    def unknown(*_arguments: object) -> list[tuple[Any, ...]]:
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    with pytest.raises(SourceError, match="Name or service not known") as caught:
        await fetch("http://engine.invalid/metrics", getaddrinfo=unknown)

    assert caught.value.reason == "dns"


def redirecting(target: Callable[[bytes], str], page: bytes = PAGE) -> Talk:
    async def talk(head: bytes, writer: asyncio.StreamWriter) -> None:
        path = head.split(b" ")[1]
        if path == b"/final":
            writer.write(answer(page))
        else:
            writer.write(answer(b"", status="307 Temporary Redirect", headers=(f"Location: {target(path)}",)))

    return talk


async def test_redirect_on_the_same_host_is_followed(tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_text("s3cret\n")
    async with serving(redirecting(lambda _path: "/final")) as server:
        page = await fetch(server.url(), bearer_token_file=token)

    assert page.body == PAGE
    assert [b"Authorization: Bearer s3cret" in head for head in server.requests] == [True, True]


async def test_more_than_three_redirects_are_refused() -> None:
    error = await refusal(redirecting(lambda path: path.decode() + "x"))

    assert error.reason == "redirect"


@pytest.mark.parametrize(
    "target",
    [
        "http://localhost:{port}/final",
        "https://127.0.0.1:{port}/final",
        "//evil.test/",
        "::",
        "http://[::1",
        "//[",
        "http://127.0.0.1:x/",
        "http://127.0.0.1:{port}\\n/",
    ],
)
async def test_redirect_to_another_host_port_or_scheme_is_refused(target: str) -> None:
    port = closed_port()

    error = await refusal(redirecting(lambda _path: target.format(port=port)))

    assert error.reason == "redirect"


async def test_token_never_reaches_another_port_of_the_same_host(tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_text("s3cret")
    async with serving(always(answer(PAGE))) as other:
        error = await refusal(redirecting(lambda _path: other.url("/final")), bearer_token_file=token)

    assert error.reason == "redirect"
    assert other.requests == []
    assert "s3cret" not in str(error)


async def test_environment_proxies_are_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("http_proxy", f"http://127.0.0.1:{closed_port()}")
    monkeypatch.setenv("HTTP_PROXY", f"http://127.0.0.1:{closed_port()}")
    async with serving(always(answer(PAGE))) as server:
        page = await fetch(server.url())

    assert page.body == PAGE


# Token and TLS -------------------------------------------------------------------------------------------------------


async def test_token_is_read_again_at_each_fetch(tmp_path: Path) -> None:
    token = tmp_path / "token"
    async with serving(always(answer(PAGE))) as server:
        client = PageClient(server.url(), timeout_seconds=5.0, run_blocking=run_here, bearer_token_file=token)
        for text in ("  first\n", "second"):
            token.write_text(text)
            await client.fetch(TEXT)
        await client.close()

    assert b"Authorization: Bearer first\r\n" in server.requests[0]
    assert b"Authorization: Bearer second\r\n" in server.requests[1]


@pytest.mark.parametrize(
    "content", [None, b"", b"  \n", b"two words", b"a\r\nX-Evil: 1", b"\xff\xfe", b"s3cret" * 20_000]
)
async def test_unusable_token_is_told_without_its_text(tmp_path: Path, content: bytes | None) -> None:
    token = tmp_path / "token"
    if content is not None:
        token.write_bytes(content)

    error = await refusal(always(answer(PAGE)), bearer_token_file=token)

    assert error.reason == "token"
    assert str(token) in str(error)
    assert not any(word in str(error) for word in ("two words", "X-Evil", "s3cret"))


@pytest.mark.parametrize(
    "url",
    [
        "http://127.0.0.1:{port}/metrics?key=s3cret",
        "http://127.0.0.1:{port}?s3cret",
        "http://user:s3cret@127.0.0.1:{port}/metrics",
        "http://s3cret@127.0.0.1:{port}/metrics",
        "http://a\\n:{port}/m?key=s3cret",
        "http://a..b:{port}/m?key=s3cret",
        "http://[::1/m?key=s3cret",
        "ftp://127.0.0.1/m?key=s3cret",
        "s3cret@",
    ],
)
async def test_query_user_and_password_of_the_address_are_not_told(url: str) -> None:
    with pytest.raises(SourceError) as caught:
        await fetch(url.format(port=closed_port()))

    assert "s3cret" not in str(caught.value)


async def test_location_that_is_no_address_does_not_tell_its_query() -> None:
    error = await refusal(redirecting(lambda _path: "http://[::1/?key=s3cret"))

    assert "s3cret" not in str(error)


@pytest.mark.parametrize(
    "url", ["http://a..b:1/", "http://" + "a" * 64 + ":1/", "http://a\\n:1/", "http://[::1", "", "http://a\u200bb/"]
)
async def test_host_that_can_not_be_one_is_dns(url: str) -> None:
    with pytest.raises(SourceError) as caught:
        await fetch(url)

    assert caught.value.reason == "dns"
    assert "expected" in str(caught.value)


HOSTILE = st.text(alphabet=st.sampled_from("http:/@[]?#%\\.a1-_ \x00\x7f\u200bé\ud800"), max_size=12)


@given(HOSTILE)
@settings(deadline=None)
@example("[]@")
def test_no_address_raises_anything_but_source_error(text: str) -> None:
    def unknown(*_arguments: object) -> list[tuple[Any, ...]]:
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    with pytest.raises(SourceError):
        asyncio.run(fetch(f"http://{text}", timeout_seconds=1.0, getaddrinfo=unknown))


async def test_token_file_that_does_not_answer_is_named(tmp_path: Path) -> None:
    def hang(*_arguments: object) -> Awaitable[Any]:
        return asyncio.Event().wait()

    token = tmp_path / "token"
    with pytest.raises(SourceError) as caught:
        await fetch("http://127.0.0.1:1/", timeout_seconds=0.05, bearer_token_file=token, run_blocking=hang)

    assert caught.value.reason == "timeout"
    assert str(caught.value).endswith(f"gave up while reading bearer_token_file {token}")


def server_tls() -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(TLS / "server.pem", TLS / "server.key")
    return context


@pytest.mark.parametrize(
    "tls",
    [
        TlsConfig(ca_file=TLS / "server.pem", server_name="engine.test"),
        TlsConfig(verify=False),
    ],
    ids=["checked against a CA file and a name", "not checked"],
)
async def test_page_is_fetched_over_tls(tls: TlsConfig) -> None:
    async with serving(always(answer(PAGE)), tls=server_tls()) as server:
        page = await fetch(server.url(), tls=tls)

    assert page.body == PAGE


@pytest.mark.parametrize(
    "tls",
    [
        TlsConfig(),
        TlsConfig(ca_file=TLS / "server.pem", server_name="other.test"),
        TlsConfig(ca_file=Path("/nonexistent/ca.pem")),
        TlsConfig(ca_file=TLS / "server.key"),
    ],
    ids=["unknown CA", "wrong name", "no such file", "no certificate in the file"],
)
async def test_certificate_that_can_not_be_judged_good_is_tls(tls: TlsConfig) -> None:
    async with serving(always(answer(PAGE)), tls=server_tls()) as server:
        with pytest.raises(SourceError) as caught:
            await fetch(server.url(), tls=tls)

    assert caught.value.reason == "tls"
    assert server.requests == []


async def test_ca_file_is_read_again_after_a_tls_failure(tmp_path: Path) -> None:
    ca = tmp_path / "ca.pem"
    ca.write_text("")
    async with serving(always(answer(PAGE)), tls=server_tls()) as server:
        tls = TlsConfig(ca_file=ca, server_name="engine.test")
        client = PageClient(server.url(), timeout_seconds=5.0, run_blocking=run_here, tls=tls)
        with pytest.raises(SourceError, match="tls"):
            await client.fetch(TEXT)
        ca.write_bytes((TLS / "server.pem").read_bytes())
        page = await client.fetch(TEXT)
        await client.close()

    assert page.body == PAGE


async def test_tls_expected_from_a_plain_server_is_tls() -> None:
    async with serving(always(answer(PAGE))) as server:
        with pytest.raises(SourceError) as caught:
            await fetch(f"https://127.0.0.1:{server.port}/metrics", timeout_seconds=2.0)

    assert caught.value.reason in {"tls", "connect", "timeout"}


async def test_error_of_the_thread_goes_through() -> None:
    def stuck(*_arguments: object) -> Awaitable[Any]:
        raise SourceError("an earlier blocking read has not returned", reason="stuck")

    with pytest.raises(SourceError) as caught:
        await fetch("http://engine.invalid/metrics", run_blocking=stuck)

    assert caught.value.reason == "stuck"
