"""Markdown: tables, and the parts of a page that are generated."""

from collections.abc import Iterable, Sequence

from inferwatch.model import Family
from inferwatch.render.options import Section


class MarkerError(Exception):
    """A page does not have the markers between which its generated part belongs."""


def table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table; a pipe or line break in a cell is made harmless."""
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join("| " + " | ".join(map(_cell, cells)) + " |" for cells in lines)


def fill(text: str, name: str, body: str, path: str) -> str:
    """Return a page with `body` between its markers `<!-- name:begin -->` and `<!-- name:end -->`.

    Raises:
        MarkerError: When the pair is not there exactly once, in this order.
    """
    begin, end = f"<!-- {name}:begin -->", f"<!-- {name}:end -->"
    head, found_begin, rest = text.partition(begin)
    _, found_end, tail = rest.partition(end)
    if not found_begin or not found_end or text.count(begin) != 1 or text.count(end) != 1:
        raise MarkerError(f"{path}: expected {begin} and, after it, {end}, each once; put them where the table belongs")
    return f"{head}{begin}\n\n{body}\n\n{end}{tail}"


def metrics_table(families: Iterable[Family]) -> str:
    """Return the table of families, ordered by name."""
    rows = (
        (code(family.name), family.kind.value, family.unit, ", ".join(map(code, family.labels)), family.help)
        for family in sorted(families, key=lambda family: family.name)
    )
    return table(("metric", "kind", "unit", "labels", "meaning"), rows)


def options_table(section: Section) -> str:
    """Return the table of a sampler's options; those of a table in it have dotted names."""
    rows = []
    for part in section.walk():
        prefix = part.name.removeprefix(section.name).lstrip(".")
        for option in part.options:
            name = f"{prefix}.{option.name}" if prefix else option.name
            meaning = option.sentence + (f" ({option.limits})" if option.limits else "")
            rows.append((code(name), code(option.default) if option.default is not None else "not set", meaning))
    return table(("option", "default", "meaning"), rows)


def code(text: str) -> str:
    """Return text as code."""
    return f"`{text}`"


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")
