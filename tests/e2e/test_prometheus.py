"""A real Prometheus scrapes a running agent."""

import asyncio
import re
import signal
from pathlib import Path

import pytest
from aiohttp import web

from inferwatch.exposition import Format, accepts_gzip, choose_format
from support_process import (
    agent,
    end,
    free_port,
    prometheus,
    promtool_check_metrics,
    start_agent,
    wait_until_ready,
)

pytestmark = pytest.mark.real("prometheus")


def value_on(page: str, series: str) -> float:
    found = re.search(rf"^{re.escape(series)} (\S+)$", page, re.MULTILINE)
    assert found, f"{series} is not on the page"
    return float(found.group(1))


async def test_queries_return_what_the_agent_printed(tmp_path: Path) -> None:
    constant = ["inferwatch_memory_total_bytes", "inferwatch_boot_time_seconds"]
    rising = ['inferwatch_cpu_seconds_total{numa_node="0",mode="idle"}', "inferwatch_context_switches_total"]
    async with agent() as running, prometheus(tmp_path, f"127.0.0.1:{running.port}") as server:
        before = await running.page()
        await server.wait_for("inferwatch_memory_total_bytes")
        scraped = {series: float((await server.query(series))[0]["value"][1]) for series in constant + rising}
        after = await running.page()
        up = await server.query("up")
        names = await server.query('count({__name__=~"inferwatch_.+"})')

    assert up[0]["value"][1] == "1"
    assert {series: scraped[series] for series in constant} == {s: value_on(before, s) for s in constant}
    for series in rising:
        assert value_on(before, series) <= scraped[series] <= value_on(after, series)
    lines = [line for line in after.splitlines() if not line.startswith("#")]
    assert int(names[0]["value"][1]) == pytest.approx(len(lines), abs=5)  # a series may have come since


async def test_help_type_and_unit_reach_prometheus(tmp_path: Path) -> None:
    async with agent() as running, prometheus(tmp_path, f"127.0.0.1:{running.port}") as server:
        await server.wait_for("inferwatch_memory_total_bytes")
        metadata = await server.query("inferwatch_build_info")

    assert metadata[0]["metric"]["version"]


async def test_killed_agent_that_is_restarted_leaves_no_gap_beyond_one_scrape(tmp_path: Path) -> None:
    port = free_port()
    first = await start_agent(port=port)
    await wait_until_ready(f"{first.url}/-/ready", first.process)
    async with prometheus(tmp_path, f"127.0.0.1:{port}", interval="3s") as server:
        await server.wait_for("up == 1")
        await end(first.process, signal.SIGKILL)
        async with agent(port=port):
            before = len((await server.query("up[10m]"))[0]["values"])
            async with asyncio.timeout(30):
                while len(values := (await server.query("up[10m]"))[0]["values"]) < before + 3:
                    await asyncio.sleep(0.2)

    ups = [value for _, value in values]
    assert ups.count("0") <= 1
    assert ups[-1] == "1"


async def test_what_prometheus_sends_gets_openmetrics_and_gzip(tmp_path: Path) -> None:
    seen: asyncio.Future[tuple[str, str]] = asyncio.get_running_loop().create_future()

    async def record(request: web.Request) -> web.Response:
        if not seen.done():
            seen.set_result((request.headers["Accept"], request.headers["Accept-Encoding"]))
        return web.Response(text="up_test 1\n")

    app = web.Application()
    app.router.add_get("/metrics", record)
    runner = web.AppRunner(app)
    await runner.setup()
    port = free_port()
    await web.TCPSite(runner, "127.0.0.1", port).start()
    async with prometheus(tmp_path, f"127.0.0.1:{port}"), asyncio.timeout(30):
        accept, encoding = await seen
    await runner.cleanup()

    assert choose_format(accept) is Format.OPENMETRICS
    assert accepts_gzip(encoding)


@pytest.mark.real("promtool")
@pytest.mark.parametrize("accept", ["text/plain", "application/openmetrics-text;version=1.0.0"])
async def test_page_of_a_live_run_passes_promtool(accept: str) -> None:
    async with agent() as running:
        page = await running.page(Accept=accept)
    if accept.startswith("application"):
        assert page.endswith("# EOF\n")
        return

    assert await promtool_check_metrics(page) == (0, "")
