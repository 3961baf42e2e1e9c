"""Finds the metrics pages of targets, so that an engine needs no configuration: by what the pages say, not by port.

Only endpoints for clients are asked (see `Endpoint.front`), one request at a time each; what was found is kept as long
as the process lives, what was not is asked for again less and less often.
"""

import asyncio
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from inferwatch.config_engines import EngineConfig
from inferwatch.engines.registry import known
from inferwatch.errors import InferwatchError, SourceError
from inferwatch.sources.http import OK, HttpPage, PageClient
from inferwatch.sources.procfs.net_tcp import Address
from inferwatch.targets.answers import engine_of, model_of
from inferwatch.targets.model import Endpoint, ProcessId, Target, TargetTable
from inferwatch.targets.places import NO_HOSTS, Place, places
from inferwatch.targets.tracker import NO_MODELS, Clock

PATHS: Final = ("/metrics", "/prometheus/metrics")
MODELS: Final = "/v1/models"
PAGE_BYTES: Final = 16 << 20
MODELS_BYTES: Final = 1 << 20
TRIES_AT_ONCE: Final = 8
ENDPOINTS_LIMIT: Final = 4  # of one target, the most likely ones
FIRST_WAIT_NS: Final = 5_000_000_000
LONGEST_WAIT_NS: Final = 300_000_000_000
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
        hosts: Host name in the user's entries to its addresses, as far as they are known.
        models: What tells a target apart (`Target.identity`) to the model that its page's server says it serves.
    """

    engines: tuple[DiscoveredEngine, ...]
    problems: Mapping[str, str]
    hosts: Mapping[str, frozenset[Address]] = field(default_factory=lambda: NO_HOSTS)
    models: Mapping[ProcessId, str] = field(default_factory=lambda: NO_MODELS)


@dataclass(slots=True)
class _Page:
    """What is known of an endpoint."""

    base: str
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
        timeout_seconds: Limit of the search for the page of one endpoint, and of the question for its models.
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
        hosts: Mapping[str, frozenset[Address]] = NO_HOSTS,
        doubtful: Collection[str] = frozenset(),
    ) -> Discovery:
        """Find the pages of all targets that no `[[engines]]` entry stands for.

        Args:
            table: The targets.
            configured: The user's entries. One with a target's name, or with an endpoint's host and port, wins.
            own_addresses: The agent's own addresses, which are as good as `localhost` in a user's entry.
            hosts: Addresses of the hosts that the entries name (see `HostNames`).
            doubtful: Targets whose page was found and can't be read any more: another engine may be there now.
        """
        names = {engine.target_name for engine in configured}
        taken = frozenset[Place]().union(*(places(engine.url, own_addresses, hosts) for engine in configured))
        keys = {
            target.name: [(target.identity, each.url) for each in found]
            for target in table.targets
            if target.name not in names and (found := _candidates(target))
            if not any(places(each.url, own_addresses) & taken for each in found)
        }
        self._pages = {key: self._pages.get(key) or _Page(key[1]) for each in keys.values() for key in each}
        await self._ask((each, name in doubtful) for name, each in keys.items())
        return self._collect(keys, hosts)

    def _collect(
        self, keys: Mapping[str, Sequence[tuple[ProcessId, str]]], hosts: Mapping[str, frozenset[Address]]
    ) -> Discovery:
        engines, problems, models = [], {}, {}
        for name, each in keys.items():
            pages = [self._pages[key] for key in each]
            found = next((page for page in pages if page.engine), None)
            if found is not None:
                engines.append(DiscoveredEngine(name, found.url, found.engine, found.model))
                models[each[0][0]] = found.model
            else:
                problems[name] = "; ".join(dict.fromkeys(page.problem for page in pages))
        return Discovery(tuple(sorted(engines, key=lambda engine: engine.target)), problems, hosts, models)

    async def _ask(self, groups: Iterable[tuple[Sequence[tuple[ProcessId, str]], bool]]) -> None:
        """Ask all targets of which no page is known, or one that is in doubt, side by side."""
        tasks = [asyncio.create_task(self._ask_target(keys, doubted=doubted)) for keys, doubted in groups]
        if not tasks:
            return
        _, late = await asyncio.wait(tasks, timeout=self._total_seconds)
        for task in late:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        for task in tasks:
            if not task.cancelled() and (error := task.exception()) is not None:
                raise error

    async def _ask_target(self, keys: Sequence[tuple[ProcessId, str]], *, doubted: bool) -> None:
        """Ask a target's endpoints, the most likely first, until one has a page; it stays until there is another."""
        pages = sorted((self._pages[key] for key in keys), key=lambda page: not page.engine)
        if pages[0].engine and not doubted:
            pages[0].wait_ns = FIRST_WAIT_NS
            return
        for page in pages:
            if page.busy:
                return
            if self._clock.monotonic_ns() < page.next_ns:
                continue
            page.busy = True
            try:
                async with self._room:
                    if await self._try(page):
                        for other in pages:
                            other.engine = other.engine if other is page else ""
                        # a server that does not tell its models has a page all the same
                        page.model = await self._model(page.base) or page.model
                        return
            finally:
                page.busy = False

    async def _try(self, page: _Page) -> bool:
        page.next_ns = self._clock.monotonic_ns() + page.wait_ns
        page.wait_ns = min(page.wait_ns * 2, LONGEST_WAIT_NS)
        page.problem = f"{page.base}: no answer within {self._timeout_seconds:g} s"
        try:
            async with asyncio.timeout(self._timeout_seconds):
                return await self._find(page, page.base)
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
                if (base + path, engine) != (page.url, page.engine):
                    page.model = ""
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


async def _no_names(*_arguments: object, **_options: object) -> None:
    """Stand in for the thread that resolves names: endpoints have none."""
    raise SourceError("an endpoint's address is a number, there is no name to resolve", reason="dns")


def _candidates(target: Target) -> list[Endpoint]:
    return [found for found in target.endpoints if found.front and found.url][:ENDPOINTS_LIMIT]
