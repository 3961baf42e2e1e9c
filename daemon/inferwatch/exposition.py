"""Samples to bytes: Prometheus text and OpenMetrics, and the joining of pieces into one page or one gzip member.

Lines are written here and not by the client library: the part of a line before its value is kept from one rendering to
the next, which makes a rendering many times cheaper (see `make bench`). The library is the judge in the tests.
"""

import math
import operator
import re
import struct
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache
from typing import Final

from prometheus_client.utils import floatToGoString

from inferwatch.model import Family, HistogramValue, Kind, Sample

SURROGATES: Final = re.compile("[\ud800-\udfff]")
LARGEST_EXACT: Final = 2**53
EOF: Final = b"# EOF\n"

# level 1 with a small window: a page is a few KB a piece, and starting a compressor costs more than running it
DEFLATE_LEVEL: Final = 1
DEFLATE_WINDOW: Final = -13
GZIP_HEADER: Final = b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x04\xff"


class Format(StrEnum):
    """A form of the page, with its content type."""

    TEXT = "text/plain; version=0.0.4; charset=utf-8"
    OPENMETRICS = "application/openmetrics-text; version=1.0.0; charset=utf-8"


class Piece:
    """Some bytes of a page, rendered once; their compressed form is made when first asked for and kept."""

    __slots__ = ("_deflated", "raw")

    def __init__(self, raw: bytes) -> None:
        self.raw = raw
        self._deflated: bytes | None = None

    @property
    def deflated(self) -> bytes:
        """Return the bytes as raw deflate data that ends on a byte boundary and refers to nothing before it."""
        if self._deflated is None:
            compressor = zlib.compressobj(DEFLATE_LEVEL, zlib.DEFLATED, DEFLATE_WINDOW)
            self._deflated = compressor.compress(self.raw) + compressor.flush(zlib.Z_FULL_FLUSH)
        return self._deflated


class Rendered:
    """One snapshot's lines.

    Args:
        lines: Per family its lines without the family's head, in the order of the samples.
        series: Number of lines.
        dropped: Number of samples left out because their value is not valid, or that repeat a series.
    """

    __slots__ = ("_whole", "dropped", "lines", "series")

    def __init__(self, lines: Mapping[Family, Piece], series: int, dropped: int) -> None:
        self.lines = lines
        self.series = series
        self.dropped = dropped
        self._whole: dict[Format, Piece] = {}

    def whole(self, form: Format) -> Piece:
        """Return all lines with the heads of their families; made when first asked for and kept."""
        piece = self._whole.get(form)
        if piece is None:
            parts = (part for family, lines in self.lines.items() for part in (head(family, form), lines.raw))
            piece = self._whole[form] = Piece(b"".join(parts))
        return piece


@dataclass(frozen=True, slots=True)
class _Beginnings:
    """The constant beginnings of one sample's lines; a histogram's hold for its bounds."""

    prefixes: tuple[bytes, ...]
    bounds: tuple[float, ...] = ()


class Renderer:
    """Renders the snapshots of one (sampler, instance); keeps the beginnings of the lines of the last one only."""

    def __init__(self) -> None:
        self._known: dict[tuple[Family, tuple[str, ...]], _Beginnings] = {}

    def render(self, samples: Iterable[Sample]) -> Rendered:
        """Render samples.

        A sample whose value is not valid (see `is_valid`), and one that repeats a series, is left out and counted: it
        would spoil the page for everybody.
        """
        used: dict[tuple[Family, tuple[str, ...]], _Beginnings] = {}
        bodies: dict[Family, list[bytes]] = {}
        dropped = 0
        for sample in samples:
            key = (sample.family, sample.labels)
            value = sample.value
            if key in used or not is_valid(sample):
                dropped += 1
                continue
            beginnings = self._known.get(key)
            if isinstance(value, HistogramValue):
                if beginnings is None or beginnings.bounds != value.bounds:
                    beginnings = _histogram_beginnings(sample.family, sample.labels, value)
                lines = _histogram_lines(beginnings.prefixes, value)
            else:
                if beginnings is None:
                    beginnings = _Beginnings((_prefix(sample.family.name, sample.family.labels, sample.labels),))
                lines = [beginnings.prefixes[0] + format_value(value)]
            used[key] = beginnings
            bodies.setdefault(sample.family, []).extend(lines)
        self._known = used
        pieces = {family: Piece(b"".join(lines)) for family, lines in bodies.items()}
        return Rendered(pieces, sum(map(len, bodies.values())), dropped)


def join(rendered: Sequence[Rendered], form: Format, heads: dict[tuple[Family, Format], Piece]) -> Iterator[Piece]:
    """Yield the pieces of one sampler's part of the page: a family stands once, whatever the number of instances.

    Args:
        rendered: One entry per instance.
        form: Form of the page.
        heads: Cache of the families' heads, filled here.
    """
    if len(rendered) == 1:
        yield rendered[0].whole(form)
        return
    by_family: dict[Family, list[Piece]] = {}
    for one in rendered:
        for family, lines in one.lines.items():
            by_family.setdefault(family, []).append(lines)
    for family, pieces in by_family.items():
        key = (family, form)
        if key not in heads:
            heads[key] = Piece(head(family, form))
        yield heads[key]
        yield from pieces


def gzip_member(pieces: Sequence[Piece], plain: bytes) -> bytes:
    """Join deflated pieces into one gzip member.

    One member, not one per piece: `curl --compressed` and httpx stop at the end of the first.

    Args:
        pieces: The pieces, in order.
        plain: The same bytes joined, for the checksum.
    """
    last = b"\x03\x00"  # an empty final block with fixed codes
    trailer = struct.pack("<II", zlib.crc32(plain), len(plain) & 0xFFFFFFFF)
    return b"".join((GZIP_HEADER, *(piece.deflated for piece in pieces), last, trailer))


def head(family: Family, form: Format) -> bytes:
    """Return a family's HELP, TYPE and UNIT lines."""
    text = family.help.replace("\\", "\\\\").replace("\n", "\\n")
    if form is Format.TEXT:
        kind = Kind.GAUGE if family.kind is Kind.INFO else family.kind
        return f"# HELP {family.name} {text}\n# TYPE {family.name} {kind}\n".encode()
    name, escaped = family.base_name, text.replace('"', '\\"')
    unit = f"# UNIT {name} {family.unit}\n" if family.unit else ""
    return f"# HELP {name} {escaped}\n# TYPE {name} {family.kind}\n{unit}".encode()


def format_value(value: float) -> bytes:
    """Return a value and the end of its line; a whole number without its `.0`, which saves a third of the page."""
    if value == (whole := int(value)) and -LARGEST_EXACT < whole < LARGEST_EXACT:
        return b"%d\n" % whole
    return repr(float(value)).encode() + b"\n"


def safe_text(value: str) -> str:
    """Replace lone surrogates, which can't be encoded and would make the whole page fail."""
    return SURROGATES.sub("\N{REPLACEMENT CHARACTER}", value)


def _label(name: str, value: str) -> str:
    escaped = safe_text(value).replace("\\", "\\\\").replace("\n", "\\n").replace('"', '\\"')
    return f'{name}="{escaped}"'


def _prefix(name: str, label_names: Sequence[str], values: Sequence[str]) -> bytes:
    labels = ",".join(_label(key, value) for key, value in zip(label_names, values, strict=True))
    return (f"{name}{{{labels}}} " if labels else f"{name} ").encode()


def _histogram_beginnings(family: Family, labels: tuple[str, ...], value: HistogramValue) -> _Beginnings:
    """Return the beginnings of the bucket lines, of _sum and of _count."""
    names = (*family.labels, "le")
    edges = [*(str(floatToGoString(bound)) for bound in value.bounds), "+Inf"]  # type: ignore[no-untyped-call] # the library's function has no annotations
    buckets = [_prefix(f"{family.name}_bucket", names, (*labels, edge)) for edge in edges]
    ends = [_prefix(f"{family.name}{suffix}", family.labels, labels) for suffix in ("_sum", "_count")]
    return _Beginnings((*buckets, *ends), value.bounds)


def _histogram_lines(prefixes: Sequence[bytes], value: HistogramValue) -> list[bytes]:
    """Return a histogram's lines; OpenMetrics has the sum and the number of observations together or not at all."""
    count = len(value.counts)
    lines = [prefix + format_value(number) for prefix, number in zip(prefixes, value.counts, strict=False)]
    if value.sum is not None:
        lines.append(prefixes[count] + format_value(value.sum))
        lines.append(prefixes[count + 1] + format_value(value.counts[-1]))
    return lines


def is_valid(sample: Sample) -> bool:
    """Return whether both forms of the page may hold a sample; one that they may not spoils the whole page."""
    value = sample.value
    if isinstance(value, HistogramValue):
        return _is_valid_histogram(value)
    if sample.family.kind is Kind.INFO:
        return value == 1
    return math.isfinite(value) and (value >= 0 or sample.family.kind is not Kind.COUNTER)


def _is_valid_histogram(value: HistogramValue) -> bool:
    bounds, counts = value.bounds, value.counts
    if not (all(map(math.isfinite, bounds)) and all(map(math.isfinite, counts))):
        return False
    ascending = all(map(operator.lt, bounds, bounds[1:])) and all(map(operator.le, counts, counts[1:]))
    whole = all(count == int(count) for count in counts)
    if not (ascending and whole and counts[0] >= 0):
        return False
    return value.sum is None or (0 <= value.sum < math.inf and not (bounds and bounds[0] < 0))


@lru_cache(maxsize=64)
def accepts_gzip(accept_encoding: str | None) -> bool:
    """Return whether a client takes gzip (`gzip;q=0` refuses it)."""
    return _quality(accept_encoding or "", "gzip") > 0


@lru_cache(maxsize=64)
def choose_format(accept: str | None) -> Format:
    """Choose the form of the page by a client's Accept header; text when in doubt.

    The client library ignores `q`, and so would send OpenMetrics to a client that refuses it.
    """
    text = accept or ""
    wanted = _quality(text, "application/openmetrics-text", versions=("", "1.0.0"))
    return Format.OPENMETRICS if wanted > 0 and wanted >= _quality(text, "text/plain") else Format.TEXT


def _quality(header: str, name: str, versions: tuple[str, ...] = ()) -> float:
    """Return the best `q` that a header gives to `name` (in one of `versions`, when given); 0 when it is not named."""
    best = 0.0
    for entry in header.split(","):
        kind, *parameters = (part.strip().lower() for part in entry.split(";"))
        values = {key.strip(): value.strip() for key, _, value in (part.partition("=") for part in parameters)}
        if kind == name and (not versions or values.get("version", "") in versions):
            try:
                best = max(best, float(values.get("q", "1")))
            except ValueError:
                continue
    return best
