"""Samples to bytes, with the Prometheus client library as the judge."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client.openmetrics.parser import text_string_to_metric_families as parse_openmetrics
from prometheus_client.parser import text_string_to_metric_families as parse_text

from inferwatch.exposition import EOF, Format, Renderer, accepts_gzip, choose_format, format_value
from inferwatch.model import Family, HistogramValue, Kind, Sample

COUNT = Family("inferwatch_cpu_seconds_total", 'Time "so far".', Kind.COUNTER, "seconds", ("mode",))
LEVEL = Family("inferwatch_level_ratio", "A ratio\\level.", Kind.GAUGE, "ratio", ("a", "b"))
INFO = Family("inferwatch_build_info", "What.", Kind.INFO, labels=("version",))
HISTOGRAM = Family("inferwatch_wait_seconds", "A wait.", Kind.HISTOGRAM, "seconds", ("target",))

PROMETHEUS_2 = (
    "application/openmetrics-text;version=1.0.0,application/openmetrics-text;version=0.0.1;q=0.75,"
    "text/plain;version=0.0.4;q=0.5,*/*;q=0.1"
)
PROMETHEUS_3 = (
    "application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.5,"
    "application/openmetrics-text;version=0.0.1;q=0.4,text/plain;version=1.0.0;escaping=allow-utf-8;q=0.3,"
    "text/plain;version=0.0.4;q=0.2,*/*;q=0.1"
)


def whole(samples: list[Sample], form: Format) -> str:
    return Renderer().render(samples).whole(form).raw.decode()


def read_text(page: str) -> list[tuple[str, dict[str, str], float]]:
    return [(s.name, s.labels, s.value) for family in parse_text(page) for s in family.samples]


def read_openmetrics(page: str) -> list[tuple[str, dict[str, str], float]]:
    families = parse_openmetrics(page + EOF.decode())  # type: ignore[no-untyped-call] # the library has no annotations
    return [(s.name, s.labels, s.value) for family in families for s in family.samples]


def test_text_page_is_as_expected() -> None:
    samples = [
        COUNT(1.5, "user"),
        COUNT(2.0, "idle"),
        INFO(1, "1.0"),
        HISTOGRAM(HistogramValue((0.1, 1.0), (1, 2, 3), 4.25), "x"),
    ]

    assert whole(samples, Format.TEXT) == (
        '# HELP inferwatch_cpu_seconds_total Time "so far".\n'
        "# TYPE inferwatch_cpu_seconds_total counter\n"
        'inferwatch_cpu_seconds_total{mode="user"} 1.5\n'
        'inferwatch_cpu_seconds_total{mode="idle"} 2\n'
        "# HELP inferwatch_build_info What.\n"
        "# TYPE inferwatch_build_info gauge\n"
        'inferwatch_build_info{version="1.0"} 1\n'
        "# HELP inferwatch_wait_seconds A wait.\n"
        "# TYPE inferwatch_wait_seconds histogram\n"
        'inferwatch_wait_seconds_bucket{target="x",le="0.1"} 1\n'
        'inferwatch_wait_seconds_bucket{target="x",le="1.0"} 2\n'
        'inferwatch_wait_seconds_bucket{target="x",le="+Inf"} 3\n'
        'inferwatch_wait_seconds_sum{target="x"} 4.25\n'
        'inferwatch_wait_seconds_count{target="x"} 3\n'
    )


def test_openmetrics_heads_carry_family_name_and_unit() -> None:
    page = whole([COUNT(1, "user"), INFO(1, "1.0")], Format.OPENMETRICS)

    assert "# TYPE inferwatch_cpu_seconds counter\n# UNIT inferwatch_cpu_seconds seconds\n" in page
    assert '# HELP inferwatch_cpu_seconds Time \\"so far\\".' in page
    assert "# TYPE inferwatch_build info\n" in page


def test_series_are_the_same_in_both_forms() -> None:
    samples = [COUNT(1, "user"), LEVEL(0.5, "x", "y"), HISTOGRAM(HistogramValue((0.5, 10.0), (0, 1, 1), 7.0), "t")]

    assert read_text(whole(samples, Format.TEXT)) == read_openmetrics(whole(samples, Format.OPENMETRICS))


@given(st.text(), st.text(), st.floats(allow_nan=False, allow_infinity=False))
def test_any_label_and_value_is_read_back(first: str, second: str, value: float) -> None:
    expected = {"a": first, "b": second}
    samples = [LEVEL(value, first, second)]

    assert read_text(whole(samples, Format.TEXT)) == [("inferwatch_level_ratio", expected, value)]
    assert read_openmetrics(whole(samples, Format.OPENMETRICS)) == [("inferwatch_level_ratio", expected, value)]


def test_lone_surrogate_in_a_label_becomes_the_replacement_character() -> None:
    page = whole([COUNT(1, "a\ud800b")], Format.TEXT)

    assert 'mode="a\N{REPLACEMENT CHARACTER}b"' in page


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_value_that_is_no_finite_number_is_left_out_and_counted(value: float) -> None:
    rendered = Renderer().render([COUNT(value, "user"), COUNT(1, "idle")])

    assert rendered.series == 1
    assert rendered.dropped == 1


def test_repeated_series_is_left_out_and_counted() -> None:
    rendered = Renderer().render([COUNT(1, "user"), COUNT(2, "user")])

    assert rendered.whole(Format.TEXT).raw.endswith(b'{mode="user"} 1\n')
    assert rendered.dropped == 1


def test_histogram_without_a_sum_has_buckets_only_since_openmetrics_has_no_count_without_a_sum() -> None:
    samples = [
        HISTOGRAM(HistogramValue((1.0,), (1, 2), None), "x"),
        HISTOGRAM(HistogramValue((1.0,), (1, 2), 3.0), "y"),
    ]
    lines = read_openmetrics(whole(samples, Format.OPENMETRICS))

    assert lines == read_text(whole(samples, Format.TEXT))
    assert [name for name, labels, _ in lines if labels["target"] == "x"] == ["inferwatch_wait_seconds_bucket"] * 2
    assert len(lines) == 6


@pytest.mark.parametrize(
    "sample",
    [
        COUNT(-5, "idle"),
        COUNT(-1e-9, "idle"),
        INFO(2, "x"),
        INFO(math.nan, "x"),
        HISTOGRAM(HistogramValue((1.0, 2.0), (3, 2, 4), 1.0), "x"),
        HISTOGRAM(HistogramValue((1.0,), (-1, 2), 1.0), "x"),
        HISTOGRAM(HistogramValue((1.0,), (1, 1.5), 1.0), "x"),
        HISTOGRAM(HistogramValue((1.0,), (1, math.nan), 1.0), "x"),
        HISTOGRAM(HistogramValue((1.0,), (1, math.inf), 1.0), "x"),
        HISTOGRAM(HistogramValue((1.0,), (1, 1), -5.0), "x"),
        HISTOGRAM(HistogramValue((1.0,), (1, 1), math.nan), "x"),
        HISTOGRAM(HistogramValue((1.0,), (1, 1), math.inf), "x"),
        HISTOGRAM(HistogramValue((-1.0,), (1, 1), 1.0), "x"),
        HISTOGRAM(HistogramValue((2.0, 1.0), (1, 1, 1), 1.0), "x"),
        HISTOGRAM(HistogramValue((1.0, 1.0), (1, 1, 1), 1.0), "x"),
        HISTOGRAM(HistogramValue((math.inf,), (1, 1), 1.0), "x"),
        HISTOGRAM(HistogramValue((math.nan,), (1, 1), 1.0), "x"),
    ],
    ids=str,
)
def test_value_that_would_make_the_page_invalid_is_left_out_and_counted(sample: Sample) -> None:
    rendered = Renderer().render([sample, COUNT(1, "user")])

    assert (rendered.series, rendered.dropped) == (1, 1)


@pytest.mark.parametrize(
    "sample",
    [
        COUNT(0, "idle"),
        COUNT(-0.0, "idle"),
        LEVEL(-1.5, "x", "y"),
        HISTOGRAM(HistogramValue((), (0,), 0.0), "x"),
        HISTOGRAM(HistogramValue((-1.0, 0.0), (0, 1, 1), None), "x"),
        HISTOGRAM(HistogramValue((0.0, 1.0), (0, 0, 2.0**60), 0.0), "x"),
    ],
    ids=str,
)
def test_unusual_but_valid_value_is_kept(sample: Sample) -> None:
    assert read_openmetrics(whole([sample], Format.OPENMETRICS)) == read_text(whole([sample], Format.TEXT)) != []


NUMBERS = st.floats() | st.sampled_from([-1.0, -0.0, 0.0, 0.5, 1.0, 2.0, 3.0])
HISTOGRAMS = st.lists(NUMBERS, max_size=3).flatmap(
    lambda bounds: st.builds(
        HistogramValue,
        st.just(tuple(bounds)),
        st.tuples(*[NUMBERS] * (len(bounds) + 1)),
        st.none() | NUMBERS,
    )
)
SAMPLES = st.one_of(
    st.builds(COUNT, NUMBERS, st.sampled_from("ab")),
    st.builds(INFO, NUMBERS, st.sampled_from("ab")),
    st.builds(LEVEL, NUMBERS, st.sampled_from("ab"), st.just("")),
    st.builds(HISTOGRAM, HISTOGRAMS, st.sampled_from("ab")),
)


@given(st.lists(SAMPLES, max_size=6))
def test_no_samples_make_a_page_that_can_not_be_read_back(samples: list[Sample]) -> None:
    rendered = Renderer().render(samples)
    text, openmetrics = (rendered.whole(form).raw.decode() for form in (Format.TEXT, Format.OPENMETRICS))

    assert len(read_text(text)) == len(read_openmetrics(openmetrics)) == rendered.series


def test_histogram_whose_bounds_change_gets_new_bucket_lines() -> None:
    renderer = Renderer()
    renderer.render([HISTOGRAM(HistogramValue((1.0, 2.0), (1, 1, 1), 1.0), "x")])

    page = renderer.render([HISTOGRAM(HistogramValue((3.0, 4.0), (1, 1, 1), 1.0), "x")]).whole(Format.TEXT).raw

    assert b'le="3.0"' in page
    assert b'le="1.0"' not in page


def test_renderer_remembers_only_the_series_of_the_last_rendering() -> None:
    renderer = Renderer()
    for number in range(1000):
        renderer.render([COUNT(1, f"mode{number}")])

    assert len(renderer._known) == 1


@given(st.floats(allow_nan=False, allow_infinity=False) | st.integers(-(2**70), 2**70))
def test_value_is_written_so_that_it_reads_back_exactly(value: float) -> None:
    assert float(format_value(value)) == float(value)


@pytest.mark.parametrize(
    ("accept", "expected"),
    [
        (None, Format.TEXT),
        ("", Format.TEXT),
        ("*/*", Format.TEXT),
        ("text/plain", Format.TEXT),
        (PROMETHEUS_2, Format.OPENMETRICS),
        (PROMETHEUS_3, Format.OPENMETRICS),
        ("application/openmetrics-text", Format.OPENMETRICS),
        ("application/openmetrics-text; version=0.0.1", Format.TEXT),
        ("application/openmetrics-text;q=0, text/plain", Format.TEXT),
        ("application/openmetrics-text;q=0.3, text/plain;q=0.9", Format.TEXT),
        ("application/openmetrics-text;q=much", Format.TEXT),
        ("text/html,application/xhtml+xml", Format.TEXT),
        (";;;,,=;q=", Format.TEXT),
    ],
)
def test_form_follows_the_accept_header(accept: str | None, expected: Format) -> None:
    assert choose_format(accept) is expected


@pytest.mark.parametrize(
    ("header", "expected"),
    [(None, False), ("", False), ("gzip", True), ("deflate, gzip;q=0.5", True), ("gzip;q=0", False), ("br", False)],
)
def test_gzip_is_sent_only_to_those_who_take_it(header: str | None, expected: bool) -> None:  # noqa: FBT001 - a table
    assert accepts_gzip(header) is expected


@given(st.text())
def test_no_header_makes_the_choice_fail(header: str) -> None:
    choose_format(header)
    accepts_gzip(header)
