"""Pages of engines, from fixtures or literals, and what becomes of them."""

from pathlib import Path

from inferwatch.engines.mapping import Mapped, Mapper
from inferwatch.engines.registry import recognise
from inferwatch.engines.rules import EngineTable
from inferwatch.model import HistogramValue, ParsedPage, Sample
from inferwatch.sources.openmetrics import PageParser

ENGINES = Path(__file__).parent / "fixtures" / "engines"
TEXT = "text/plain; version=0.0.4"
OPENMETRICS = "application/openmetrics-text; version=1.0.0; charset=utf-8"


def parsed(source: str | bytes, parser: PageParser | None = None) -> ParsedPage:
    """Parse a fixture by its name, or a page."""
    kind = TEXT
    if isinstance(source, str):
        if source.endswith(".openmetrics"):
            kind = OPENMETRICS
        source = (ENGINES / source).read_bytes()
    return (parser or PageParser()).parse(source, kind)


def mapped(source: str | bytes, table: EngineTable | None = None) -> Mapped:
    """Map a fixture by its name, or a page, by the table of the engine that it is of."""
    page = parsed(source)
    table = table or recognise(page)
    assert table is not None
    return Mapper(table, "t").map(page)


class Scrapes:
    """The pages of one engine, one after the other."""

    def __init__(self, table: EngineTable, *, label_value_limit: int = 500) -> None:
        self.parser = PageParser()
        self.mapper = Mapper(table, "t", label_value_limit=label_value_limit)

    def __call__(self, source: str | bytes) -> Mapped:
        return self.mapper.map(parsed(source, self.parser))


def figures(result: Mapped, name: str) -> dict[tuple[str, ...], float]:
    """Return the values of a family by the labels after target and engine; `name` without the prefix."""
    found = {}
    for sample in _of(result, name):
        assert isinstance(sample.value, int | float)
        assert sample.labels[2:] not in found
        found[sample.labels[2:]] = sample.value
    return found


def histograms(result: Mapped, name: str) -> dict[tuple[str, ...], HistogramValue]:
    """Return the histograms of a family by the labels after target and engine."""
    found = {}
    for sample in _of(result, name):
        assert isinstance(sample.value, HistogramValue)
        assert sample.labels[2:] not in found
        found[sample.labels[2:]] = sample.value
    return found


def _of(result: Mapped, name: str) -> list[Sample]:
    return [sample for sample in result.samples if sample.family.name == f"inferwatch_engine_{name}"]
