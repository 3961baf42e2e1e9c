"""An agent for the web server that does nothing by itself, and an HTTP client that shows every byte."""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import cache
from urllib.parse import urlsplit

from inferwatch.config import Config, SamplerOptions, WebConfig
from inferwatch.configfile import LoadedConfig
from inferwatch.model import Family, Kind, Sample
from inferwatch.runtime.blocking import BlockingPool, Lane
from inferwatch.runtime.events import EventRing
from inferwatch.runtime.scheduler import Scheduler
from inferwatch.runtime.store import Store
from inferwatch.runtime.unit import Unit
from inferwatch.samplers import Discovery
from inferwatch.sources.hostfs import HostFs
from inferwatch.sources.procfs.net_tcp import Address
from inferwatch.spec import Context, Instance, SamplerSpec
from inferwatch.targets.model import TargetTable
from inferwatch.targets.probe import Discovery as EnginesFound
from inferwatch.web.app import WebServer
from support import FakeClock

LIMIT_SECONDS = 10.0  # of a test that hangs; reached only when something is broken


class FakeTracker:
    """Shows the table that a test sets."""

    own_addresses: frozenset[Address] = frozenset()

    def __init__(self) -> None:
        self.table = TargetTable()

    def current(self) -> TargetTable:
        return self.table


class FakeAgent:
    """Runs the samplers given; `reload` answers what a test sets."""

    def __init__(
        self,
        specs: Iterable[SamplerSpec] = (),
        *,
        disabled: Iterable[str] = (),
        problems: tuple[str, ...] = (),
        enable_reload: bool = False,
    ) -> None:
        self.clock = FakeClock()
        self.discovery = Discovery({spec.name: spec for spec in specs}, problems)
        options = {name: SamplerOptions(enabled=name not in set(disabled)) for name in self.discovery.specs}
        self.loaded = LoadedConfig(Config(web=WebConfig(enable_reload=enable_reload)), options)
        self.store = Store(self.clock.monotonic_ns)
        self.events = EventRing(10)
        self.scheduler = Scheduler(self.store, self.events, self.clock)
        self.targets = FakeTracker()
        self.engines_found = EnginesFound((), {})
        self.reload_problems: Sequence[str] = ()
        self.reloads = 0

    async def reload(self) -> Sequence[str]:
        self.reloads += 1
        return self.reload_problems

    async def run(self, *, first_round: bool = True) -> None:
        """Start the samplers that are enabled, and wait for their first runs."""
        enabled = [spec for spec in self.discovery.specs.values() if self.loaded.options[spec.name].enabled]
        units = [self._unit(spec, instance) for spec in enabled for instance in spec.instances(self.loaded.config)]
        await self.scheduler.replace(units)
        if first_round:
            await self.scheduler.first_round_done.wait()

    def _unit(self, spec: SamplerSpec, instance: Instance) -> Unit:
        paths, lane = self.loaded.config.agent.paths, Lane(BlockingPool())
        hostfs = HostFs(paths.procfs, paths.sysfs, paths.rootfs)
        context = Context(
            config=self.loaded.config,
            options=self.loaded.options[spec.name],
            paths=paths,
            hostfs=hostfs,
            clock=self.clock,
            run_blocking=lane,
            emit=self.events.put,
            interval_seconds=5.0,
            timeout_seconds=4.0,
            instance=instance.key,
        )
        return Unit(spec, instance, context, lane)


class ScriptedSampler:
    """Returns samples, raises, or waits for an event that never comes."""

    def __init__(self, result: Sequence[Sample] | Exception | None) -> None:
        self._result = result

    async def sample(self) -> Sequence[Sample]:
        if self._result is None:
            await asyncio.Event().wait()
        if isinstance(self._result, Exception):
            raise self._result
        return self._result or ()

    async def close(self) -> None:
        """Nothing is held."""


@cache  # families are compared by identity
@cache
def value_family(sampler: str) -> Family:
    return Family(f"inferwatch_{sampler}_value", "A value of a test.", Kind.GAUGE, labels=("name",))


def web_spec(
    name: str,
    result: Sequence[Sample] | Exception | None = (),
    *,
    keys: Sequence[str] = ("",),
    idle_reason: str = "",
    summary: str = "A test.",
) -> SamplerSpec:
    """Return a sampler with one instance per key; a `result` of None makes runs that do not end."""
    instances: Callable[[Config], Sequence[Instance]] = lambda _config: [Instance(key) for key in keys]  # noqa: E731 - it has to be a value with a type
    return SamplerSpec(
        name,
        "cpu",
        summary,
        "nowhere",
        (value_family("x"),) if result else (),
        lambda _context: ScriptedSampler(result),
        instances=instances,
        idle_reason=idle_reason,
    )


@asynccontextmanager
async def serving(agent: FakeAgent) -> AsyncIterator[str]:
    """Serve on a free port; yields the URL."""
    web = WebServer(agent)
    try:
        async with asyncio.timeout(LIMIT_SECONDS):
            yield await web.start("127.0.0.1:0")
    finally:
        await asyncio.gather(web.close(), agent.scheduler.close())


@dataclass(frozen=True, slots=True)
class Answer:
    """A response as it came over the wire; header names in lower case."""

    status: int
    headers: Mapping[str, str]
    body: bytes


async def fetch(
    url: str, target: str, headers: Mapping[str, str] | None = None, *, method: str = "GET", version: str = "1.1"
) -> Answer:
    """Make one request on a connection of its own."""
    given = {"Host": urlsplit(url).netloc, "Connection": "close"} | dict(headers or {})
    lines = [f"{method} {target} HTTP/{version}", *(f"{name}: {text}" for name, text in given.items())]
    return await exchange(url, ("\r\n".join(lines) + "\r\n\r\n").encode())


async def exchange(url: str, request: bytes) -> Answer:
    """Send bytes and read until the server closes."""
    reader, writer = await connect(url)
    writer.write(request)
    try:
        head, _, body = (await reader.read()).partition(b"\r\n\r\n")
    finally:
        writer.close()
        await writer.wait_closed()
    status, *lines = head.decode().split("\r\n")
    pairs = [line.split(": ", 1) for line in lines]
    assert len({name.lower() for name, _ in pairs}) == len(pairs), f"a header stands twice: {lines}"
    return Answer(int(status.split()[1]), {name.lower(): text for name, text in pairs}, body)


async def connect(url: str) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    parts = urlsplit(url)
    return await asyncio.open_connection(parts.hostname, parts.port)
