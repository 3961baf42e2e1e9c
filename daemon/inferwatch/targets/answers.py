"""What an answer tells: of which engine a page is, and which model is served."""

import json
import re
from typing import Final

from inferwatch.engines.registry import recognise
from inferwatch.errors import SourceError
from inferwatch.model import ParsedPage, SeriesId
from inferwatch.sources.compression import decode
from inferwatch.sources.http import HttpPage
from inferwatch.targets.text import clean

NAMES_BYTES: Final = 1 << 20  # of a page, searched for names; some milliseconds
PLAIN_BYTES: Final = 4 << 20  # of a page that comes compressed though that was not asked for
SERIES: Final = re.compile(rb"^([a-zA-Z_:][a-zA-Z0-9_:]*)[{ ]", re.MULTILINE)
NAMES_LIMIT: Final = 20_000


def engine_of(page: HttpPage) -> str:
    """Return which engine's series a page has, empty when it has none known; only names are looked at."""
    try:
        body = decode(page.body, page.content_encoding, PLAIN_BYTES) if page.content_encoding else page.body
    except SourceError:
        return ""
    found = zip(range(NAMES_LIMIT), SERIES.finditer(body, 0, NAMES_BYTES), strict=False)
    names = {match.group(1).decode("ascii") for _, match in found}
    table = recognise(ParsedPage([(SeriesId(name, ()), 0.0) for name in sorted(names)], {}, {}))
    return table.name if table is not None else ""


def model_of(body: bytes) -> str:
    """Return the first model of an answer to /v1/models, empty when it is none."""
    try:
        document = json.loads(body)
    except (ValueError, RecursionError):
        return ""
    entries = document.get("data") if isinstance(document, dict) else None
    first = entries[0] if isinstance(entries, list) and entries else None
    name = first.get("id") if isinstance(first, dict) else None
    return clean(name) if isinstance(name, str) else ""
