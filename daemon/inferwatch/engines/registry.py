"""The engines that are known, and which of them a page is of."""

from typing import Final

from inferwatch.engines import llamacpp, vllm
from inferwatch.engines.rules import EngineTable
from inferwatch.model import ParsedPage

TABLES: Final = (vllm.TABLE, llamacpp.TABLE)


def recognise(page: ParsedPage) -> EngineTable | None:
    """Return the table of the engine whose series the page has, by their names; None when it is no known one's."""
    names = {series.name for series, _ in page.series} | set(page.types)
    return next((table for table in TABLES if table.recognises(names)), None)


def table_of(name: str) -> EngineTable | None:
    """Return the table of an engine by its name."""
    return next((table for table in TABLES if table.name == name), None)


def known() -> str:
    """Return the known engines and the beginnings of their series, for messages."""
    return ", ".join(f"{table.name} ({table.prefixes[0]}...)" for table in TABLES)
