import zlib
from collections.abc import AsyncIterator

import pytest

from inferwatch.exposition import Format, Renderer
from inferwatch.model import Snapshot
from support_web import Answer, FakeAgent, fetch, serving, value_family

VALUE = value_family("metrics")
PROMETHEUS_2_42 = (
    "application/openmetrics-text;version=1.0.0,application/openmetrics-text;version=0.0.1;q=0.75,"
    "text/plain;version=0.0.4;q=0.5,*/*;q=0.1"
)
PROMETHEUS_3 = (
    "application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.5,"
    "application/openmetrics-text;version=0.0.1;q=0.4,text/plain;version=1.0.0;escaping=allow-utf-8;q=0.3,"
    "text/plain;version=0.0.4;q=0.2,*/*;q=0.1"
)


@pytest.fixture
async def url() -> AsyncIterator[str]:
    agent = FakeAgent()
    samples = (VALUE(1.5, "a"), VALUE(2, "b"))
    agent.store.publish(Snapshot("metrics", "", samples, 0, 0.0), Renderer().render(samples), 10**18)
    async with serving(agent) as address:
        yield address


def check_text(answer: Answer) -> None:
    assert answer.status == 200
    assert answer.headers["content-type"] == Format.TEXT.value
    assert answer.body.endswith(b'inferwatch_metrics_value{name="b"} 2\n')


def check_openmetrics(answer: Answer) -> None:
    assert answer.status == 200
    assert answer.headers["content-type"] == Format.OPENMETRICS.value
    assert answer.body.endswith(b'inferwatch_metrics_value{name="b"} 2\n# EOF\n')


@pytest.mark.parametrize("accept", [PROMETHEUS_2_42, PROMETHEUS_3], ids=["2.42", "3"])
async def test_prometheus_gets_openmetrics(url: str, accept: str) -> None:
    check_openmetrics(await fetch(url, "/metrics", {"Accept": accept}))


@pytest.mark.parametrize(
    "accept",
    ["", "*/*", "text/plain", "text/html,application/xhtml+xml", "application/openmetrics-text;version=1.0.0;q=0"],
)
async def test_other_clients_get_text(url: str, accept: str) -> None:
    check_text(await fetch(url, "/metrics", {"Accept": accept} if accept else {}))


async def test_accept_in_several_lines_counts_as_one_list(url: str) -> None:
    both = {"Accept": "text/plain;q=0.5", "ACCEPT": "application/openmetrics-text;version=1.0.0"}

    check_openmetrics(await fetch(url, "/metrics", both))


async def test_gzip_is_one_member_that_holds_the_same_page(url: str) -> None:
    plain = await fetch(url, "/metrics")
    answer = await fetch(url, "/metrics", {"Accept-Encoding": "gzip"})
    decoder = zlib.decompressobj(31)

    assert answer.headers["content-encoding"] == "gzip"
    assert decoder.decompress(answer.body) == plain.body
    assert decoder.eof
    assert decoder.unused_data == b""


@pytest.mark.parametrize("encoding", ["gzip;q=0", "identity", "deflate, br", "gzip;q=0.0, identity"])
async def test_refused_gzip_is_not_sent(url: str, encoding: str) -> None:
    answer = await fetch(url, "/metrics", {"Accept-Encoding": encoding})

    assert "content-encoding" not in answer.headers
    check_text(answer)


async def test_http_1_0_client_gets_gzip_only_when_it_asks(url: str) -> None:
    silent = await fetch(url, "/metrics", version="1.0")
    asking = await fetch(url, "/metrics", {"Accept-Encoding": "gzip"}, version="1.0")

    check_text(silent)
    assert "content-encoding" not in silent.headers
    assert asking.headers["content-encoding"] == "gzip"


async def test_caches_are_told_what_the_page_depends_on(url: str) -> None:
    answer = await fetch(url, "/metrics")

    assert answer.headers["vary"] == "Accept, Accept-Encoding"
    assert int(answer.headers["content-length"]) == len(answer.body)


async def test_head_has_the_headers_of_get_and_no_body(url: str) -> None:
    get = await fetch(url, "/metrics", {"Accept-Encoding": "gzip", "Accept": PROMETHEUS_3})
    head = await fetch(url, "/metrics", {"Accept-Encoding": "gzip", "Accept": PROMETHEUS_3}, method="HEAD")

    assert head.body == b""
    assert {**head.headers, "date": ""} == {**get.headers, "date": ""}


async def test_name_parameters_are_ignored(url: str) -> None:
    check_text(await fetch(url, "/metrics?name[]=inferwatch_nothing"))
