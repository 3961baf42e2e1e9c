"""The agent against a real llama.cpp server: what it says must be what the client counted."""

import asyncio
import os
import re
from asyncio.subprocess import DEVNULL, Process
from collections.abc import AsyncGenerator, AsyncIterator
from pathlib import Path

import pytest

from engines_lab.load import offer, plan, summary
from support_process import agent, end, free_port, get, wait_until_ready

HERE = Path(__file__).parent
LAB = Path(os.environ.get("LAB_DIR", Path.home() / ".cache" / "inferwatch-lab"))
REQUESTS = 40


@pytest.fixture(autouse=True)
async def lab() -> None:
    """Build the lab: a quarter of an hour the first time, then nothing."""
    process = await asyncio.create_subprocess_exec("bash", str(HERE / "setup.sh"))

    assert await process.wait() == 0, f"{HERE / 'setup.sh'} failed; its output is above"


@pytest.fixture
async def server() -> AsyncIterator[tuple[str, Process]]:
    async for running in _serve("--metrics"):
        yield running


async def _serve(*more: str) -> AsyncGenerator[tuple[str, Process]]:
    port = free_port()
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
