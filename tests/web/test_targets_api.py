import json
from typing import Any

import pytest

from inferwatch.config import Config
from inferwatch.config_engines import EngineConfig
from inferwatch.config_targets import DiscoveryConfig
from inferwatch.model import Event
from inferwatch.targets.model import Endpoint, ProcessId, Target, TargetProcess, TargetTable, Unreachable
from inferwatch.targets.probe import DiscoveredEngine
from inferwatch.targets.probe import Discovery as EnginesFound
from inferwatch.web.targets_view import NO_PORT, NOT_YET, SWITCHED_OFF, metrics_page
from support_targets import process
from support_web import FakeAgent, fetch, serving

NOTHING = EnginesFound((), {})
OPEN = Endpoint("http://127.0.0.1:8000", 8000, front=True)
ELSEWHERE = Endpoint("", 9000, "it listens on another namespace's loopback", Unreachable.LOOPBACK, front=True)
WORKERS_ONLY = Endpoint("http://127.0.0.1:29500", 29500)
HOSTILE = 'a"\\</script>\n\x00\u202e\udc80'


def make(name: str = "vllm-8000", *endpoints: Endpoint) -> Target:
    return Target(name, "vllm", "", (process(7, "api_server"),), endpoints=endpoints)


async def document(agent: FakeAgent) -> Any:  # noqa: ANN401 - JSON can be anything
    async with serving(agent) as url:
        answer = await fetch(url, "/api/v1/targets")
    assert answer.status == 200
    assert answer.headers["content-type"] == "application/json"
    assert answer.headers["cache-control"] == "no-store"
    return json.loads(answer.body)


async def test_target_is_told_with_all_that_is_known() -> None:
    agent = FakeAgent()
    processes = (
        TargetProcess(ProcessId(40, 1234), 1, "python3", "api_server", 7),
        TargetProcess(ProcessId(41, 1300), 40, "VLLM::EngineCor", "engine_core"),
    )
    target = Target(
        "vllm-8000", "vllm", "", processes, container_id="c" * 64, pod_uid="uid", pod="p-0", pod_namespace="ml",
        endpoints=(OPEN, ELSEWHERE),
    )  # fmt: skip
    agent.targets.table = TargetTable((target,), 3, agent.clock.monotonic_ns(), 2, {"targets": 1, "processes": 0})
    agent.engines_found = EnginesFound(
        (DiscoveredEngine("vllm-8000", "http://127.0.0.1:8000/metrics", "vllm", "m/x"),), {}
    )
    agent.clock.advance(4.5)
    page = await document(agent)

    assert page == {
        "age_seconds": 4.5,
        "permission_denied": 2,
        "processes_hidden": False,
        "left_out": {"targets": 1, "processes": 0},
        "last_oom_kill": None,
        "targets": [
            {
                "name": "vllm-8000",
                "engine": "vllm",
                "model": "m/x",
                "processes": [
                    {"pid": 40, "container_pid": 7, "role": "api_server", "comm": "python3", "start_ticks": 1234},
                    {
                        "pid": 41,
                        "container_pid": None,
                        "role": "engine_core",
                        "comm": "VLLM::EngineCor",
                        "start_ticks": 1300,
                    },
                ],
                "endpoints": [
                    {"url": "http://127.0.0.1:8000", "port": 8000, "unreachable_reason": None, "front": True},
                    {
                        "url": None,
                        "port": 9000,
                        "unreachable_reason": "it listens on another namespace's loopback",
                        "front": True,
                    },
                ],
                "container_id": "c" * 64,
                "pod_uid": "uid",
                "pod": "p-0",
                "pod_namespace": "ml",
                "metrics_page": {
                    "url": "http://127.0.0.1:8000/metrics",
                    "engine": "vllm",
                    "found_by": "discovery",
                    "missing_reason": None,
                },
                "last_oom_kill": None,
            }
        ],
    }


async def test_table_that_was_never_read_has_no_age() -> None:
    page = await document(FakeAgent())

    assert page["targets"] == []
    assert page["age_seconds"] is None


async def test_hidden_processes_are_told() -> None:
    agent = FakeAgent()
    agent.targets.table = TargetTable(hidden=True)

    assert (await document(agent))["processes_hidden"] is True


async def test_newest_oom_kill_is_told_with_its_target_and_also_when_that_is_gone() -> None:
    agent = FakeAgent()
    agent.targets.table = TargetTable((make("a"), make("b")), monotonic_ns=1)
    for target, pid in (("a", "1"), ("a", "2"), ("gone", "3")):
        agent.events.put(Event(agent.clock.monotonic_ns(), "oom_kill", target, {"pid": pid}))
        agent.clock.advance(10)
    agent.events.put(Event(agent.clock.monotonic_ns(), "restart", "b"))
    page = await document(agent)

    kills = {target["name"]: target["last_oom_kill"] for target in page["targets"]}
    assert kills == {"a": {"age_seconds": 20.0, "attributes": {"pid": "2"}}, "b": None}
    assert page["last_oom_kill"] == {"target": "gone", "age_seconds": 10.0, "attributes": {"pid": "3"}}


async def test_oom_kill_of_no_target_has_none() -> None:
    agent = FakeAgent()
    agent.events.put(Event(agent.clock.monotonic_ns(), "oom_kill", "", {"source": "vmstat"}))
    page = await document(agent)

    assert page["last_oom_kill"]["target"] is None


async def test_hostile_names_still_make_valid_json() -> None:
    agent = FakeAgent()
    one = TargetProcess(ProcessId(7, 1), 1, HOSTILE, HOSTILE)
    odd = Endpoint(HOSTILE, 1, HOSTILE, front=True)
    target = Target(HOSTILE, HOSTILE, HOSTILE, (one,), container_id=HOSTILE, pod=HOSTILE, endpoints=(odd,))
    agent.targets.table = TargetTable((target,), monotonic_ns=1)
    agent.engines_found = EnginesFound((), {HOSTILE: HOSTILE})
    agent.events.put(Event(1, "oom_kill", HOSTILE, {HOSTILE: HOSTILE}))
    page = await document(agent)

    safe = HOSTILE.replace("\udc80", "\ufffd")
    assert page["targets"][0]["name"] == page["targets"][0]["processes"][0]["comm"] == safe
    assert page["targets"][0]["metrics_page"]["missing_reason"] == safe
    assert page["targets"][0]["last_oom_kill"]["attributes"] == {safe: safe}


@pytest.mark.parametrize(
    "entry",
    [
        EngineConfig(url="http://localhost:8000/page", model="mine"),
        EngineConfig(url="http://example.org/page", target="vllm-8000", kind="vllm", model="mine"),
    ],
)
def test_user_entry_for_the_port_or_the_name_is_its_page(entry: EngineConfig) -> None:
    found = EnginesFound((DiscoveredEngine("vllm-8000", "http://127.0.0.1:8000/metrics", "vllm"),), {})
    page = metrics_page(make("vllm-8000", OPEN), Config(engines=(entry,)), found)

    assert (page.url, page.model, page.found_by) == (entry.url, "mine", "configuration")
    assert page.engine == ("" if entry.kind == "auto" else "vllm")


@pytest.mark.parametrize(
    ("target", "found", "reason"),
    [
        (make("a", OPEN), EnginesFound((), {"a": "HTTP 404"}), "HTTP 404"),
        (make("a", ELSEWHERE), NOTHING, "port 9000: it listens on another namespace's loopback"),
        (make("a", WORKERS_ONLY), NOTHING, NO_PORT),
        (make("a"), NOTHING, NO_PORT),
        (make("a", OPEN), NOTHING, NOT_YET),
    ],
)
def test_missing_page_has_a_reason(target: Target, found: EnginesFound, reason: str) -> None:
    page = metrics_page(target, Config(), found)

    assert (page.url, page.missing_reason) == ("", reason)


def test_search_that_is_switched_off_is_the_reason() -> None:
    config = Config(discovery=DiscoveryConfig(engines="off"))

    assert metrics_page(make("a", OPEN), config, NOTHING).missing_reason == SWITCHED_OFF
