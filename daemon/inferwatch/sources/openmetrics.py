"""Pages in Prometheus text or OpenMetrics form to series and values, cheap when the same page comes again.

prometheus_client's text parser takes 30 to 90 us a line. A scraped page repeats all but its numbers, so the bytes of a
line before its value are kept with the series that the parser found for them; a line seen before costs a lookup
and a `float()`. The parser reads every other line, and stays the oracle of the tests.

A prefix is kept only when the parser, given the prefix and a number of ours, answers with that number and no timestamp:
label values may hold `} `, ` # ` and blanks, so where a value begins is the parser's decision, not ours.
"""

import math
import re
from collections.abc import Callable, Mapping
from typing import Final

from prometheus_client.parser import text_string_to_metric_families

from inferwatch.errors import ParseError
from inferwatch.model import ParsedPage, SeriesId
from inferwatch.sources.line import splits
from inferwatch.sources.page import Known, Page

MAX_SERIES: Final = 60_000
MAX_LINE_BYTES: Final = 32 << 10  # vLLM's longest is 1.3 KB; the parser takes up to 2 us a byte, so 60 ms for this one
MAX_KEPT_BYTES: Final = 4 << 10  # comments and prefixes that are longer are read anew each time
SLACK_BYTES: Final = 1 << 20  # what is kept beyond twice the page
QUOTED_BYTES: Final = 120
LINES_PER_SERIES: Final = 4  # HELP, TYPE and UNIT beside the sample
COST_PER_CHECK: Final = 16 << 10  # bytes new to the parser between two looks at the clock, about 10 ms
COST_PER_LINE: Final = 100  # of a line beside its bytes, in bytes
PROBE: Final = 12345
NO_NUMBER: Final = re.compile(rb"(?i)[-+]?(nan|inf)\(\w*\)|none|null|nil|n/?a|undefined|-")  # printed for none
PROBE_TEXT: Final = f" {PROBE}"

METRIC_NAME: Final = re.compile(r"[a-zA-Z_:][a-zA-Z0-9_:]*\Z")


def never() -> bool:
    """Return that there is no deadline."""
    return False


class PageParser:
    """Parser of one engine's pages; its `SeriesId` objects are the same from page to page, so identity can be a key.

    Args:
        max_series: A page with more is refused.
        max_cached_lines: Most prefixes kept; lines beyond are parsed anew each time.
    """

    def __init__(self, *, max_series: int = MAX_SERIES, max_cached_lines: int = MAX_SERIES) -> None:
        self._max_series = max_series
        self._max_cached_lines = max_cached_lines
        self._lines: dict[bytes, Known] = {}
        self._comments: dict[bytes, tuple[tuple[str, str], ...]] = {}
        self._series: dict[tuple[str, tuple[tuple[str, str], ...]], Known] = {}
        self._pairs: dict[tuple[str, str], tuple[str, str]] = {}
        self._kept_bytes = 0  # of prefixes and series
        self._comment_bytes = 0
        self._page = 0
        self._cost = 0

    def parse(
        self, body: bytes, content_type: str, *, complete: bool = False, expired: Callable[[], bool] = never
    ) -> ParsedPage:
        """Parse a page; all of it or nothing.

        Args:
            body: The page, not compressed.
            content_type: Decides between text and OpenMetrics.
            complete: Whether the length of the answer proved that nothing is missing, so that text without a final
                newline may pass (the last number could otherwise have lost digits unnoticed).
            expired: Asked now and then while new lines are parsed; what was learned is kept for the next page.

        Raises:
            ParseError: When a line is malformed, the page is incomplete, too large, or took too long.
        """
        openmetrics = "application/openmetrics-text" in content_type.lower()
        lines = self._split(body, openmetrics=openmetrics, complete=complete)
        self._page += 1
        try:
            return self._read(Page(self._page, expired, openmetrics=openmetrics), lines)
        finally:
            self._forget(len(lines), len(body))

    def _split(self, body: bytes, *, openmetrics: bool, complete: bool) -> list[bytes]:
        if not body.strip():
            raise ParseError("the page is empty, metrics expected")
        if body.count(b"\n") > self._max_series * LINES_PER_SERIES:
            raise ParseError(f"the page has more than {self._max_series * LINES_PER_SERIES} lines, refused")
        lines = body.split(b"\n")
        unended = lines.pop()
        if openmetrics:
            last = unended or (lines.pop() if lines else b"")
            if last.rstrip(b"\r") != b"# EOF":
                raise ParseError("the OpenMetrics page does not end in `# EOF`: it is incomplete")
        elif unended and not complete:
            raise ParseError(f"the page's last line is not ended, it may be cut: {unended[-QUOTED_BYTES:]!r}")
        elif unended:
            lines.append(unended)
        return lines

    def _read(self, page: Page, lines: list[bytes]) -> ParsedPage:
        # The only hot loop of the agent: a call per line would cost as much as all the rest of it.
        lookup, isfinite, values, number, row = self._lines.get, math.isfinite, page.values, page.number, 0
        for line in lines:
            row += 1
            prefix, _, text = line.rpartition(b" ")
            known = lookup(prefix)
            try:
                value = float(text) if known is not None and b"_" not in text else None
            except ValueError:
                value = None
            if known is None or value is None:
                found = self._slow(page, line, row)
                if found is None:
                    continue
                known, value = found
            if known.page != number and isfinite(value):
                known.page, known.position = number, len(values)
                values.append((known.series, value))
                if known.stem is not None:
                    page.created.append(known)
            else:
                page.add_odd(known, value)
        if len(values) > self._max_series:
            raise ParseError(f"the page has more than {self._max_series} series, refused")
        return page.finish()

    def _slow(self, page: Page, line: bytes, row: int) -> tuple[Known, float] | None:
        """Read a line that is not a known prefix and a number: None for a comment or an empty line."""
        comment = self._comments.get(line)
        if comment is not None:
            page.types.update(comment)
            return None
        stripped = line.strip()
        if not stripped:
            return None
        if stripped.startswith(b"#"):
            self._comment(page, stripped, row)
            return None
        for prefix, value in splits(stripped):
            if (known := self._lines.get(prefix)) is not None:
                return known, value
        return self._learn(page, stripped, row)

    def _comment(self, page: Page, line: bytes, row: int) -> None:
        if page.openmetrics and line == b"# EOF":
            raise ParseError(f"line {row}: there is something after `# EOF`")
        if len(line) > MAX_KEPT_BYTES:  # prose, whatever it says of itself; no TYPE is that long
            return
        words = line.split(None, 3)
        types: tuple[tuple[str, str], ...] = ()
        if words[:2] == [b"#", b"TYPE"]:
            if len(words) < 4:  # noqa: PLR2004 - hash, TYPE, name, type
                raise ParseError(f"line {row}: TYPE without name and type: {line[:QUOTED_BYTES]!r}")
            types = ((_text(words[2]).strip('"'), _text(words[3]).strip()),)
        page.types.update(types)
        if len(self._comments) < self._max_cached_lines:
            self._comments[line] = types
            self._comment_bytes += len(line)

    def _learn(self, page: Page, line: bytes, row: int) -> tuple[Known, float] | None:
        if len(line) > MAX_LINE_BYTES:
            raise ParseError(f"line {row} is longer than {MAX_LINE_BYTES} bytes: {line[:QUOTED_BYTES]!r}")
        text = _text(line).strip()
        if not text or text.startswith("#"):  # behind blanks that are blanks to str only
            return None
        for prefix, value in splits(line):
            self._look_at_the_clock(page, line, row)
            probe = _text(prefix) + PROBE_TEXT
            if (sample := _sample(probe)) is not None and sample[2] == PROBE and sample[3] is None:
                known = self._intern(sample[0], sample[1])
                if len(prefix) <= MAX_KEPT_BYTES and len(self._lines) < self._max_cached_lines:
                    self._lines[prefix] = known
                    self._kept_bytes += len(prefix)
                return known, value
        self._look_at_the_clock(page, line, row)
        head, _, last = line.rpartition(b" ")
        if NO_NUMBER.fullmatch(last) and (sample := _sample(_text(head) + PROBE_TEXT)) and sample[2] == PROBE:
            known = self._intern(sample[0], sample[1])
            return known, math.nan  # a well-formed series without a number: only it is lost
        sample = _sample(text)
        if sample is None:
            raise ParseError(f"line {row} is not a sample of the Prometheus text format: {line[:QUOTED_BYTES]!r}")
        return self._intern(sample[0], sample[1]), sample[2]

    def _look_at_the_clock(self, page: Page, line: bytes, row: int) -> None:
        self._cost += len(line) + COST_PER_LINE
        if self._cost < COST_PER_CHECK:
            return
        self._cost = 0
        if page.expired():
            message = f"the page has so many new or overlong lines that time ran out at line {row}"
            raise ParseError(f"{message}; the next run goes on from what it learned")

    def _intern(self, name: str, labels: Mapping[str, str]) -> Known:
        key = (name, tuple(sorted(labels.items())))
        known = self._series.get(key)
        if known is None:
            pairs = tuple(self._pairs.setdefault(pair, pair) for pair in labels.items())
            known = self._series[key] = Known(SeriesId(name, pairs))
            self._kept_bytes += known.size
        return known

    def _forget(self, page_lines: int, page_bytes: int) -> None:
        """Forget what was not on this page, once much of what is known is stale, so that churn does not fill memory."""
        limit = min(self._max_cached_lines, 2 * page_lines + 1024)
        limit_bytes = 2 * page_bytes + SLACK_BYTES
        if len(self._comments) >= limit or self._comment_bytes > limit_bytes:
            self._comments.clear()
            self._comment_bytes = 0
        if max(len(self._lines), len(self._series)) < limit and self._kept_bytes <= limit_bytes:
            return
        self._lines = {prefix: known for prefix, known in self._lines.items() if known.page == self._page}
        self._series = {key: known for key, known in self._series.items() if known.page == self._page}
        self._pairs = {pair: pair for known in self._series.values() for pair in known.series.labels}
        self._kept_bytes = sum(map(len, self._lines)) + sum(known.size for known in self._series.values())


def _sample(line: str) -> tuple[str, Mapping[str, str], float, object] | None:
    """Return name, labels, value and timestamp of one line, None when the parser refuses it."""
    if not line.startswith("{") and " " not in line and "\t" not in line and "}" not in line:
        return None  # the parser takes `nan` for a series `na` with the value nan
    try:
        sample = next(iter(next(iter(text_string_to_metric_families(line + "\n"))).samples))
    except (ValueError, IndexError, StopIteration):
        return None
    if not METRIC_NAME.match(sample.name) and not line.startswith("{"):
        return None  # the parser takes `two words{a="b"} 1`
    try:
        return sample.name, sample.labels, float(sample.value), sample.timestamp
    except OverflowError:  # an integer of more than 308 digits
        return sample.name, sample.labels, math.inf, sample.timestamp


def _text(data: bytes) -> str:
    return data.decode("utf-8", "replace")
