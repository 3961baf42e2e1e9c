"""Finds the metrics pages of targets, so that an engine needs no configuration: by what the pages say, not by port.

Only endpoints for clients are asked (see `Endpoint.front`), one request at a time each; what was found is kept as long
as the process lives, what was not is asked for again less and less often.
"""

import asyncio
import ipaddress
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final
from urllib.parse import urlsplit

from inferwatch.config import EngineConfig
from inferwatch.engines.registry import known
from inferwatch.errors import InferwatchError, SourceError
from inferwatch.sources.http import OK, HttpPage, PageClient
from inferwatch.sources.procfs.net_tcp import Address
from inferwatch.targets.answers import engine_of, model_of
from inferwatch.targets.model import Endpoint, ProcessId, Target, TargetTable
from inferwatch.targets.tracker import Clock

PATHS: Final = ("/metrics", "/prometheus/metrics")
MODELS: Final = "/v1/models"
PAGE_BYTES: Final = 16 << 20
MODELS_BYTES: Final = 1 << 20
TRIES_AT_ONCE: Final = 8
ENDPOINTS_LIMIT: Final = 4  # of one target, the most likely ones
FIRST_WAIT_NS: Final = 5_000_000_000
LONGEST_WAIT_NS: Final = 300_000_000_000
DEFAULT_PORTS: Final = {"http": 80, "https": 443}
LOOPBACK: Final = "loopback"
SWITCHED_OFF: Final = 501  # llama.cpp without --metrics


@dataclass(frozen=True, slots=True)
class DiscoveredEngine:
    """A metrics page that was found.

    Args:
        target: Name of the target.
        url: Address of the page.
        engine: Name of the engine, by the page's series; what `kind` of an `[[engines]]` entry takes.
        model: Model that it serves, empty when it does not tell.
    """

    target: str
    url: str
    engine: str
    model: str = ""

    def config(self) -> EngineConfig:
        """Return the `[[engines]]` entry that a user would have written."""
        return EngineConfig(url=self.url, kind=self.engine, target=self.target, model=self.model or None)


@dataclass(frozen=True, slots=True)
class Discovery:
    """What was found.

    Args:
        engines: The pages, one a target at most, ordered by target.
        problems: Target to a sentence about why no page of it was found.
    """

    engines: tuple[DiscoveredEngine, ...]
    problems: Mapping[str, str]


@dataclass(slots=True)
class _Page:
    """What is known of an endpoint."""

    url: str = ""
    engine: str = ""
    model: str = ""
    problem: str = "not asked yet"
    next_ns: int = 0
    wait_ns: int = FIRST_WAIT_NS
    busy: bool = False


class EngineProbe:
    """Asks endpoints for metrics pages.

    Args:
        clock: Time.
        timeout_seconds: Limit of all that is asked of one endpoint.
        total_seconds: Limit of one `discover`; what has not answered by then is asked again the next time.
    """

    def __init__(self, clock: Clock, *, timeout_seconds: float = 2.0, total_seconds: float = 4.0) -> None:
        self._clock = clock
        self._timeout_seconds = timeout_seconds
        self._total_seconds = total_seconds
        self._pages: dict[tuple[ProcessId, str], _Page] = {}
        self._room = asyncio.Semaphore(TRIES_AT_ONCE)

    async def discover(
        self,
        table: TargetTable,
        configured: Sequence[EngineConfig] = (),
        own_addresses: Collection[Address] = frozenset(),
    ) -> Discovery:
        """Find the pages of all targets that no `[[engines]]` entry stands for.

        Args:
            table: The targets.
            configured: The user's entries. One with a target's name, or with an endpoint's host and port, wins.
            own_addresses: The agent's own addresses, which are as good as `localhost` in a user's entry.
        """
        taken = {place(engine.url, own_addresses) for engine in configured}
        names = {engine.target_name for engine in configured}
        wanted = {
            target.name: [found for found in _candidates(target) if place(found.url, own_addresses) not in taken]
            for target in table.targets
            if target.name not in names and not any(place(e.url, own_addresses) in taken for e in _candidates(target))
        }
        targets = [target for target in table.targets if wanted.get(target.name)]
        keys = {target.name: [(_identity(target), found.url) for found in wanted[target.name]] for target in targets}
        self._pages = {key: self._pages.get(key) or _Page() for each in keys.values() for key in each}
        await self._ask(keys.values())
        return self._collect(keys)

    def _collect(self, keys: Mapping[str, Sequence[tuple[ProcessId, str]]]) -> Discovery:
        engines, problems = [], {}
        for name, each in keys.items():
            pages = [self._pages[key] for key in each]
            found = next((page for page in pages if page.engine), None)
            if found is not None:
                engines.append(DiscoveredEngine(name, found.url, found.engine, found.model))
            else:
                problems[name] = "; ".join(dict.fromkeys(page.problem for page in pages))
        return Discovery(tuple(sorted(engines, key=lambda engine: engine.target)), problems)

    async def _ask(self, groups: Iterable[Sequence[tuple[ProcessId, str]]]) -> None:
        """Ask all targets of which no page is known, side by side."""
        tasks = [asyncio.create_task(self._ask_target(keys)) for keys in groups]
        if not tasks:
            return
        _, late = await asyncio.wait(tasks, timeout=self._total_seconds)
        for task in late:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        for task in tasks:
            if not task.cancelled() and (error := task.exception()) is not None:
                raise error

    async def _ask_target(self, keys: Sequence[tuple[ProcessId, str]]) -> None:
        """Ask a target's endpoints, the most likely first, until one has a page."""
        for key in keys:
            page = self._pages[key]
            if page.engine or page.busy:
                return
            if self._clock.monotonic_ns() < page.next_ns:
                continue
            page.busy = True
            try:
                async with self._room:
                    found = await self._try(page, key[1])
            finally:
                page.busy = False
            if found:
                return

    async def _try(self, page: _Page, base: str) -> bool:
        page.next_ns = self._clock.monotonic_ns() + page.wait_ns
        page.wait_ns = min(page.wait_ns * 2, LONGEST_WAIT_NS)
        page.problem = f"{base}: no answer within {self._timeout_seconds:g} s"
        try:
            async with asyncio.timeout(self._timeout_seconds):
                return await self._find(page, base)
        except TimeoutError:
            return False
        except InferwatchError as error:
            page.problem = str(error)
            return False

    async def _find(self, page: _Page, base: str) -> bool:
        answers = []
        for path in PATHS:
            answer = await self._fetch(base + path, PAGE_BYTES)
            engine = engine_of(answer) if answer.status == OK else ""
            if engine:
                page.model = await self._model(base)
                page.url, page.engine, page.problem = base + path, engine, ""
                return True
            answers.append(answer.status)
        if SWITCHED_OFF in answers:
            page.problem = f"{base}/metrics: switched off (HTTP 501); start the engine with --metrics"
        elif OK in answers:
            page.problem = f"{base}/metrics: of no engine known here: {known()}"
        else:
            page.problem = f"{base}/metrics: HTTP {answers[0]}, no metrics page there"
        return False

    async def _model(self, base: str) -> str:
        try:
            answer = await self._fetch(base + MODELS, MODELS_BYTES)
        except SourceError:
            return ""
        return model_of(answer.body) if answer.status == OK and not answer.content_encoding else ""

    async def _fetch(self, url: str, limit: int) -> HttpPage:
        client = PageClient(
            url,
            timeout_seconds=self._timeout_seconds,
            run_blocking=_no_names,
            max_bytes=limit,
            max_compressed_bytes=limit,
        )
        try:
            return await client.fetch("*/*")
        finally:
            await client.close()


def place(url: str, own_addresses: Collection[Address] = frozenset()) -> tuple[str, int]:
    """Return host and port of an address; the many names of the agent's own host are one."""
    parts = urlsplit(url)
    host = (parts.hostname or "").rstrip(".")
    port = parts.port or DEFAULT_PORTS.get(parts.scheme, 0)
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return (LOOPBACK if host == "localhost" or host.endswith(".localhost") else host), port
    mapped = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
    address = mapped or address
    own = address.is_loopback or address.is_unspecified or address in own_addresses
    return (LOOPBACK if own else str(address)), port


async def _no_names(*_arguments: object, **_options: object) -> None:
    """Stand in for the thread that resolves names: endpoints have none."""
    raise SourceError("an endpoint's address is a number, there is no name to resolve", reason="dns")


def _candidates(target: Target) -> list[Endpoint]:
    return [found for found in target.endpoints if found.front and found.url][:ENDPOINTS_LIMIT]


def _identity(target: Target) -> ProcessId:
    return target.main or target.processes[0].id
