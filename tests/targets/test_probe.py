import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Callable
from ipaddress import ip_address

import pytest
from aiohttp import web
from hypothesis import given
from hypothesis import strategies as st

from inferwatch.config_engines import EngineConfig
from inferwatch.sources.http import HttpPage
from inferwatch.targets.answers import engine_of, model_of
from inferwatch.targets.model import Endpoint, ProcessId, Target, TargetProcess, TargetTable
from inferwatch.targets.probe import EngineProbe
from support import FakeClock

VLLM = '# TYPE vllm:num_requests_running gauge\nvllm:num_requests_running{model_name="m"} 1\n'
LLAMA = "llamacpp:prompt_tokens_total 5\n"
MODELS = json.dumps({"data": [{"id": "served/model"}, {"id": "lora"}]})


class Server:
    """An engine whose answers the test sets; path to (status, body), any other path is 404."""

    def __init__(self) -> None:
        self.answers: dict[str, tuple[int, str]] = {}
        self.asked: list[str] = []
        self.slow: set[str] = set()  # the only paths that hang, if there are any
        self.hang = asyncio.Event()
        self.hang.set()
        self.url = ""
        self.port = 0

    async def answer(self, request: web.Request) -> web.Response:
        self.asked.append(request.path)
        if not self.slow or request.path in self.slow:
            await self.hang.wait()
        status, body = self.answers.get(request.path, (404, "not here"))
        headers = {"Location": body} if status == 302 else None
        return web.Response(status=status, text=body, headers=headers)


@contextlib.asynccontextmanager
async def serving() -> AsyncIterator[Server]:
    server = Server()
    application = web.Application()
    application.router.add_route("*", "/{path:.*}", server.answer)
    runner = web.AppRunner(application, access_log=None, shutdown_timeout=0.1)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    server.port = runner.addresses[0][1]
    server.url = f"http://127.0.0.1:{server.port}"
    try:
        yield server
    finally:
        server.hang.set()
        await runner.cleanup()


@pytest.fixture
async def server() -> AsyncIterator[Server]:
    async with serving() as running:
        yield running


def table(*targets: Target) -> TargetTable:
    return TargetTable(targets)


def target(*urls: str, name: str = "vllm-1", pid: int = 1, front: bool = True) -> Target:
    endpoints = tuple(Endpoint(url, int(url.rpartition(":")[2]), front=front) for url in urls)
    identity = ProcessId(pid, 1)
    return Target(name, "vllm", "", (TargetProcess(identity, 0, "x", "main"),), endpoints=endpoints, main=identity)


def probe(clock: FakeClock | None = None, *, total: float = 4.0) -> EngineProbe:
    return EngineProbe(clock or FakeClock(), timeout_seconds=0.3, total_seconds=total)


async def test_a_page_is_found_with_engine_and_model(server: Server) -> None:
    server.answers = {"/metrics": (200, VLLM), "/v1/models": (200, MODELS)}

    (found,) = (await probe().discover(table(target(server.url)))).engines
    assert (found.target, found.url, found.engine, found.model) == (
        "vllm-1", f"{server.url}/metrics", "vllm", "served/model",
    )  # fmt: skip
    assert found.config() == EngineConfig(url=found.url, kind="vllm", target="vllm-1", model="served/model")


async def test_the_page_tells_the_engine_not_the_port_or_the_process(server: Server) -> None:
    server.answers = {"/prometheus/metrics": (200, LLAMA), "/metrics": (200, "<html>python_info 1\n</html>")}

    (found,) = (await probe().discover(table(target(server.url)))).engines
    assert (found.url, found.engine, found.model) == (f"{server.url}/prometheus/metrics", "llamacpp", "")


async def test_what_was_found_is_not_asked_for_again_until_the_process_is_another(server: Server) -> None:
    server.answers = {"/metrics": (200, VLLM)}
    looking = probe()
    await looking.discover(table(target(server.url)))
    asked = len(server.asked)
    assert len((await looking.discover(table(target(server.url)))).engines) == 1
    assert len(server.asked) == asked

    assert len((await looking.discover(table(target(server.url, pid=2)))).engines) == 1
    assert len(server.asked) == 2 * asked


async def test_an_engine_that_starts_is_asked_again_later_and_later(server: Server) -> None:
    clock = FakeClock()
    looking = probe(clock)
    server.answers = {"/metrics": (503, "starting")}
    asked_at = []
    for second in range(0, 80, 5):
        before = len(server.asked)
        found = await looking.discover(table(target(server.url)))
        asked_at += [second] * (len(server.asked) > before)
        clock.advance(5)
    assert asked_at == [0, 5, 15, 35, 75]
    assert found.problems == {"vllm-1": f"{server.url}/metrics: HTTP 503, no metrics page there"}

    server.answers = {"/metrics": (200, VLLM)}
    clock.advance(300)
    assert len((await looking.discover(table(target(server.url)))).engines) == 1


async def test_nobody_listens() -> None:
    found = await probe().discover(table(target("http://127.0.0.1:1")))

    assert "can't connect" in found.problems["vllm-1"]


async def test_metrics_that_are_switched_off_are_told_as_such(server: Server) -> None:
    server.answers = {"/metrics": (501, "off")}

    found = await probe().discover(table(target(server.url)))
    assert "switched off (HTTP 501); start the engine with --metrics" in found.problems["vllm-1"]


async def test_a_page_of_no_known_engine_says_so(server: Server) -> None:
    server.answers = {"/metrics": (200, "python_info 1\n")}

    found = await probe().discover(table(target(server.url)))
    assert "of no engine known here" in found.problems["vllm-1"]


async def test_one_that_hangs_delays_nobody_beyond_the_limit(server: Server) -> None:
    async with serving() as other:
        server.hang.clear()
        other.answers = {"/metrics": (200, VLLM)}
        async with asyncio.timeout(3):
            found = await probe().discover(table(target(server.url), target(other.url, name="vllm-2", pid=2)))

    assert [engine.target for engine in found.engines] == ["vllm-2"]
    assert "no answer within" in found.problems["vllm-1"] or "no complete answer" in found.problems["vllm-1"]


async def test_a_server_that_does_not_tell_its_models_in_time_has_a_page_all_the_same(server: Server) -> None:
    server.answers = {"/metrics": (200, VLLM)}
    server.slow.add("/v1/models")
    server.hang.clear()
    async with asyncio.timeout(5):
        (found,) = (await probe().discover(table(target(server.url)))).engines

    assert (found.engine, found.model) == ("vllm", "")


async def test_the_whole_search_has_a_limit_too(server: Server) -> None:
    server.hang.clear()
    async with asyncio.timeout(0.25):
        found = await probe(total=0.05).discover(table(target(server.url)))

    assert found.engines == ()


async def test_an_endpoint_is_asked_once_at_a_time(server: Server) -> None:
    server.answers = {"/metrics": (200, VLLM), "/v1/models": (200, MODELS)}
    server.hang.clear()
    looking = probe()
    searches = asyncio.gather(*(looking.discover(table(target(server.url))) for _ in range(3)))
    async with asyncio.timeout(2):
        while not server.asked:
            await asyncio.sleep(0.01)
    server.hang.set()
    await searches

    assert server.asked == ["/metrics", "/v1/models"]


async def test_workers_and_unreachable_endpoints_are_never_asked(server: Server) -> None:
    inner = Target(
        "x", "vllm", "", (TargetProcess(ProcessId(3, 1), 0, "x", "main"),), endpoints=(Endpoint("", 1, "why"),)
    )
    found = await probe().discover(table(target(server.url, front=False), inner))

    assert (server.asked, found.engines, dict(found.problems)) == ([], (), {})


async def test_the_next_endpoint_is_asked_when_the_first_has_no_page(server: Server) -> None:
    server.answers = {"/metrics": (200, LLAMA)}
    async with serving() as other:
        (found,) = (await probe().discover(table(target(other.url, server.url)))).engines

    assert found.url == f"{server.url}/metrics"


async def test_a_redirect_to_another_host_is_not_followed(server: Server) -> None:
    server.answers = {"/metrics": (302, "http://192.0.2.77/metrics")}

    found = await probe().discover(table(target(server.url)))
    assert "redirect to other host refused" in found.problems["vllm-1"]


@pytest.mark.parametrize(
    "entry",
    [
        lambda port: EngineConfig(url=f"http://127.0.0.1:{port}/metrics"),
        lambda port: EngineConfig(url=f"http://localhost:{port}/other"),
        lambda port: EngineConfig(url=f"http://[::1]:{port}/metrics", kind="vllm"),
        lambda port: EngineConfig(url=f"http://[::ffff:127.0.0.1]:{port}/metrics"),
        lambda port: EngineConfig(url=f"http://192.0.2.2:{port}/metrics"),
        lambda _port: EngineConfig(url="http://elsewhere:1/metrics", target="vllm-1"),
    ],
)
async def test_a_users_entry_wins(server: Server, entry: Callable[[int], EngineConfig]) -> None:
    found = await probe().discover(
        table(target(server.url)), [entry(server.port)], frozenset({ip_address("192.0.2.2")})
    )

    assert (server.asked, found.engines, dict(found.problems)) == ([], (), {})


async def test_a_users_entry_of_another_port_or_host_does_not(server: Server) -> None:
    server.answers = {"/metrics": (200, VLLM)}
    entries = [EngineConfig(url="http://127.0.0.1:1/"), EngineConfig(url=f"http://192.0.2.9:{server.port}/")]

    assert len((await probe().discover(table(target(server.url)), entries)).engines) == 1


@pytest.mark.parametrize(("address", "wins"), [("127.0.1.1", True), ("192.0.2.2", True), ("192.0.2.3", False)])
async def test_a_users_entry_with_a_hosts_name_wins_where_that_is_the_agents_host(
    server: Server, address: str, *, wins: bool
) -> None:
    server.answers = {"/metrics": (200, VLLM)}
    entries = [EngineConfig(url=f"http://node7:{server.port}/metrics")]
    own, hosts = frozenset({ip_address("192.0.2.2")}), {"node7": frozenset({ip_address(address)})}

    assert (await probe().discover(table(target(server.url)), entries, own, hosts)).engines == () or not wins
    assert (server.asked == []) is wins


async def test_a_page_that_became_another_engines_is_recognised_when_it_can_no_longer_be_read(server: Server) -> None:
    clock = FakeClock()
    looking, there = probe(clock), table(target(server.url))
    server.answers = {"/metrics": (200, VLLM), "/v1/models": (200, MODELS)}
    await looking.discover(there)
    server.answers = {"/metrics": (200, LLAMA)}
    clock.advance(60)
    (before,) = (await looking.discover(there)).engines
    assert (before.engine, before.model) == ("vllm", "served/model")

    (found,) = (await looking.discover(there, doubtful={"vllm-1"})).engines
    assert (found.engine, found.model) == ("llamacpp", "")


async def test_a_page_in_doubt_stays_while_nothing_else_is_there_and_is_asked_less_and_less(server: Server) -> None:
    clock = FakeClock()
    looking, there = probe(clock), table(target(server.url))
    server.answers = {"/metrics": (200, VLLM), "/v1/models": (200, MODELS)}
    (first,) = (await looking.discover(there)).engines
    server.answers = {"/metrics": (503, "stopping")}
    asked_at = []
    for second in range(5, 80, 5):
        clock.advance(5)
        before = len(server.asked)
        assert (await looking.discover(there, doubtful={"vllm-1"})).engines == (first,)
        asked_at += [second] * (len(server.asked) > before)
    assert asked_at == [5, 15, 35, 75]

    await looking.discover(there)  # it can be read again
    server.answers = {"/metrics": (200, LLAMA)}
    clock.advance(300)
    (found,) = (await looking.discover(there, doubtful={"vllm-1"})).engines
    assert found.engine == "llamacpp"


async def test_a_page_in_doubt_gives_way_to_one_at_another_port(server: Server) -> None:
    clock = FakeClock()
    looking = probe(clock)
    async with serving() as other:
        there = table(target(server.url, other.url))
        server.answers = {"/metrics": (200, VLLM)}
        await looking.discover(there)
        server.answers, other.answers = {}, {"/metrics": (200, LLAMA)}
        clock.advance(60)
        (found,) = (await looking.discover(there, doubtful={"vllm-1"})).engines

        assert (found.url, found.engine) == (f"{other.url}/metrics", "llamacpp")


@given(st.binary(max_size=200), st.sampled_from(["", "gzip", "deflate", "br"]))
def test_no_answer_raises(body: bytes, encoding: str) -> None:
    assert engine_of(HttpPage(200, "text/plain", encoding, body)) in {"", "vllm", "llamacpp"}
    assert model_of(body).isprintable()


@pytest.mark.parametrize(
    "body", ["[]", "{}", "[1]", '{"data": 1}', '{"data": []}', '{"data": [1]}', '{"data": [{"id": 1}]}', "[" * 9999]
)
def test_other_answers_name_no_model(body: str) -> None:
    assert model_of(body.encode()) == ""
