"""The agent against a real llama.cpp server: what it says must be what the client counted."""

import asyncio
import json
import os
import re
import sys
import time
from asyncio.subprocess import DEVNULL, PIPE, Process
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from pathlib import Path

import pytest

from engines_lab.load import offer, plan, summary
from support_process import AgentProcess, agent, end, free_port, get, wait_until_ready

HERE = Path(__file__).parent
LAB = Path(os.environ.get("LAB_DIR", Path.home() / ".cache" / "inferwatch-lab"))
REQUESTS = 40
COMPLETE = {
    "inferwatch_engine_up",
    "inferwatch_target_cpu_seconds_total",
    "inferwatch_target_memory_bytes",
}
INTERVAL_SECONDS = 5.0  # the default: the tests below run the agent without any configuration


@pytest.fixture(autouse=True)
async def lab() -> None:
    """Build the lab: a quarter of an hour the first time, then nothing."""
    process = await asyncio.create_subprocess_exec("bash", str(HERE / "setup.sh"))

    assert await process.wait() == 0, f"{HERE / 'setup.sh'} failed; its output is above"


@pytest.fixture
async def server() -> AsyncIterator[tuple[str, Process]]:
    async for running in _serve("--metrics"):
        yield running


async def _serve(*more: str, port: int | None = None) -> AsyncGenerator[tuple[str, Process]]:
    port = port or free_port()
    process = await asyncio.create_subprocess_exec(
        str(LAB / "llamacpp-build" / "bin" / "llama-server"),
        *("-m", str(LAB / "tiny.gguf"), "--alias", "tiny", "--host", "127.0.0.1", "--port", str(port)),
        *("--slots", "-np", "4", "-c", "8192", "-t", "1", "-tb", "1", "--no-webui", "--jinja", *more),
        stdout=DEVNULL,
        stderr=DEVNULL,
    )
    try:
        await wait_until_ready(f"http://127.0.0.1:{port}/health", process)
        yield f"http://127.0.0.1:{port}", process
    finally:
        await end(process)


def configured(tmp_path: Path, url: str) -> str:
    config = tmp_path / "config.toml"
    config.write_text(
        f'[agent]\ninterval_seconds = 1\n[[engines]]\nurl = "{url}/metrics"\ntarget = "lab"\n', encoding="utf-8"
    )
    return f"--config={config}"


def value(page: str, name: str) -> float:
    found = re.findall(rf"^{name}\{{[^}}]*\}} (\S+)$", page, re.MULTILINE)
    assert len(found) == 1, f"{name}: {found}"
    return float(found[0])


async def test_counters_are_what_the_client_counted(server: tuple[str, Process], tmp_path: Path) -> None:
    url, _ = server
    async with agent(configured(tmp_path, url)) as running:
        report = summary(await offer(url, plan(REQUESTS, seed=1), concurrency=6))
        await asyncio.sleep(2.5)  # two scrapes later the agent has seen the last request
        page = await running.page()

    assert report["errors"] == []
    assert report["completed"] == REQUESTS
    assert value(page, "inferwatch_engine_up") == 1
    # llama.cpp counts a prompt's tokens without those it took from its cache; the schema counts them, for every engine
    assert value(page, "inferwatch_engine_prompt_tokens_total") == report["prompt_tokens"]
    assert value(page, "inferwatch_engine_prefix_cache_hits_total") == report["cached_tokens"]
    assert value(page, "inferwatch_engine_generation_tokens_total") == report["completion_tokens"]
    assert value(page, "inferwatch_engine_requests_running") == 0
    assert value(page, "inferwatch_engine_requests_waiting") == 0


async def test_running_and_waiting_requests_show_while_they_are(server: tuple[str, Process], tmp_path: Path) -> None:
    url, _ = server
    async with agent(configured(tmp_path, url)) as running:
        load = asyncio.create_task(offer(url, plan(120, seed=2), concurrency=12))
        seen: list[tuple[float, float]] = []
        while not load.done():
            await asyncio.sleep(0.5)
            page = await running.page()
            names = ("inferwatch_engine_requests_running", "inferwatch_engine_requests_waiting")
            seen.append((value(page, names[0]), value(page, names[1])))
        await load

    assert max(busy for busy, _ in seen) == 4  # -np 4: four slots
    assert max(waiting for _, waiting in seen) >= 1


async def test_engine_that_dies_is_down_and_one_that_returns_is_up(tmp_path: Path) -> None:
    serving = _serve("--metrics")
    url, process = await anext(serving)
    async with agent(configured(tmp_path, url)) as running:

        async def becomes(up: int) -> None:
            async with asyncio.timeout(15):
                while value(await running.page(), "inferwatch_engine_up") != up:
                    await asyncio.sleep(0.2)

        await becomes(1)
        process.kill()
        await process.wait()
        await becomes(0)
    await serving.aclose()


async def test_engine_without_its_metrics_flag_is_disabled_and_not_down(tmp_path: Path) -> None:
    async for url, _ in _serve():
        status, _, _ = await get(f"{url}/metrics")
        async with agent(configured(tmp_path, url)) as running:
            page = await running.page()
            problems = (await running.samplers())["engine"]["instances"][0]["problems"]

    assert status == 501
    assert re.search(r'^inferwatch_engine_state\{[^}]*state="disabled"\} 1$', page, re.MULTILINE)
    assert "--metrics" in " ".join(problems.values())


def of_target(page: str, target: str) -> dict[str, float]:
    """Return a target's series without that label, for example `name{role="server"}`, with their values."""
    lines = re.findall(rf'^(\w+)\{{target="{target}",?(.*)\}} (\S+)$', page, re.MULTILINE)
    return {f"{name}{{{labels}}}": float(number) for name, labels, number in lines}


async def wait_for(running: AgentProcess, target: str, holds: Callable[[dict[str, float]], bool]) -> dict[str, float]:
    """Wait until something holds for a target's series, for three intervals at most, and return them."""
    async with asyncio.timeout(3 * INTERVAL_SECONDS):
        while not holds(series := of_target(await running.page(), target)):
            await asyncio.sleep(0.1)
    return series


def complete(series: dict[str, float]) -> bool:
    """Return whether the samplers of targets and the engine's have run."""
    return families(series) >= COMPLETE


def families(series: dict[str, float]) -> set[str]:
    return {name.partition("{")[0] for name in series}


async def test_server_is_found_attributed_and_scraped_without_any_configuration(server: tuple[str, Process]) -> None:
    url, process = server
    target = f"llamacpp-{url.rpartition(':')[2]}"
    async with agent() as running:
        await wait_for(running, target, complete)
        report = summary(await offer(url, plan(REQUESTS, seed=3), concurrency=6))
        tokens = 'inferwatch_engine_generation_tokens_total{engine="llamacpp",model="tiny"}'
        series = await wait_for(running, target, lambda found: found.get(tokens) == report["completion_tokens"])
        found = (await running.targets())[target]
        listing = await asyncio.create_subprocess_exec(sys.executable, "-m", "inferwatch", "targets", stdout=PIPE)
        listed = (await listing.communicate())[0].decode()

    assert (found["engine"], found["model"]) == ("llamacpp", "tiny")
    assert [(one["pid"], one["role"]) for one in found["processes"]] == [(process.pid, "server")]
    assert [one["url"] for one in found["endpoints"]] == [url]
    assert found["metrics_page"] == {
        "url": f"{url}/metrics",
        "engine": "llamacpp",
        "found_by": "discovery",
        "missing_reason": None,
    }
    assert series['inferwatch_target_run_queue_wait_seconds_total{role="server"}'] >= 0
    assert series['inferwatch_target_context_switches_total{role="server",kind="voluntary"}'] > 0
    for kind in ("anonymous", "file", "shared", "swap"):
        assert f'inferwatch_target_memory_bytes{{role="server",kind="{kind}"}}' in series
    assert series['inferwatch_target_threads{role="server"}'] > 1
    line = next(line for line in listed.splitlines() if line.startswith(target))
    assert line.split() == [
        target, "llamacpp", "tiny", "server×1", str(process.pid), url, line.split()[6], f"{url}/metrics",  # noqa: RUF001 - times
    ]  # fmt: skip


async def test_killed_server_leaves_the_page(server: tuple[str, Process]) -> None:
    url, process = server
    target = f"llamacpp-{url.rpartition(':')[2]}"
    async with agent() as running:
        await wait_for(running, target, complete)
        process.kill()
        await process.wait()
        began = time.monotonic()
        await wait_for(running, target, lambda found: "inferwatch_target_info" not in families(found))
        own = time.monotonic() - began
        await wait_for(running, target, lambda found: not found)
        whole = time.monotonic() - began

    assert own < 1.2 * INTERVAL_SECONDS  # the next sample of the targets
    assert whole < 3 * INTERVAL_SECONDS


async def test_server_that_is_started_again_is_a_restart_and_no_counter_falls() -> None:
    port = free_port()
    target = f"llamacpp-{port}"
    first, second = _serve("--metrics", port=port), _serve("--metrics", port=port)
    try:
        _, process = await anext(first)
        async with agent() as running:
            before = await wait_for(running, target, complete)
            await just_looked(running)
            process.kill()
            await process.wait()
            await anext(second)
            after = await wait_for(
                running, target, lambda found: found.get("inferwatch_target_restarts_total{}") == 1 and complete(found)
            )
    finally:
        await first.aclose()
        await second.aclose()

    counters = [name for name in before if name.partition("{")[0].endswith("_total") and "_engine_" not in name]
    assert len(counters) > 10
    assert {name: after[name] for name in counters if after[name] < before[name]} == {}


async def just_looked(running: AgentProcess) -> None:
    """Wait until the agent has looked for targets, so that a restart falls between two looks."""
    async with asyncio.timeout(3 * INTERVAL_SECONDS):
        while json.loads((await get(f"{running.url}/api/v1/targets"))[2])["age_seconds"] > 0.5:
            await asyncio.sleep(0.1)
