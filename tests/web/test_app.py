import asyncio
import errno
import socket

import pytest
from aiohttp import web
from aiohttp.typedefs import Handler
from structlog.testing import capture_logs

from inferwatch.web.app import WebServer
from support_web import FakeAgent, fetch, serving


def has_ipv6_loopback() -> bool:
    try:
        with socket.socket(socket.AF_INET6) as probe:
            probe.bind(("::1", 0))
    except OSError:
        return False
    return True


async def test_port_zero_gives_a_url_with_the_real_port() -> None:
    async with serving(FakeAgent()) as url:
        assert url.startswith("http://127.0.0.1:")
        assert not url.endswith(":0")


@pytest.mark.parametrize(("address", "shown"), [(":0", "localhost"), ("0.0.0.0:0", "localhost"), ("[::1]:0", "[::1]")])
async def test_url_can_be_opened_on_this_machine(address: str, shown: str) -> None:
    if "[" in address and not has_ipv6_loopback():
        pytest.skip("this host has no IPv6 loopback address")
    server = WebServer(FakeAgent())
    try:
        url = await server.start(address)
        answer = await fetch(url, "/-/healthy")
    finally:
        await server.close()

    assert url.startswith(f"http://{shown}:")
    assert answer.status == 200


async def test_address_in_use_is_named() -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        address = f"127.0.0.1:{other.getsockname()[1]}"
        with pytest.raises(OSError, match=f"^can't listen on {address}: Address already in use; choose ") as caught:
            await WebServer(FakeAgent()).start(address)

    assert caught.value.errno == errno.EADDRINUSE


async def test_host_that_can_not_be_looked_up_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_args: object, **_kwargs: object) -> None:
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    monkeypatch.setattr(socket, "getaddrinfo", fail)
    with pytest.raises(OSError, match=r"^can't listen on no-such-host:1: Name or service not known; "):
        await WebServer(FakeAgent()).start("no-such-host:1")


@pytest.mark.parametrize("address", ["192.0.2.1:1", f"{'a' * 70}.invalid:1"])
async def test_address_that_is_not_ours_is_named(address: str) -> None:
    with pytest.raises(OSError, match=f"^can't listen on {address}: "):
        await WebServer(FakeAgent()).start(address)


async def test_unknown_path_is_not_found_and_not_repeated() -> None:
    async with serving(FakeAgent()) as url:
        answer = await fetch(url, "/<script>")

    assert (answer.status, answer.body) == (404, b"not found; / lists the paths that exist\n")
    assert answer.headers["content-type"] == "text/plain; charset=utf-8"


@pytest.mark.parametrize("path", ["/", "/metrics", "/-/healthy", "/-/ready", "/api/v1/samplers"])
async def test_wrong_method_names_the_right_ones(path: str) -> None:
    async with serving(FakeAgent()) as url:
        answer = await fetch(url, path, method="DELETE")

    assert answer.status == 405
    assert answer.headers["allow"] == "GET, HEAD"
    assert answer.body == b"method not allowed; this path takes GET, HEAD\n"


@pytest.mark.parametrize(("path", "method"), [("/", "GET"), ("/metrics", "GET"), ("/nothing", "GET"), ("/", "POST")])
async def test_every_answer_has_the_protective_headers(path: str, method: str) -> None:
    async with serving(FakeAgent()) as url:
        answer = await fetch(url, path, method=method)

    assert answer.headers["server"] == "inferwatch"
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert answer.headers["x-frame-options"] == "DENY"
    assert answer.headers["referrer-policy"] == "no-referrer"


async def test_unknown_expectation_is_refused_without_telling_versions() -> None:
    async with serving(FakeAgent()) as url:
        answer = await fetch(url, "/metrics", {"Expect": "nonsense"})

    assert answer.status == 417
    assert answer.headers["server"] == "inferwatch"


async def test_error_of_a_handler_is_logged_once_and_not_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_args: object, **_kwargs: object) -> bytes:
        raise RuntimeError("a secret")

    agent = FakeAgent()
    monkeypatch.setattr(agent.store, "page", broken)
    with capture_logs() as logs:
        async with serving(agent) as url:
            answer = await fetch(url, "/metrics")

    assert (answer.status, answer.body) == (500, b"internal error\n")
    assert answer.headers["server"] == "inferwatch"
    assert [(entry["event"], entry["path"]) for entry in logs] == [("web handler failed", "/metrics")]
    assert isinstance(logs[0]["exc_info"], RuntimeError)


async def test_middleware_sees_every_request_and_may_refuse_it() -> None:
    async def refuse(request: web.Request, handler: Handler) -> web.StreamResponse:  # noqa: ARG001 - aiohttp names it
        return web.Response(status=401, text=f"who are you, {request.remote}\n")

    server = WebServer(FakeAgent(), middlewares=[refuse])
    try:
        url = await server.start("127.0.0.1:0")
        answers = await asyncio.gather(*(fetch(url, path) for path in ("/metrics", "/nothing")))
    finally:
        await server.close()

    assert [answer.status for answer in answers] == [401, 401]


async def test_closing_twice_and_without_start_is_harmless() -> None:
    server = WebServer(FakeAgent())
    await server.close()
    await server.start("127.0.0.1:0")
    await server.close()
    await server.close()
