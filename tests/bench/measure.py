"""What a process costs, read from outside, and how long a scrape of it takes."""

import asyncio
import statistics
import time
from dataclasses import dataclass

import aiohttp
import psutil


@dataclass(frozen=True, slots=True)
class Cost:
    """CPU and memory of a process over a while."""

    cpu_seconds: float
    wall_seconds: float
    rss_bytes: int

    @property
    def cpu_ratio(self) -> float:
        return self.cpu_seconds / self.wall_seconds

    @property
    def cpu_seconds_per_hour(self) -> float:
        return self.cpu_ratio * 3600


@dataclass(frozen=True, slots=True)
class Scrape:
    """Sequential scrapes of one page over one connection."""

    median_seconds: float
    worst_seconds: float
    cpu_seconds: float  # of the server, per scrape
    series: int
    transferred_bytes: int

    @property
    def seconds_per_series(self) -> float:
        return self.median_seconds / self.series


def _cpu(process: psutil.Process) -> float:
    times = process.cpu_times()
    return float(times.user + times.system)


async def costs(pids: list[int], seconds: float, urls: list[str], interval: float) -> list[Cost]:
    """Watch processes side by side for a while, each scraped at an interval as Prometheus does."""
    processes = [psutil.Process(pid) for pid in pids]
    scrapers = [asyncio.create_task(_scrape_for_ever(url, interval)) for url in urls]
    await asyncio.sleep(2 * interval)  # what is done once is not what is measured
    before = [(time.monotonic(), _cpu(process)) for process in processes]
    await asyncio.sleep(seconds)
    after = [(time.monotonic(), _cpu(process)) for process in processes]
    for scraper in scrapers:
        scraper.cancel()
    return [
        Cost(end[1] - begin[1], end[0] - begin[0], process.memory_info().rss)
        for process, begin, end in zip(processes, before, after, strict=True)
    ]


async def _scrape_for_ever(url: str, interval: float) -> None:
    async with aiohttp.ClientSession(headers={"Accept-Encoding": "gzip"}) as session:
        while True:
            async with session.get(url) as response:
                await response.read()
            await asyncio.sleep(interval)


async def scrape(url: str, pid: int, times: int, *, gzip: bool) -> Scrape:
    """Scrape one after the other over one connection that stays open, as Prometheus does."""
    durations = []
    headers = {"Accept-Encoding": "gzip" if gzip else "identity"}
    async with aiohttp.ClientSession(headers=headers, auto_decompress=False) as session:
        for _ in range(5):
            async with session.get(url) as response:
                body = await response.read()
        began_cpu = _cpu(psutil.Process(pid))
        for _ in range(times):
            began = time.perf_counter()
            async with session.get(url) as response:
                body = await response.read()
            durations.append(time.perf_counter() - began)
        cpu = (_cpu(psutil.Process(pid)) - began_cpu) / times
    async with aiohttp.ClientSession() as session, session.get(url) as response:
        series = sum(1 for line in (await response.text()).splitlines() if line and not line.startswith("#"))
    return Scrape(statistics.median(durations), max(durations), cpu, series, len(body))
