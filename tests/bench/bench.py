"""Measures the agent beside its peers in one run and prints ratios; `make bench` runs it.

Nothing here is asserted: timings on a shared machine are for reading. The table goes to standard output and the figures
to build/bench.json.
"""

import argparse
import asyncio
import contextlib
import json
import platform
import sys
import tempfile
import time
from asyncio.subprocess import DEVNULL
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

from prometheus_client.parser import text_string_to_metric_families
from rich.console import Console
from rich.table import Table

from bench.crowd import crowded
from bench.measure import Scrape, costs, scrape
from bench.pages import served, vllm_page
from bench.soak import soak
from bench.tasks import tasks
from inferwatch.engines.mapping import Mapper
from inferwatch.engines.vllm import TABLE
from inferwatch.sources.openmetrics import PageParser
from support_process import AgentProcess, agent, end, free_port, wait_until_ready

INTERVAL = 5.0
MODELS_FOR_5000_SERIES = 21
MODELS_FOR_1_MB = 26
Row = tuple[str, str, str, str]


@contextlib.asynccontextmanager
async def node_exporter() -> AsyncIterator[tuple[int, str]]:
    """Run Debian's node_exporter with its default collectors; yield its pid and URL."""
    port = free_port()
    process = await asyncio.create_subprocess_exec(
        "prometheus-node-exporter", f"--web.listen-address=127.0.0.1:{port}", stdout=DEVNULL, stderr=DEVNULL
    )
    try:
        await wait_until_ready(f"http://127.0.0.1:{port}/metrics", process)
        yield process.pid, f"http://127.0.0.1:{port}/metrics"
    finally:
        await end(process)


async def idle(seconds: float) -> dict[str, Any]:
    """Cost of the agent with its default samplers and no engine, beside node_exporter; both scraped every 5 s."""
    async with agent() as ours, node_exporter() as (pid, url):
        mine, peer = await costs([ours.process.pid, pid], seconds, [f"{ours.url}/metrics", url], INTERVAL)
    return {
        "cpu_ratio": mine.cpu_ratio,
        "rss_bytes": mine.rss_bytes,
        "cpu_seconds_per_hour": mine.cpu_seconds_per_hour,
        "node_exporter_cpu_ratio": peer.cpu_ratio,
        "node_exporter_rss_bytes": peer.rss_bytes,
        "node_exporter_cpu_seconds_per_hour": peer.cpu_seconds_per_hour,
    }


def _figures(one: Scrape) -> dict[str, float]:
    return {
        "median_seconds": one.median_seconds,
        "worst_seconds": one.worst_seconds,
        "server_cpu_seconds": one.cpu_seconds,
        "series": one.series,
        "transferred_bytes": one.transferred_bytes,
    }


async def scraping(directory: Path, seconds: float) -> dict[str, Any]:
    """Scrapes of 5,000 series, alone and with 100 clients at once, beside node_exporter."""
    page = vllm_page(MODELS_FOR_5000_SERIES)
    async with served(page, free_port()) as url:
        config = directory / "config.toml"
        config.write_text(f'[[engines]]\nurl = "{url}"\ntarget = "bench"\n', encoding="utf-8")
        async with agent(f"--config={config}") as ours, node_exporter() as (pid, peer_url):
            result: dict[str, Any] = {
                "text": _figures(await scrape(f"{ours.url}/metrics", ours.process.pid, 300, gzip=False)),
                "gzip": _figures(await scrape(f"{ours.url}/metrics", ours.process.pid, 300, gzip=True)),
                "node_exporter": _figures(await scrape(peer_url, pid, 100, gzip=True)),
            }
            quiet = await _loop_delay(ours, seconds, clients=0)
            loaded = await _loop_delay(ours, seconds, clients=100)
    return result | {"start_delay_quiet_seconds": quiet, "start_delay_100_scrapers_seconds": loaded}


async def _loop_delay(ours: AgentProcess, seconds: float, clients: int) -> float:
    """Return the longest time by which a sampler started too late, as the agent itself says."""
    worst = 0.0
    task = None
    if clients:
        arguments = ("-m", "bench.hammer", f"{ours.url}/metrics", str(clients), str(seconds + INTERVAL))
        task = await asyncio.create_subprocess_exec(sys.executable, *arguments)
    await ours.page()
    began = time.monotonic()
    first = True
    while time.monotonic() - began < seconds:
        await asyncio.sleep(INTERVAL)
        line = next(
            line for line in (await ours.page()).splitlines() if line.startswith("inferwatch_event_loop_delay_seconds ")
        )
        if not first:  # the first reading covers the time before
            worst = max(worst, float(line.split()[-1]))
        first = False
    if task:
        await task.wait()
    return worst


def parsing() -> dict[str, float]:
    """CPU of reading a 1 MB vLLM page: parse and map in steady state, beside the client library's parser."""
    page = vllm_page(MODELS_FOR_1_MB)
    parser, mapper = PageParser(), Mapper(TABLE, "bench")

    def ours() -> None:
        mapper.map(parser.parse(page, "text/plain"))

    def theirs() -> None:
        for family in text_string_to_metric_families(page.decode()):
            _ = family.samples

    first = _cpu_of(ours, 1)
    return {
        "page_bytes": len(page),
        "first_seconds": first,
        "steady_seconds": _cpu_of(ours, 10),
        "prometheus_client_seconds": _cpu_of(theirs, 2),
    }


def _cpu_of(function: Callable[[], None], times: int) -> float:
    began = time.process_time()
    for _ in range(times):
        function()
    return (time.process_time() - began) / times


def rows(report: dict[str, Any]) -> list[Row]:
    """Return the table: what, ours, the peer's, and the ratio of the peer's to ours."""
    cost, scrapes, parse = report["idle"], report["scraping"], report["parsing"]
    text, gzip, peer = scrapes["text"], scrapes["gzip"], scrapes["node_exporter"]
    sizes = f"{gzip['series']} and {peer['series']} series"
    page = f"{parse['page_bytes'] / 1e6:.1f} MB vLLM page"

    def pair(what: str, key: str, scale: float) -> Row:
        return _row(what, cost[key] * scale, cost[f"node_exporter_{key}"] * scale)

    def milliseconds(what: str, ours: float, theirs: float | None = None) -> Row:
        return _row(what, ours * 1e3, None if theirs is None else theirs * 1e3)

    return [
        pair("CPU of one core, default samplers every 5 s (%)", "cpu_ratio", 100),
        pair("CPU seconds an hour, sampling and a scrape every 5 s", "cpu_seconds_per_hour", 1),
        pair("RSS (MB)", "rss_bytes", 1e-6),
        milliseconds(f"scrape, gzip, median (ms): {sizes}", gzip["median_seconds"], peer["median_seconds"]),
        _row(
            "scrape, gzip, median per series (us)",
            gzip["median_seconds"] / gzip["series"] * 1e6,
            peer["median_seconds"] / peer["series"] * 1e6,
        ),
        milliseconds("scrape, plain text, median (ms)", text["median_seconds"]),
        milliseconds("server CPU of one scrape (ms)", gzip["server_cpu_seconds"], peer["server_cpu_seconds"]),
        milliseconds("latest start of a sampler, no scrapers (ms)", scrapes["start_delay_quiet_seconds"]),
        milliseconds("latest start of a sampler, 100 scrapers (ms)", scrapes["start_delay_100_scrapers_seconds"]),
        milliseconds(f"{page}: CPU to parse and map, first time (ms)", parse["first_seconds"]),
        milliseconds(
            f"{page}: the same in steady state; prometheus_client's parser (ms)",
            parse["steady_seconds"],
            parse["prometheus_client_seconds"],
        ),
        *_task_rows(report["tasks"]),
        *_long_rows(report["crowded"], report["soak"]),
    ]


def _task_rows(found: dict[str, Any]) -> list[Row]:
    rows = []
    for shape, text in (("threads_8000", "8,000 threads of one process"), ("processes_1000", "1,000 processes")):
        one = found[shape]
        ours = one["iterator"]["median_seconds"] * 1e3
        for peer in ("psutil", "process_exporter", "proc_files"):
            what = f"{text}: CPU of one reading by the BPF iterator; by {peer} (ms)"
            rows.append(_row(what, ours, one[peer]["median_seconds"] * 1e3))
    return rows


def _long_rows(crowd: dict[str, Any], long: dict[str, Any]) -> list[Row]:
    host = f"{crowd['processes']} idle processes and {crowd['targets']} targets"
    return [
        _row(f"{host}: CPU of one core (%)", crowd["cpu_ratio"] * 100, None),
        _row(f"{host}: RSS (MB)", crowd["rss_bytes"] / 1e6, None),
        _row(
            f"{long['rounds']} rounds of all samplers: growth of RSS (MB)",
            long["growth_after_a_tenth_bytes"] / 1e6,
            None,
        ),
    ]


def _row(what: str, ours: float, peer: float | None) -> Row:
    return what, f"{ours:.3g}", "" if peer is None else f"{peer:.3g}", "" if peer is None else f"{peer / ours:.3g}"


async def main(seconds: float) -> dict[str, Any]:
    """Measure everything, one after the other: two cores are few."""
    with tempfile.TemporaryDirectory() as directory:
        report: dict[str, Any] = {
            "date": time.strftime("%Y-%m-%d"),
            "machine": f"{platform.machine()}, Linux {platform.release()}, Python {platform.python_version()}",
            "parsing": parsing(),
            "idle": await idle(seconds),
            "scraping": await scraping(Path(directory), min(seconds, 20.0)),
            "tasks": tasks(),
            "crowded": await crowded(seconds),
            "soak": await soak(),
        }
    return report


if __name__ == "__main__":
    options = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    options.add_argument("--seconds", type=float, default=60.0, help="length of the idle measurement")
    figures = asyncio.run(main(options.parse_args().seconds))
    table = Table("what", "inferwatch", "peer", "peer / inferwatch", title=f"{figures['date']}, {figures['machine']}")
    for row in rows(figures):
        table.add_row(*row)
    Console(width=140).print(table)
    target = Path("build/bench.json")
    target.parent.mkdir(exist_ok=True)
    target.write_text(json.dumps(figures, indent=1) + "\n", encoding="utf-8")
