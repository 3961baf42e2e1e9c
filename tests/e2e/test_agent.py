"""The agent as a process: signals, reload, and what it prints."""

import asyncio
import json
import os
import re
import signal
import time
from pathlib import Path

import pytest
from aiohttp import web

from support_process import agent, end, free_port, get, hung_server, start_agent, wait_until_ready

FIXTURES = Path(__file__).parent.parent / "fixtures"
HANGUP_NOTED = r"^Sig(?:Ign|Cgt):\t[0-9a-f]{15}[13579bdf]$"  # bit 0 is SIGHUP
RELOADS = 'inferwatch_events_total{kind="reload"}'


def log_lines(log: Path) -> list[dict[str, object]]:
    return [json.loads(line) for line in log.read_text(encoding="utf-8").splitlines() if line.startswith("{")]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
async def test_signal_ends_the_agent_within_two_seconds(number: int) -> None:
    running = await start_agent()
    await wait_until_ready(f"{running.url}/-/ready", running.process)
    began = time.monotonic()

    status = await end(running.process, number)

    assert status == 0
    assert time.monotonic() - began < 2


async def test_signal_ends_the_agent_also_while_an_engine_hangs(tmp_path: Path) -> None:
    config = tmp_path / "config.toml"
    async with hung_server() as port:
        config.write_text(f'[[engines]]\nurl = "http://127.0.0.1:{port}/metrics"\n', encoding="utf-8")
        running = await start_agent(f"--config={config}")
        await wait_until_ready(f"{running.url}/-/healthy", running.process)
        began = time.monotonic()

        status = await end(running.process)

    assert status == 0
    assert time.monotonic() - began < 2


async def test_reload_takes_a_valid_configuration_and_keeps_the_old_one_when_invalid(tmp_path: Path) -> None:
    log = tmp_path / "log"
    config = tmp_path / "config.toml"
    config.write_text("[samplers.pressure]\nenabled = false\n", encoding="utf-8")
    async with agent(f"--config={config}", log=log) as running:

        async def reloads(result: int) -> None:
            async with asyncio.timeout(15):
                while f"inferwatch_config_last_reload_successful {result}\n" not in await running.page():
                    await asyncio.sleep(0.1)

        assert not (await running.samplers())["pressure"]["enabled"]
        config.write_text("[samplers.pressure]\nenabeld = true\n", encoding="utf-8")
        running.process.send_signal(signal.SIGHUP)
        await reloads(0)
        assert not (await running.samplers())["pressure"]["enabled"]

        config.write_text("[samplers.pressure]\nenabled = true\n", encoding="utf-8")
        running.process.send_signal(signal.SIGHUP)
        await reloads(1)
        assert (await running.samplers())["pressure"]["enabled"]
        assert "inferwatch_pressure_stall_seconds_total" in await running.page()

    problems = next(line["problems"] for line in log_lines(log) if "problems" in line)
    assert problems == [f"{config}: samplers.pressure.enabeld: unknown option; did you mean enabled?"]


async def test_hung_engine_delays_nothing_and_the_other_is_mapped(tmp_path: Path) -> None:
    page = (FIXTURES / "engines" / "vllm-0.32-after.prom").read_bytes()

    async def serve(_request: web.Request) -> web.Response:
        return web.Response(body=page, headers={"Content-Type": "text/plain; version=1.0.0"})

    app = web.Application()
    app.router.add_get("/metrics", serve)
    runner = web.AppRunner(app)
    await runner.setup()
    port = free_port()
    await web.TCPSite(runner, "127.0.0.1", port).start()
    config = tmp_path / "config.toml"
    async with hung_server() as hung:
        config.write_text(
            "[agent]\ninterval_seconds = 1\n"
            f'[[engines]]\nurl = "http://127.0.0.1:{hung}/metrics"\ntarget = "hung"\n'
            f'[[engines]]\nurl = "http://127.0.0.1:{port}/metrics"\ntarget = "fine"\n',
            encoding="utf-8",
        )
        async with agent(f"--config={config}") as running:
            first = (await running.samplers())["cpu"]["instances"][0]["runs"]
            await asyncio.sleep(4)
            second = (await running.samplers())["cpu"]["instances"][0]["runs"]
            text = await running.page()
    await runner.cleanup()

    assert second - first >= 3
    assert 'inferwatch_engine_up{target="hung",engine="unknown"} 0' in text
    assert 'inferwatch_engine_up{target="fine",engine="vllm"} 1' in text
    assert 'inferwatch_engine_generation_tokens_total{target="fine",engine="vllm",model="tiny"} 10826' in text


async def test_log_of_a_service_is_json_and_tells_what_is_sampled(tmp_path: Path) -> None:
    log = tmp_path / "log"
    async with agent("--log.format=json", log=log) as running:
        assert (await get(f"{running.url}/"))[0] == 200
        async with asyncio.timeout(15):  # it is ready a moment before it says so
            while "agent ready" not in log.read_text(encoding="utf-8"):
                await asyncio.sleep(0.05)

    lines = log_lines(log)
    ready = next(line for line in lines if line["event"] == "agent ready")
    assert ready["url"] == running.url
    assert "cpu" in str(ready["sampling"])
    assert lines[-1]["event"] == "agent stopping"


async def test_many_hangups_at_once_are_few_reloads() -> None:
    async with agent() as running:
        for _ in range(300):
            running.process.send_signal(signal.SIGHUP)
        await asyncio.sleep(3)
        reloads = ""
        async with asyncio.timeout(15):  # the page tells of an event at the next sample
            while not reloads:
                lines = (await running.page()).splitlines()
                reloads = next((line for line in lines if line.startswith(RELOADS)), "")
                await asyncio.sleep(0.2)

    assert 1 <= int(reloads.split()[-1]) <= 6


async def test_hangup_while_the_agent_starts_is_no_end() -> None:
    running = await start_agent()
    status = Path(f"/proc/{running.process.pid}/status")
    async with asyncio.timeout(15):  # before that it is the interpreter that starts, and a signal its end
        while not re.search(HANGUP_NOTED, status.read_text(), re.MULTILINE):  # noqa: ASYNC240 - procfs does not block
            await asyncio.sleep(0.02)
    for _ in range(10):
        await asyncio.sleep(0.1)
        if running.process.returncode is None:
            running.process.send_signal(signal.SIGHUP)
    await wait_until_ready(f"{running.url}/-/ready", running.process)

    assert await end(running.process) == 0


async def test_configuration_that_became_a_fifo_neither_hangs_a_reload_nor_the_end(tmp_path: Path) -> None:
    config = tmp_path / "config.toml"
    config.write_text("", encoding="utf-8")
    running = await start_agent(f"--config={config}")
    await wait_until_ready(f"{running.url}/-/ready", running.process)
    config.unlink()
    os.mkfifo(config)
    running.process.send_signal(signal.SIGHUP)
    await asyncio.sleep(0.3)
    assert (await get(f"{running.url}/-/healthy"))[0] == 200
    began = time.monotonic()

    status = await end(running.process)

    assert status == 0
    assert time.monotonic() - began < 2


async def test_log_on_a_full_disk_stops_nothing(tmp_path: Path) -> None:
    config = tmp_path / "config.toml"
    config.write_text('[agent]\ninterval_seconds = 0.5\n[[engines]]\nurl = "http://127.0.0.1:9/m"\n', encoding="utf-8")
    async with agent(f"--config={config}", log=Path("/dev/full")) as running:
        first = (await running.samplers())["engine"]["instances"][0]["runs"]
        await asyncio.sleep(3)
        second = (await running.samplers())["engine"]["instances"][0]["runs"]

    assert second > first
