import asyncio
import contextlib
import gzip
import json
import socket
import threading
import time
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from inferwatch.config import Config
from inferwatch.engines import schema
from inferwatch.errors import ConfigError
from inferwatch.model import Event, Sample
from inferwatch.runtime.blocking import BlockingPool, Lane
from inferwatch.samplers.engine import SAMPLER, EngineOptions, EngineSampler
from inferwatch.spec import PartialData
from support import LIVE, FakeClock, make_context, names, value, values
from support_engine import ENGINES
from support_http import Server, Talk, always, answer, never_answer, serving, trickle

VLLM_PAGE = (ENGINES / "vllm-0.32-mid.prom").read_bytes()
LLAMA_PAGE = (ENGINES / "llamacpp-mid.prom").read_bytes()
STATE = "inferwatch_engine_state"


# Any: fields of EngineConfig and of Context.
def made(
    url: str,
    options: EngineOptions | None = None,
    context: dict[str, Any] | None = None,
    **engine: Any,  # noqa: ANN401 - see above
) -> EngineSampler:
    config = Config.model_validate({"engines": [{"url": url, "target": "t", **engine}]})
    changes: dict[str, Any] = {"config": config, "instance": "t"} | (context or {})
    sampler = SAMPLER.create(make_context(LIVE, options or EngineOptions(), **changes))
    assert isinstance(sampler, EngineSampler)
    return sampler


@contextlib.asynccontextmanager
async def engine(talk: Talk, **settings: Any) -> AsyncIterator[tuple[EngineSampler, Server]]:  # noqa: ANN401 - as for made
    async with serving(talk) as server:
        sampler = made(server.url(), **settings)
        try:
            yield sampler, server
        finally:
            await sampler.close()


async def up(talk: Talk, **settings: Any) -> Sequence[Sample]:  # noqa: ANN401 - as for made
    async with engine(talk, **settings) as (sampler, _):
        return await sampler.sample()


async def failure(talk: Talk, **settings: Any) -> PartialData:  # noqa: ANN401 - as for made
    async with engine(talk, **settings) as (sampler, _):
        with pytest.raises(PartialData) as caught:
            await sampler.sample()
    return caught.value


def state(samples: Sequence[Sample]) -> str:
    found = [labels[2] for labels, number in values(samples, STATE).items() if number == 1]
    assert len(found) == 1
    assert {labels[2] for labels in values(samples, STATE)} == set(schema.STATES)
    (is_up,) = values(samples, "inferwatch_engine_up").values()
    assert (is_up == 1) == (found == ["up"])
    return found[0]


# Up ------------------------------------------------------------------------------------------------------------------


async def test_vllm_page_is_mapped() -> None:
    samples = await up(always(answer(VLLM_PAGE)))

    assert state(samples) == "up"
    assert value(samples, "inferwatch_engine_up", "t", "vllm") == 1
    assert value(samples, "inferwatch_engine_info", "t", "vllm", "tiny", "") == 1
    assert value(samples, "inferwatch_engine_unmapped_series", "t", "vllm") == 0
    assert value(samples, "inferwatch_engine_absent_metrics", "t", "vllm") == 3
    assert value(samples, "inferwatch_engine_requests_running", "t", "vllm", "tiny") == 8
    mapping = ("t", "vllm", "inferwatch_engine_kv_cache_usage_ratio", "vllm:kv_cache_usage_perc")
    assert value(samples, "inferwatch_engine_mapping_info", *mapping) == 1
    assert "inferwatch_engine_time_to_first_token_seconds" in names(samples)
    assert {sample.family for sample in samples} <= set(SAMPLER.families)


async def test_llamacpp_page_is_mapped() -> None:
    samples = await up(always(answer(LLAMA_PAGE)))

    assert value(samples, "inferwatch_engine_up", "t", "llamacpp") == 1
    assert value(samples, "inferwatch_engine_requests_waiting", "t", "llamacpp", "") == 8


async def test_page_that_comes_compressed_is_mapped() -> None:
    data = answer(gzip.compress(VLLM_PAGE), version="HTTP/1.0", headers=("Content-Encoding: gzip",), length=None)

    assert state(await up(always(data))) == "up"


async def test_page_in_openmetrics_form_is_mapped() -> None:
    body = (ENGINES / "vllm.openmetrics").read_bytes()
    head = "HTTP/1.0 200 OK\r\nContent-Type: application/openmetrics-text; version=1.0.0\r\n\r\n"
    samples = await up(always(head.encode() + body))

    assert value(samples, "inferwatch_engine_preemptions_total", "t", "vllm", "tiny") == 7


async def test_kind_can_be_set_and_target_is_host_and_port_by_default() -> None:
    async with serving(always(answer(VLLM_PAGE))) as server:
        config = Config.model_validate({"engines": [{"url": server.url(), "kind": "vllm"}]})
        target = f"127.0.0.1:{server.port}"
        sampler = SAMPLER.create(make_context(LIVE, EngineOptions(), config=config, instance=target))
        samples = await sampler.sample()
        await sampler.close()

    assert value(samples, "inferwatch_engine_up", target, "vllm") == 1


async def test_dropped_samples_are_counted_over_the_scrapes_and_begin_at_zero() -> None:
    page = LLAMA_PAGE.replace(b"predicted_tokens_seconds 170.821", b"predicted_tokens_seconds -nan")
    async with engine(always(answer(page))) as (sampler, _):
        first, second = await sampler.sample(), await sampler.sample()
    dropped = "inferwatch_engine_dropped_samples_total"

    assert [value(samples, dropped, "t", "llamacpp", "not_finite") for samples in (first, second)] == [1, 2]
    assert {labels[2] for labels in values(first, dropped)} == set(schema.DROP_REASONS)
    assert value(first, dropped, "t", "llamacpp", "sentinel") == 0
    json.dumps([sample.value for sample in first], allow_nan=False)


async def test_series_that_can_not_be_true_make_a_problem_of_an_engine_that_is_up() -> None:
    partial = await failure(always(answer(b"vllm:kv_cache_usage_perc 95\nvllm:num_requests_running 1\n")))

    assert state(partial.samples) == "up"
    assert partial.problems.keys() == {"mapping"}
    assert "expected a ratio" in partial.problems["mapping"]
    assert not partial.back_off
    assert value(partial.samples, "inferwatch_engine_requests_running", "t", "vllm", "") == 1


async def test_models_are_capped_by_the_agents_limit() -> None:
    page = "".join(f'vllm:num_requests_running{{model_name="m{number}"}} 1\n' for number in range(50))
    async with serving(always(answer(page.encode()))) as server:
        config = {"agent": {"label_value_limit": 10}, "engines": [{"url": server.url(), "target": "t"}]}
        sampler = made(server.url(), context={"config": Config.model_validate(config)})
        samples = await sampler.sample()
        await sampler.close()

    running = values(samples, "inferwatch_engine_requests_running")
    assert len(running) == 11
    assert running["t", "vllm", "other"] == 40
    assert value(samples, "inferwatch_engine_dropped_samples_total", "t", "vllm", "label_limit") == 40


# Not up --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("status", ["404 Not Found", "501 Not Implemented"])
async def test_metrics_that_are_switched_off_are_disabled_and_not_down_and_the_flag_is_named(status: str) -> None:
    talk = always(answer(b'{"error":{"message":"This server does not support metrics endpoint."}}', status=status))
    unknown, llama = await failure(talk), await failure(talk, kind="llamacpp")

    assert [state(partial.samples) for partial in (unknown, llama)] == ["disabled", "disabled"]
    assert "--metrics" in unknown.problems["disabled"]
    assert "--disable-log-stats" in unknown.problems["disabled"]
    assert llama.problems["disabled"].endswith("metrics are switched off: start llama-server with --metrics")
    assert value(llama.samples, "inferwatch_engine_up", "t", "llamacpp") == 0


async def test_page_without_the_engines_own_series_is_disabled_where_the_engine_is_known() -> None:
    partial = await failure(always(answer(b"process_cpu_seconds_total 5\n")), kind="vllm")

    assert state(partial.samples) == "disabled"
    assert "none of vLLM's own series" in partial.problems["disabled"]


@pytest.mark.parametrize("name", ["python_info", "process_cpu_seconds_total", "http_requests_total"])
async def test_page_with_only_the_clients_and_the_web_servers_series_is_disabled_with_advice(name: str) -> None:
    partial = await failure(always(answer(f"python_gc_total 1\n{name} 5\n".encode())))

    assert state(partial.samples) == "disabled"
    assert partial.problems.keys() == {"disabled"}
    assert "--disable-log-stats" in partial.problems["disabled"]
    assert "--metrics" in partial.problems["disabled"]


async def test_page_with_comments_only_is_of_no_known_engine() -> None:
    partial = await failure(always(answer(b"# nothing here\n")))

    assert state(partial.samples) == "parse_error"
    assert "no series" in partial.problems["parse"]


async def test_page_of_another_engine_than_configured_names_that_engine() -> None:
    partial = await failure(always(answer(VLLM_PAGE)), kind="llamacpp")

    assert state(partial.samples) == "parse_error"
    assert "the page is vLLM's, but kind is 'llamacpp'" in partial.problems["parse"]
    assert partial.problems["parse"].endswith("set kind to 'vllm' or auto")
    assert value(partial.samples, "inferwatch_engine_up", "t", "llamacpp") == 0


async def test_value_that_is_a_word_for_no_number_is_dropped_and_the_engine_stays_up() -> None:
    samples = await up(always(answer(b"vllm:num_requests_running 1\nvllm:kv_cache_usage_perc None\n")))

    assert state(samples) == "up"
    assert value(samples, "inferwatch_engine_requests_running", "t", "vllm", "") == 1
    assert value(samples, "inferwatch_engine_dropped_samples_total", "t", "vllm", "not_finite") == 1
    assert "inferwatch_engine_kv_cache_usage_ratio" not in names(samples)


async def test_text_that_nothing_proves_to_be_cut_is_accepted() -> None:
    """B26: without Content-Length, chunks or OpenMetrics a cut at a line's end can't be told."""
    data = answer(b"vllm:num_requests_running 1\n", length=None, version="HTTP/1.0")

    assert state(await up(always(data))) == "up"


async def test_query_and_password_of_the_address_are_in_no_problem() -> None:
    async with serving(always(answer(b"", status="503 Busy"))) as server:
        sampler = made(server.url("/metrics?key=s3cret"))
        with pytest.raises(PartialData) as caught:
            await sampler.sample()
        await sampler.close()

    assert "s3cret" not in str(caught.value)


@pytest.mark.parametrize(
    ("status", "advice"),
    [("401 Unauthorized", "bearer_token_file"), ("403 Forbidden", "bearer_token_file"), ("503 Busy", "200 expected")],
)
async def test_refused_page_is_down_and_says_what_to_do(status: str, advice: str) -> None:
    partial = await failure(always(answer(b"", status=status)))

    assert state(partial.samples) == "down"
    assert advice in partial.problems["http_status"]
    assert partial.back_off


async def test_engine_that_is_not_there_is_down_and_told_all_the_same() -> None:
    async with serving(always(b"")) as server:
        url = server.url()
    sampler = made(url)
    with pytest.raises(PartialData) as caught:
        await sampler.sample()
    await sampler.close()

    assert state(caught.value.samples) == "down"
    assert caught.value.problems.keys() == {"connect"}
    assert value(caught.value.samples, "inferwatch_engine_up", "t", "unknown") == 0


@pytest.mark.parametrize(
    ("data", "reason", "what"),
    [
        (answer(b"foo_total 12", length=16), "incomplete", "down"),
        (answer(b"foo_total 12", length=None, version="HTTP/1.0"), "parse", "parse_error"),
        (answer(b"<html>\n"), "parse", "parse_error"),
        (answer(b"vllm:num_requests_running 1\nbroken\n"), "parse", "parse_error"),
        (answer(b""), "parse", "parse_error"),
        (answer(b"\x1f\x8b..."), "encoding", "down"),
        (answer(gzip.compress(VLLM_PAGE)[:-9], headers=("Content-Encoding: gzip",)), "incomplete", "down"),
        (answer(gzip.compress(b"a" * 200_000), headers=("Content-Encoding: gzip",)), "too_large", "down"),
        (answer(b"a" * 200_000), "too_large", "down"),
        (answer(b"foo 1\n" * 3 + b"".join(b"a%d 1\n" % number for number in range(200))), "parse", "parse_error"),
    ],
)
async def test_answer_that_is_no_good_page_is_refused_whole(data: bytes, reason: str, what: str) -> None:
    partial = await failure(always(data), options=EngineOptions(max_page_bytes=100_000, max_series=100))

    assert state(partial.samples) == what
    assert partial.problems.keys() == {reason}
    assert "127.0.0.1" in partial.problems[reason]
    assert names(partial.samples) == {family.name for family in (schema.UP, schema.STATE, schema.DROPPED)}


async def test_text_without_a_final_newline_passes_when_its_length_is_proved() -> None:
    assert state(await up(always(answer(b"vllm:num_requests_running 1")))) == "up"


async def test_page_of_no_known_engine_says_what_it_is_and_which_are_known() -> None:
    partial = await failure(always(answer(b"node_load1 0.5\nnode_load5 0.4\n")))

    assert state(partial.samples) == "parse_error"
    assert "node_load1" in partial.problems["parse"]
    assert "vllm (vllm:...), llamacpp (llamacpp:...)" in partial.problems["parse"]


async def test_engine_keeps_its_name_while_it_is_down_and_gets_another_when_it_is_another() -> None:
    data = [answer(VLLM_PAGE), answer(b"", status="503 Busy"), answer(LLAMA_PAGE), answer(b"up 1\n")]

    async def talk(_head: bytes, writer: asyncio.StreamWriter) -> None:
        writer.write(data.pop(0))

    seen = []
    async with engine(talk) as (sampler, _):
        for _ in range(4):
            try:
                samples = await sampler.sample()
            except PartialData as partial:
                samples = partial.samples
            seen += [(labels[1], state(samples)) for labels in values(samples, "inferwatch_engine_up")]

    assert seen == [("vllm", "up"), ("vllm", "down"), ("llamacpp", "up"), ("llamacpp", "disabled")]


async def test_kind_that_does_not_exist_names_those_that_do() -> None:
    with pytest.raises(ConfigError, match="did you mean vllm") as caught:
        made("http://127.0.0.1:1/metrics", kind="vlm")

    assert "auto, vllm, llamacpp" in str(caught.value)


async def test_token_of_the_engine_is_sent(tmp_path: Path) -> None:
    (tmp_path / "token").write_text("s3cret\n")
    async with engine(always(answer(VLLM_PAGE)), bearer_token_file=tmp_path / "token") as (sampler, server):
        await sampler.sample()

    assert b"Authorization: Bearer s3cret" in server.requests[0]


# Declaration ---------------------------------------------------------------------------------------------------------


def test_each_engine_of_the_configuration_is_an_instance_with_its_own_times() -> None:
    engines = [
        {"url": "http://a:1/metrics"},
        {"url": "http://b:2/metrics", "target": "x", "interval_seconds": 9, "timeout_seconds": 2},
    ]
    first, second = SAMPLER.instances(Config.model_validate({"engines": engines}))

    assert (first.key, first.interval_seconds, first.timeout_seconds) == ("a:1", None, None)
    assert (second.key, second.interval_seconds, second.timeout_seconds) == ("x", 9, 2)
    assert first.settings != second.settings


def test_without_an_engine_there_is_nothing_to_do_and_it_says_what_to_add() -> None:
    assert SAMPLER.instances(Config()) == ()
    assert "no [[engines]] configured" in SAMPLER.idle_reason


# Time ----------------------------------------------------------------------------------------------------------------


async def test_ten_engines_of_which_four_hang_are_all_told_within_their_own_limits() -> None:
    release = threading.Event()
    pool = BlockingPool()

    def resolve(host: str, *arguments: Any) -> Any:  # noqa: ANN401 - passed through
        if host == "engine.invalid":
            release.wait(10)
        return socket.getaddrinfo("127.0.0.1", *arguments)

    async def one(server: Server, host: str = "127.0.0.1") -> tuple[str, float]:
        sampler = made(server.url(host=host), context={"timeout_seconds": 2.0, "run_blocking": Lane(pool)})
        sampler._client._resolver._getaddrinfo = resolve
        began = time.monotonic()
        try:
            found = state(await sampler.sample())
        except PartialData as partial:
            found = " ".join([state(partial.samples), *partial.problems])
        finally:
            await sampler.close()
        return found, time.monotonic() - began

    async with serving(always(answer(LLAMA_PAGE))) as good, serving(never_answer) as silent, serving(trickle) as slow:
        bad = [one(silent), one(silent), one(slow), one(good, host="engine.invalid")]
        results = await asyncio.gather(*bad, *(one(good, host="engine.test") for _ in range(6)))
        release.set()
    pool.close()

    assert [found for found, _ in results] == ["down timeout"] * 4 + ["up"] * 6
    assert all(seconds < 2.0 for _, seconds in results)  # before the scheduler's limit, so that what is told is told


async def test_parsing_ends_at_the_runs_limit_and_the_next_run_goes_on() -> None:
    class Hurrying:
        """A clock that runs away while a page is read."""

        def __init__(self) -> None:
            self.now = 0

        def monotonic_ns(self) -> int:
            self.now += 1_500_000_000
            return self.now

        def unix_seconds(self) -> float:
            return 0.0

    body = b"".join(b'vllm:num_requests_running{engine="%d"} 1\n' % number for number in range(1000))
    runs = 0
    async with engine(always(answer(body)), context={"clock": Hurrying()}) as (sampler, _):
        while runs < 20:
            try:
                samples = await sampler.sample()
            except PartialData as partial:
                assert "time ran out" in partial.problems["parse"]  # noqa: PT017 - both ends are looked at
                runs += 1
            else:
                break

    assert 1 <= runs < 10
    assert value(samples, "inferwatch_engine_requests_running", "t", "vllm", "") == 1000


# Events --------------------------------------------------------------------------------------------------------------


async def events_of(pages: Sequence[bytes], clock: FakeClock, seconds: float = 5.0) -> list[Event]:
    """Return the events of scrapes that get one page after the other, so many seconds apart."""
    events: list[Event] = []
    left = list(pages)

    async def talk(_head: bytes, writer: asyncio.StreamWriter) -> None:
        writer.write(left.pop(0))

    async with engine(talk, context={"emit": events.append, "clock": clock}) as (sampler, _):
        for _ in pages:
            with contextlib.suppress(PartialData):
                await sampler.sample()
            clock.advance(seconds)
    return events


VLLM, LLAMA, DOWN = answer(VLLM_PAGE), answer(LLAMA_PAGE), answer(b"", status="503 Busy")


async def test_engine_that_stays_the_same_makes_no_event_also_when_it_was_down() -> None:
    assert await events_of([DOWN, VLLM, VLLM, DOWN, VLLM], FakeClock()) == []


async def test_another_engine_behind_the_same_address_is_an_event() -> None:
    clock = FakeClock()
    began = clock.monotonic_ns()

    (event,) = await events_of([VLLM, DOWN, LLAMA, LLAMA], clock)

    assert (event.kind, event.target) == ("engine_changed", "t")
    assert event.attributes == {"from": "vllm", "to": "llamacpp"}
    assert event.monotonic_ns == began + 10_000_000_000


async def test_engines_that_alternate_behind_one_address_make_one_event_a_minute() -> None:
    events = await events_of([VLLM, LLAMA] * 20, FakeClock())

    assert len(events) == 4  # in 195 s
    assert {one.attributes["to"] for one in events} <= {"vllm", "llamacpp"}


async def test_engines_that_alternate_keep_their_own_totals() -> None:
    page = b'vllm:generation_tokens_total{engine="0"} %d\nvllm:generation_tokens_total{engine="1"} %d\n'
    left = [answer(page % (1000, 500)), LLAMA, answer(page % (1010, 3))]

    async def talk(_head: bytes, writer: asyncio.StreamWriter) -> None:
        writer.write(left.pop(0))

    async with engine(talk) as (sampler, _):
        seen = [await sampler.sample() for _ in range(3)]

    tokens = [values(samples, "inferwatch_engine_generation_tokens_total") for samples in seen]
    assert (tokens[0]["t", "vllm", ""], tokens[2]["t", "vllm", ""]) == (1500, 1513)
