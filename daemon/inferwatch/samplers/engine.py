"""Metrics pages of serving engines (vLLM, llama.cpp), as one set of families; one instance per `[[engines]]` entry."""

from collections import Counter
from collections.abc import Sequence
from difflib import get_close_matches
from typing import Final

from pydantic import Field

from inferwatch.config import Config, SamplerOptions
from inferwatch.config_engines import EngineConfig
from inferwatch.engines import schema
from inferwatch.engines.mapping import Mapped, Mapper
from inferwatch.engines.registry import TABLES, known, recognise, table_of
from inferwatch.engines.rules import EngineTable
from inferwatch.errors import ConfigError, NoData, ParseError, SourceError
from inferwatch.model import Event, ParsedPage, Sample
from inferwatch.samplers._support.engine_process import EngineProcess
from inferwatch.sources.compression import decode
from inferwatch.sources.http import OK, HttpPage, PageClient
from inferwatch.sources.openmetrics import PageParser
from inferwatch.spec import Context, Instance, PartialData, SamplerSpec

# OpenMetrics is not asked for: Python's client sends it for the slightest wish, and it says nothing more that is read.
ACCEPT: Final = "text/plain;version=0.0.4, */*;q=0.1"
FETCH_SHARE: Final = 0.9  # of the run's time limit; the rest is for reading the page and telling what went wrong
READ_SHARE: Final = 0.97
SWITCHED_OFF: Final = frozenset({404, 501})  # llama.cpp answers 501 without --metrics
UNKNOWN: Final = "unknown"
FOREIGN: Final = ("python_", "process_", "http_")  # of the client library and of web frameworks, in any service
NAMES_SHOWN: Final = 3
NS: Final = 1_000_000_000
ENGINE_CHANGED: Final = "engine_changed"
BETWEEN_EVENTS_NS: Final = 60 * NS  # a balancer before two engines changes them at each scrape


class EngineOptions(SamplerOptions):
    """Options of all engines' pages."""

    max_page_bytes: int = Field(
        default=16 << 20, ge=64 << 10, le=1 << 30, strict=True, description="Largest page that is read, decompressed."
    )
    max_series: int = Field(
        default=60_000, ge=100, le=1_000_000, strict=True, description="Most series of a page; more is refused."
    )


class _Unusable(Exception):  # noqa: N818 - it is told as a state, and never leaves this module
    """An answer without a page of metrics."""

    def __init__(self, state: str, reason: str, message: str) -> None:
        super().__init__(message)
        self.state = state
        self.reason = reason


class EngineSampler:
    """Scrapes one engine's page.

    Args:
        context: Its context.
        engine: Its entry in the configuration.
    """

    def __init__(self, context: Context, engine: EngineConfig) -> None:
        options: EngineOptions = context.options
        self._context = context
        self._engine = engine
        self._max_bytes = options.max_page_bytes
        self._process = EngineProcess(context, engine.target_name)
        self._client = PageClient(
            engine.url,
            timeout_seconds=FETCH_SHARE * context.timeout_seconds,
            run_blocking=context.run_blocking,
            bearer_token_file=engine.bearer_token_file,
            tls=engine.tls,
            max_bytes=options.max_page_bytes,
            max_compressed_bytes=options.max_page_bytes,
        )
        self._parser = PageParser(max_series=options.max_series, max_cached_lines=options.max_series)
        self._name = UNKNOWN if engine.kind == "auto" else engine.kind
        self._mapper: Mapper | None = None
        self._mappers: dict[str, Mapper] = {}  # of each engine that was met here: its totals and its admitted labels
        self._noted_name = self._name
        self._quiet_until_ns = 0
        self._dropped: Counter[str] = Counter()

    async def sample(self) -> Sequence[Sample]:
        """Scrape once; what can be told is told also when the engine is down, as partial data."""
        deadline = self._context.clock.monotonic_ns() + int(READ_SHARE * self._context.timeout_seconds * NS)
        try:
            page = await self._client.fetch(ACCEPT)
            self._check(page)
            mapped = await self._context.run_blocking(self._read, page, deadline)
        except _Unusable as error:
            raise self._failed(error.state, error.reason, error) from error
        except SourceError as error:
            excuse = await self._process.excuse(error)
            cause = NoData(f"{error}; {excuse}") if excuse else error
            raise self._failed("down", "no_data" if excuse else error.reason, cause) from error
        except ParseError as error:
            raise self._failed("parse_error", "parse", error) from error
        finally:
            self._note_engine()
        self._process.answered()
        self._dropped.update(mapped.dropped)
        samples = [*self._state("up"), *self._facts(mapped), *mapped.samples]
        if mapped.problems:
            raise PartialData(samples, {"mapping": "; ".join(mapped.problems[:NAMES_SHOWN])})
        return samples

    async def close(self) -> None:
        """Close the connection."""
        await self._client.close()

    def _check(self, page: HttpPage) -> None:
        if page.status in SWITCHED_OFF:
            table = table_of(self._name)
            advice = table.enable if table else "; ".join(f"{table.title}: {table.enable}" for table in TABLES)
            found = f"{self._client.shown}: HTTP {page.status}, no metrics page there"
            message = f"{found}; the path is another, or the metrics are switched off: {advice}"
            raise _Unusable("disabled", "disabled", message)
        if page.status in {401, 403}:
            message = f"{self._client.shown}: HTTP {page.status}, access refused; set bearer_token_file"
            raise _Unusable("down", "http_status", message)
        if page.status != OK:
            raise _Unusable("down", "http_status", f"{self._client.shown}: HTTP {page.status}, 200 expected")

    def _read(self, page: HttpPage, deadline_ns: int) -> Mapped:
        """Decompress, parse and map; runs in the instance's thread."""

        def expired() -> bool:
            return self._context.clock.monotonic_ns() > deadline_ns

        try:
            body = decode(page.body, page.content_encoding, self._max_bytes)
            parsed = self._parser.parse(body, page.content_type, complete=page.length_known, expired=expired)
        except SourceError as error:
            raise SourceError(f"{self._client.shown}: {error}", reason=error.reason) from error
        except ParseError as error:
            raise ParseError(f"{self._client.shown}: {error}") from error
        return self._map(parsed)

    def _map(self, parsed: ParsedPage) -> Mapped:
        mapped = self._mapper.map(parsed) if self._mapper is not None else None
        if mapped is not None and mapped.samples:
            return mapped
        table = recognise(parsed) if self._engine.kind == "auto" else table_of(self._engine.kind)
        if table is not None and (self._mapper is None or self._mapper.table is not table):
            self._name = table.name
            self._mapper = self._mappers.setdefault(table.name, self._new_mapper(table))
            mapped = self._mapper.map(parsed)
        if self._mapper is None or mapped is None:
            if parsed.series and all(series.name.startswith(FOREIGN) for series, _ in parsed.series):
                advice = "; ".join(f"{each.title}: {each.enable}" for each in TABLES)
                message = f"{self._client.shown}: the page has only the process's and the web server's series: {advice}"
                raise _Unusable("disabled", "disabled", message)
            names = ", ".join(dict.fromkeys(series.name for series, _ in parsed.series[:NAMES_SHOWN])) or "no series"
            raise ParseError(f"{self._client.shown}: the page ({names}, ...) is of no engine known here: {known()}")
        if not mapped.samples:
            table = self._mapper.table
            other = recognise(parsed)
            if other is not None and other is not table:
                message = f"{self._client.shown}: the page is {other.title}'s, but kind is {table.name!r}"
                raise ParseError(f"{message}; set kind to {other.name!r} or auto")
            message = f"{self._client.shown}: the page has none of {table.title}'s own series: {table.enable}"
            raise _Unusable("disabled", "disabled", message)
        return mapped

    def _new_mapper(self, table: EngineTable) -> Mapper:
        limit, model = self._context.config.agent.label_value_limit, self._engine.model or ""
        return Mapper(table, self._engine.target_name, label_value_limit=limit, model=model)

    def _note_engine(self) -> None:
        """Tell that another engine answers than before, once a minute at most."""
        before, self._noted_name = self._noted_name, self._name
        now = self._context.clock.monotonic_ns()
        if before in {UNKNOWN, self._name} or now < self._quiet_until_ns:
            return
        self._quiet_until_ns = now + BETWEEN_EVENTS_NS
        change = {"from": before, "to": self._name}
        self._context.emit(Event(now, ENGINE_CHANGED, self._engine.target_name, change))

    def _failed(self, state: str, reason: str, error: Exception) -> PartialData:
        return PartialData(self._state(state), {reason: str(error)}, back_off=True)

    def _state(self, current: str) -> list[Sample]:
        """Return what is told in every state."""
        labels = (self._engine.target_name, self._name)
        return [
            schema.UP(float(current == "up"), *labels),
            *(schema.STATE(float(state == current), *labels, state) for state in schema.STATES),
            *(schema.DROPPED(self._dropped[reason], *labels, reason) for reason in schema.DROP_REASONS),
        ]

    def _facts(self, mapped: Mapped) -> list[Sample]:
        labels = (self._engine.target_name, self._name)
        return [
            *(schema.INFO(1.0, *labels, model, "") for model in mapped.models),
            schema.UNMAPPED(mapped.unmapped, *labels),
            schema.ABSENT(mapped.absent, *labels),
            *(schema.MAPPING(1.0, *labels, metric, upstream) for metric, upstream in mapped.used),
        ]


def create(context: Context) -> EngineSampler:
    """Make the sampler of one `[[engines]]` entry.

    Raises:
        ConfigError: When its `kind` is no engine that is known.
    """
    engine = next(engine for engine in context.config.engines if engine.target_name == context.instance)
    names = ["auto", *(table.name for table in TABLES)]
    if engine.kind not in names:
        close = get_close_matches(engine.kind, names, n=1)
        hint = f"; did you mean {close[0]}?" if close else ""
        message = f"engines ({engine.target_name}): kind {engine.kind!r} is none of {', '.join(names)}{hint}"
        raise ConfigError([message])
    return EngineSampler(context, engine)


def instances(config: Config) -> Sequence[Instance]:
    """Return one instance per `[[engines]]` entry."""
    return tuple(
        Instance(engine.target_name, engine.interval_seconds, engine.timeout_seconds, settings=engine)
        for engine in config.engines
    )


SAMPLER: Final = SamplerSpec(
    name="engine",
    dimension="tokens",
    summary="What serving engines say of themselves: requests, tokens, latencies, KV cache and prefix cache.",
    source="the engines' metrics pages, over HTTP",
    families=schema.FAMILIES,
    create=create,
    options=EngineOptions,
    instances=instances,
    idle_reason='no [[engines]] configured; add one, for example [[engines]] url = "http://127.0.0.1:8000/metrics"',
    back_off_limit_seconds=30.0,
)
