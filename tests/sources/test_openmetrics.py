import itertools
import math
import time
import tracemalloc
from collections.abc import Iterable
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from prometheus_client.openmetrics.parser import text_string_to_metric_families as openmetrics_families
from prometheus_client.parser import text_string_to_metric_families as text_families
from prometheus_client.samples import Sample

from inferwatch.errors import ParseError
from inferwatch.model import ParsedPage
from inferwatch.sources.openmetrics import NO_NUMBER, PageParser
from strategies import NASTY, mutated, mutated_tokens

ENGINES = Path(__file__).parent.parent / "fixtures" / "engines"
TEXT = "text/plain; version=0.0.4"
OPENMETRICS = "application/openmetrics-text; version=1.0.0; charset=utf-8"
Series = dict[tuple[str, tuple[tuple[str, str], ...]], float]
RECORDED = sorted(path.name for path in ENGINES.glob("*.prom"))


def series(page: ParsedPage) -> Series:
    found = {(one.name, tuple(sorted(one.labels))): value for one, value in page.series}
    assert len(found) == len(page.series)
    return found


def parse(body: bytes, content_type: str = TEXT, *, complete: bool = False) -> Series:
    return series(PageParser().parse(body, content_type, complete=complete))


def refusal(body: bytes, content_type: str = TEXT, **limits: int) -> str:
    with pytest.raises(ParseError) as caught:
        PageParser(**limits).parse(body, content_type)
    assert len(str(caught.value)) < 500
    return str(caught.value)


def finite(samples: Iterable[Sample]) -> Series:
    found = {}
    for sample in samples:
        try:
            value = float(sample.value)
        except OverflowError:
            continue
        if math.isfinite(value):
            found[sample.name, tuple(sorted(sample.labels.items()))] = value
    return found


def oracle(body: bytes) -> Series:
    """Read with prometheus_client; without TYPE lines, because with them it adds `_total` to names of counters.

    And without samples whose value is a word for no number, for which it refuses the page.
    """
    lines = [line for line in body.split(b"\n") if not NO_NUMBER.fullmatch(line.strip().rpartition(b" ")[2])]
    decoded = [line.decode("utf-8", "replace") for line in lines]
    text = "\n".join(line for line in decoded if not line.strip().startswith("#"))
    return finite(sample for family in text_families(text + "\n") for sample in family.samples)


# As the oracle reads it ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", RECORDED)
def test_recorded_page_is_read_as_the_client_library_reads_it_but_for_created(name: str) -> None:
    body = (ENGINES / name).read_bytes()

    expected = {key: value for key, value in oracle(body).items() if not key[0].endswith("_created")}

    assert parse(body) == expected


@pytest.mark.parametrize("name", RECORDED)
def test_recorded_page_read_again_gives_the_same_objects(name: str) -> None:
    body = (ENGINES / name).read_bytes()
    parser = PageParser()
    first, second = parser.parse(body, TEXT), parser.parse(body, TEXT)

    assert series(first) == series(second)
    assert all(one is other for (one, _), (other, _) in zip(first.series, second.series, strict=True))


def test_openmetrics_page_is_read_as_the_client_library_reads_it() -> None:
    body = (ENGINES / "vllm.openmetrics").read_bytes()
    parser = PageParser()
    families = openmetrics_families(body.decode())  # type: ignore[no-untyped-call] # the library's parser is not typed
    samples = [one for family in families for one in family.samples]
    expected = finite(one for one in samples if not one.name.endswith("_created"))

    assert series(parser.parse(body, OPENMETRICS)) == expected
    assert series(parser.parse(body, OPENMETRICS)) == expected  # exemplars and timestamps in the steady state


NAMES = st.from_regex(r"[a-z_:][a-z0-9_:]{0,6}", fullmatch=True).filter(lambda name: not name.endswith("_created"))
LABEL_NAMES = st.sampled_from(["le", "a", "b", "model_name"])
AWKWARD = [
    "",
    " ",
    "}",
    "} ",
    "} 1",
    '"',
    "\\",
    "\\n",
    "\n",
    "#",
    " # ",
    ' # {a="b"} 1',
    "{",
    "=",
    ",",
    '",',
    '="',
    "é",
    "�",
]
LABEL_VALUES = st.lists(st.sampled_from(AWKWARD) | st.text(max_size=4), max_size=4).map("".join)
LABEL_VALUES = LABEL_VALUES.filter(lambda text: text.isascii() or text.encode("utf-8", "ignore").decode() == text)
NUMBERS = st.sampled_from(
    ["0", "1", "-1", "1.5", "1e5", "1E-3", "+Inf", "-Inf", "NaN", "nan", "-nan", "9" * 400, "1e999", ".5"]
)
NUMBERS = NUMBERS | st.floats(allow_nan=False).map(repr)
BLANKS = st.sampled_from([" ", " ", " ", "  ", "\t", " \t "])


def escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace("\n", "\\n").replace('"', '\\"')


@st.composite
def sample_lines(draw: st.DrawFn) -> str:
    labels: dict[str, str] = draw(st.dictionaries(LABEL_NAMES, LABEL_VALUES, max_size=3))
    text = ",".join(f'{name}="{escaped(value)}"' for name, value in labels.items())
    comma = draw(st.sampled_from(["", ","])) if labels else ""
    braces: bool = draw(st.booleans())
    text = "{" + text + comma + "}" if labels or braces else ""
    line = draw(NAMES) + draw(st.sampled_from(["", "", " "] if text else [""])) + text + draw(BLANKS) + draw(NUMBERS)
    if draw(st.booleans()):
        line += draw(BLANKS) + draw(st.sampled_from(["1395066363000", "-1", "1.5e3"]))
    return draw(st.sampled_from(["", " "])) + line + draw(st.sampled_from(["", " ", "\r", "\t"]))


LINES = st.lists(
    sample_lines() | st.sampled_from(["", " ", "# comment", "# HELP a b } 1", "# TYPE a counter", "\x1f"]), max_size=12
)
PAGES = LINES.map(lambda lines: ("\n".join([*lines, "end 1"]) + "\n").encode())


@given(PAGES)
@settings(deadline=None)
@example(b'a{b="} 1"} 2\na{b="} 1"} 3\n')
@example(b'a{b=" # {} 1 2"} 3\nend 1\n')
@example(b"a 1 2\na 1 2 3\nend 1\n")
@example(b"a 12345 12345\nend 1\n")
def test_generated_page_is_read_as_the_client_library_reads_it(body: bytes) -> None:
    parser = PageParser()

    assert series(parser.parse(body, TEXT)) == oracle(body)
    assert series(parser.parse(body, TEXT)) == oracle(body)


@given(PAGES, PAGES)
@settings(deadline=None)
def test_what_was_learned_of_one_page_does_not_change_how_another_is_read(before: bytes, body: bytes) -> None:
    parser = PageParser()
    parser.parse(before, TEXT)

    assert series(parser.parse(body, TEXT)) == oracle(body)


REAL = (ENGINES / "vllm-0.32-mid.prom").read_bytes()[:6000].rpartition(b"\n")[0] + b"\n"


@given(
    mutated(REAL)
    | mutated_tokens(REAL)
    | st.binary(max_size=200)
    | st.sampled_from(NASTY).map(lambda data: data + b"\n")
)
@settings(deadline=None, max_examples=300)
@example(b"nan\n")
@example(b'foo bar{a="b"} 1\n')
def test_damaged_page_is_refused_or_read_as_the_client_library_reads_it(body: bytes) -> None:
    """Also when the undamaged page has been learned before."""
    parser = PageParser()
    parser.parse(REAL, TEXT)
    for one in (PageParser(), parser):
        try:
            found = series(one.parse(body, TEXT))
        except ParseError:
            continue

        assert found == {key: value for key, value in oracle(body).items() if key in found}
        missing = [key for key in oracle(body) if key not in found]
        assert all(name.endswith("_created") for name, _ in missing)


@given(mutated((ENGINES / "vllm.openmetrics").read_bytes()))
@settings(deadline=None)
def test_damaged_openmetrics_page_is_read_alike_whether_or_not_it_was_learned(body: bytes) -> None:
    learned, fresh = PageParser(), PageParser()
    learned.parse((ENGINES / "vllm.openmetrics").read_bytes(), OPENMETRICS)
    results = []
    for parser in (learned, fresh):
        try:
            results.append(series(parser.parse(body, OPENMETRICS)))
        except ParseError:
            results.append({})

    assert results[0] == results[1]


# What is on the page and does not count ------------------------------------------------------------------------------


@pytest.mark.parametrize("value", ["-nan", "nan", "NaN", "+Inf", "-Inf", "inf", "1e999"])
def test_value_that_is_not_finite_is_dropped_and_counted_and_the_rest_is_kept(value: str) -> None:
    page = PageParser().parse(f"llamacpp:predicted_tokens_seconds {value}\nok 1\n".encode(), TEXT)

    assert series(page) == {("ok", ()): 1.0}
    assert page.dropped == {"not_finite": 1}


def test_series_that_stands_twice_counts_once_with_its_last_value() -> None:
    page = PageParser().parse(b'a{x="1",y="2"} 1\nb 5\na{y="2",x="1"} 2\n', TEXT)

    assert [(one.name, value) for one, value in page.series] == [("a", 2.0), ("b", 5.0)]
    assert page.dropped == {"duplicate": 1}


def test_finite_value_of_a_series_that_stands_twice_wins_over_nan() -> None:
    page = PageParser().parse(b"a NaN\na 1\nb 2\nb NaN\n", TEXT)

    assert series(page) == {("a", ()): 1.0, ("b", ()): 2.0}
    assert page.dropped == {"not_finite": 2}


def test_created_series_of_counters_histograms_and_summaries_are_ignored() -> None:
    body = b"""# TYPE a_total counter
a_total 1
# TYPE a_created gauge
a_created 1.7e9
h_bucket{le="+Inf"} 1
h_count 1
h_created 1.7e9
# TYPE iteration_tokens_total histogram
iteration_tokens_total_count 1
iteration_tokens_total_created 1.7e9
# TYPE s summary
s_created 1.7e9
"""
    assert {name for name, _ in parse(body)} == {"a_total", "h_bucket", "h_count", "iteration_tokens_total_count"}


def test_gauge_that_only_happens_to_end_in_created_is_kept() -> None:
    body = b"# TYPE session gauge\nsession 3\n# TYPE session_created gauge\nsession_created 5\n"

    assert parse(body) == {("session", ()): 3.0, ("session_created", ()): 5.0}


def test_invalid_utf_8_becomes_the_replacement_character() -> None:
    body = b'a{m="a\xe2\x82"} 1\nb{m="\xed\xa0\x80"} 2\n'

    assert list(parse(body)) == [("a", (("m", "a�"),)), ("b", (("m", "���"),))]
    assert parse(body) == oracle(body)


def test_types_are_told_by_family_as_the_page_has_them() -> None:
    page = PageParser().parse(b"# TYPE a_total counter\na_total 1\n#  TYPE\th   histogram\n# a TYPE b c\n", TEXT)

    assert page.types == {"a_total": "counter", "h": "histogram"}


# What makes the page unusable ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "line",
    [
        b"foo",
        b"nan",
        b"foo 1_0",
        b"foo bar",
        b'foo{a="b" 1',
        b'foo{a="b} 1',
        b"foo{a=b} 1",
        b'foo{a="b"}',
        b"1foo 1",
        b'two words{a="b"} 1',
        "foo \N{ARABIC-INDIC DIGIT FIVE}x".encode(),
        b"# TYPE foo",
        b"<html><body>Not Found</body></html>",
        b'{"error": "not found"}',
        b"foo 0x1f",
    ],
)
def test_malformed_line_refuses_the_page_and_is_quoted_with_its_number(line: bytes) -> None:
    message = refusal(b"ok 1\n" + line + b"\nok2 2\n")

    assert message.startswith("line 2")
    assert repr(line)[2:20] in message


def test_long_malformed_line_is_quoted_in_part() -> None:
    assert len(refusal(b"foo{" + b"a" * 10_000 + b"\n")) < 250


@pytest.mark.parametrize("body", [b"", b"\n", b" \n\n"])
def test_empty_page_is_refused(body: bytes) -> None:
    assert "empty" in refusal(body)


def test_text_without_a_final_newline_is_refused_unless_its_length_proved_it_complete() -> None:
    body = b"bar 1\nfoo_total 12"  # 12345, cut

    assert "may be cut" in refusal(body)
    assert parse(body, complete=True) == {("bar", ()): 1.0, ("foo_total", ()): 12.0}


@pytest.mark.parametrize("body", [b"foo 1\n", b"foo 1", b"foo 1\n# EOF 2\n", b"# EO"])
def test_openmetrics_without_eof_is_refused(body: bytes) -> None:
    assert "# EOF" in refusal(body, OPENMETRICS)
    with pytest.raises(ParseError):
        PageParser().parse(body, OPENMETRICS, complete=True)


@pytest.mark.parametrize("body", [b"foo 1\n# EOF\nbar 1\n# EOF\n", b"# EOF\n# EOF\n"])
def test_openmetrics_with_something_after_eof_is_refused(body: bytes) -> None:
    assert "after `# EOF`" in refusal(body, OPENMETRICS)


@pytest.mark.parametrize("body", [b"foo 1\n# EOF\n", b"foo 1\n# EOF", b"foo 1\r\n# EOF\r\n"])
def test_openmetrics_that_ends_in_eof_is_read(body: bytes) -> None:
    assert parse(body, OPENMETRICS) == {("foo", ()): 1.0}


def test_eof_is_a_comment_in_text() -> None:
    assert parse(b"foo 1\n# EOF\nbar 2\n") == {("foo", ()): 1.0, ("bar", ()): 2.0}


# Bounds --------------------------------------------------------------------------------------------------------------


def numbered(count: int, start: int = 0) -> bytes:
    return b"".join(b'foo{n="%d"} 1\n' % number for number in range(start, start + count))


def test_page_with_too_many_series_is_refused() -> None:
    assert len(parse(numbered(100))) == 100
    assert "more than 50 series" in refusal(numbered(51), max_series=50)


def test_page_with_too_many_lines_is_refused_before_it_is_split() -> None:
    body = b"\n" * (16 << 20)
    tracemalloc.start()

    message = refusal(b"a 1" + body, max_series=1000)

    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert "lines, refused" in message
    assert peak < 40 << 20


def test_line_that_would_take_the_parser_for_ever_is_refused() -> None:
    body = b'foo{a="' + b'\\"' * (1 << 20) + b'"} 1\n'
    began = time.monotonic()

    assert "longer than" in refusal(body)
    assert time.monotonic() - began < 1


def test_new_lines_beyond_the_deadline_refuse_the_page_and_the_next_run_goes_on_from_there() -> None:
    parser = PageParser()
    body = numbered(1000)
    messages = []
    page = None
    while page is None:
        looks = itertools.count()
        try:
            page = parser.parse(body, TEXT, expired=lambda looks=looks: next(looks) >= 2)  # type: ignore[misc] # mypy and defaults of lambdas
        except ParseError as error:
            messages.append(str(error))

    assert len(page.series) == 1000
    assert 2 <= len(messages) <= 4
    assert all("time ran out" in message for message in messages)


def test_cache_does_not_grow_with_series_that_come_and_go() -> None:
    parser = PageParser()
    for start in range(0, 50_000, 500):
        parser.parse(numbered(500, start), TEXT)

    assert len(parser._lines) <= 2 * 500 + 1024 + 500
    assert len(parser._series) <= 2 * 500 + 1024 + 500
    assert len(parser._pairs) <= 2 * 500 + 1024 + 500


def test_cache_does_not_grow_with_pages_that_are_refused() -> None:
    parser = PageParser()
    for start in range(0, 20_000, 500):
        with pytest.raises(ParseError):
            parser.parse(numbered(500, start) + b"bad\n", TEXT)

    assert len(parser._series) <= 2 * 500 + 1024 + 500


def test_page_larger_than_the_cache_is_read_right_and_what_is_cached_stays() -> None:
    parser = PageParser(max_cached_lines=100)
    for _ in range(3):
        assert len(parser.parse(numbered(300), TEXT).series) == 300
        cached = set(parser._lines)

    assert len(cached) == 100
    assert set(parser._lines) == cached


def test_comments_that_change_do_not_fill_memory() -> None:
    parser = PageParser()
    for number in range(5000):
        parser.parse(b"# page %d\nfoo 1\n" % number, TEXT)

    assert len(parser._comments) <= 1030


# How much of it is kept ----------------------------------------------------------------------------------------------


def kept_bytes(parser: PageParser) -> int:
    comments = sum(map(len, parser._comments))
    prefixes = sum(map(len, parser._lines))
    return comments + prefixes + sum(known.size for known in parser._series.values())


def test_overlong_comment_is_not_kept() -> None:
    parser = PageParser()
    for number in range(3):
        parser.parse(b"# HELP a %d" % number + b"x" * 1_000_000 + b"\na 1\n", TEXT)

    assert kept_bytes(parser) < 100


def test_overlong_type_line_says_nothing() -> None:
    page = PageParser().parse(b"# TYPE a " + b"x" * 10_000 + b"\na 1\n", TEXT)

    assert page.types == {}


def test_comments_that_change_are_kept_within_a_limit_of_bytes() -> None:
    parser = PageParser()
    for number in range(1000):
        parser.parse(b"# HELP a %d" % number + b"x" * 4000 + b"\na 1\n", TEXT)

    assert kept_bytes(parser) < (1 << 20) + 20_000


@pytest.mark.parametrize(("length", "lines"), [(100, 100), (4000, 50), (30_000, 10)])
def test_series_that_change_are_kept_within_twice_the_page(length: int, lines: int) -> None:
    parser = PageParser()
    for number in range(15):
        body = b"".join(b'a{n="%d-%d-%s"} 1\n' % (number, line, b"x" * length) for line in range(lines))
        parser.parse(body, TEXT)

    assert kept_bytes(parser) <= 2 * len(body) + (1 << 20)


def test_overlong_series_is_the_same_object_on_the_next_page() -> None:
    parser = PageParser()
    body = b'a{n="%s"} 1\n' % (b"x" * 30_000)
    first, second = parser.parse(body, TEXT), parser.parse(body, TEXT)

    assert parser._lines == {}
    assert first.series[0][0] is second.series[0][0]


def test_few_but_overlong_lines_end_at_the_deadline() -> None:
    body = b"".join(b'a{n="%d%s"} 1\n' % (number, b'\\"' * 15_000) for number in range(250))
    began = time.monotonic()
    with pytest.raises(ParseError, match="time ran out"):
        PageParser().parse(body, TEXT, expired=lambda: time.monotonic() - began > 0.2)

    assert time.monotonic() - began < 1


def test_clock_is_looked_at_by_bytes_and_not_by_lines() -> None:
    looks: list[int] = []

    def expired() -> bool:
        looks.append(1)
        return False

    body = b"".join(b'a{n="%d%s"} 1\n' % (number, b"x" * 20_000) for number in range(5))
    PageParser().parse(body, TEXT, expired=expired)

    assert len(looks) == 5


@pytest.mark.parametrize("value", ["None", "-nan(ind)", "null", "nan(0x1)", "N/A", "-", "undefined", "nil"])
def test_word_for_no_number_drops_just_that_sample_and_is_counted(value: str) -> None:
    page = PageParser().parse(f'a{{x="}} y"}} {value}\nb 2\n'.encode(), TEXT)

    assert series(page) == {("b", ()): 2.0}
    assert page.dropped == {"not_finite": 1}


def test_series_without_a_number_has_one_again_later() -> None:
    parser = PageParser()
    parser.parse(b"a None\n", TEXT)

    assert series(parser.parse(b"a 5\n", TEXT)) == {("a", ()): 5.0}


@pytest.mark.parametrize("line", [b'a{x="} None', b"None", b"1a null", b"a b None", b"a  Nonesense"])
def test_word_for_no_number_does_not_excuse_a_malformed_line(line: bytes) -> None:
    assert "is not a sample" in refusal(b"ok 1\n" + line + b"\n")
