"""Real processes for the end-to-end tests: the agent, Prometheus, and requests to them; each is ended with its test."""

import asyncio
import contextlib
import json
import os
import signal
import socket
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator, Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote

import aiohttp

READY_SECONDS = 30.0
ROOT = Path(__file__).parent.parent


def free_port() -> int:
    """Return a port of the loopback address that nobody listened on a moment ago."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


async def get(url: str, **headers: str) -> tuple[int, Mapping[str, str], str]:
    async with aiohttp.ClientSession() as session, session.get(url, headers=headers) as response:
        return response.status, response.headers, await response.text()


async def wait_until_ready(url: str, process: Process) -> None:
    """Wait for a 200."""
    async with asyncio.timeout(READY_SECONDS):
        while True:
            assert process.returncode is None, f"ended with {process.returncode} before it answered {url}"
            with contextlib.suppress(aiohttp.ClientError):
                if (await get(url))[0] == 200:
                    return
            await asyncio.sleep(0.05)


async def end(process: Process, number: int = signal.SIGTERM) -> int:
    """Signal a process and return its exit status; a process that does not end is killed, and that is an error."""
    if process.returncode is None:
        with contextlib.suppress(ProcessLookupError):
            process.send_signal(number)
    try:
        async with asyncio.timeout(10):
            return await process.wait()
    except TimeoutError:
        process.kill()
        await process.wait()
        raise


@contextlib.asynccontextmanager
async def hung_server() -> AsyncIterator[int]:
    """Run a server that accepts and never answers; yield its port."""
    writers: list[asyncio.StreamWriter] = []

    async def accept(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writers.append(writer)

    server = await asyncio.start_server(accept, "127.0.0.1", 0)
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        server.close()
        for writer in writers:
            writer.close()
            with contextlib.suppress(OSError):
                await writer.wait_closed()


class AgentProcess:
    """An agent in a process of its own."""

    def __init__(self, process: Process, port: int) -> None:
        self.process = process
        self.url = f"http://127.0.0.1:{port}"
        self.port = port

    async def page(self, **headers: str) -> str:
        status, _, text = await get(f"{self.url}/metrics", **headers)
        assert status == 200
        return text

    async def samplers(self) -> dict[str, Any]:
        document = json.loads((await get(f"{self.url}/api/v1/samplers"))[2])
        return {sampler["name"]: sampler for sampler in document["samplers"]}

    async def targets(self) -> dict[str, Any]:
        document = json.loads((await get(f"{self.url}/api/v1/targets"))[2])
        return {target["name"]: target for target in document["targets"]}


async def start_agent(
    *arguments: str, port: int | None = None, log: Path | None = None, before: Sequence[str] = ()
) -> AgentProcess:
    """Start an agent, by the command `before` when given; its log goes to `log`."""
    port = port or free_port()
    with (log or Path(os.devnull)).open("ab") as output:
        process = await asyncio.create_subprocess_exec(
            *before, sys.executable, "-m", "inferwatch", "run", f"--web.listen-address=127.0.0.1:{port}", *arguments,
            stdout=output, stderr=output,
        )  # fmt: skip
    return AgentProcess(process, port)


@contextlib.asynccontextmanager
async def agent(
    *arguments: str,
    port: int | None = None,
    log: Path | None = None,
    before: Sequence[str] = (),
    number: int = signal.SIGTERM,
) -> AsyncIterator[AgentProcess]:
    """Run an agent that is ready, and end it with a signal."""
    running = await start_agent(*arguments, port=port, log=log, before=before)
    try:
        await wait_until_ready(f"{running.url}/-/ready", running.process)
        yield running
    finally:
        await end(running.process, number)


class Prometheus:
    """A real Prometheus server."""

    def __init__(self, url: str) -> None:
        self.url = url

    async def query(self, expression: str) -> list[dict[str, Any]]:
        status, _, text = await get(f"{self.url}/api/v1/query?query={quote(expression)}")
        assert status == 200, text
        result: list[dict[str, Any]] = json.loads(text)["data"]["result"]
        return result

    async def wait_for(self, expression: str) -> list[dict[str, Any]]:
        """Wait until a query has a result and return it."""
        async with asyncio.timeout(READY_SECONDS):
            while not (result := await self.query(expression)):
                await asyncio.sleep(0.1)
            return result


@contextlib.asynccontextmanager
async def prometheus(directory: Path, target: str, interval: str = "1s", job: str = "") -> AsyncIterator[Prometheus]:
    """Run a Prometheus that scrapes one target, with a `scrape_configs` entry for 127.0.0.1:10940 when given."""
    job = (
        job.replace("127.0.0.1:10940", target)
        or f"- {{job_name: inferwatch, static_configs: [{{targets: ['{target}']}}]}}"
    )
    config = directory / "prometheus.yml"
    config.write_text(
        f"global: {{scrape_interval: {interval}, scrape_timeout: {interval}}}\nscrape_configs:\n{job}\n",
        encoding="utf-8",
    )
    port = free_port()
    with (directory / "prometheus.log").open("wb") as output:
        process = await asyncio.create_subprocess_exec(
            "prometheus", f"--config.file={config}", f"--storage.tsdb.path={directory / 'tsdb'}",
            f"--web.listen-address=127.0.0.1:{port}",
            stdout=output, stderr=output,
        )  # fmt: skip
    server = Prometheus(f"http://127.0.0.1:{port}")
    try:
        await wait_until_ready(f"{server.url}/-/ready", process)
        yield server
    finally:
        await end(process)


async def promtool_check_metrics(page: str) -> tuple[int, str]:
    """Return promtool's exit status for a page and all that it said."""
    process = await asyncio.create_subprocess_exec("promtool", "check", "metrics", stdin=PIPE, stdout=PIPE, stderr=PIPE)
    out, err = await process.communicate(page.encode())
    assert process.returncode is not None
    return process.returncode, (out + err).decode()
