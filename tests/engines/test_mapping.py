import math
from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from prometheus_client.openmetrics.parser import text_string_to_metric_families as parse_openmetrics
from prometheus_client.parser import text_string_to_metric_families as parse_text

from inferwatch.engines import llamacpp, schema, vllm
from inferwatch.engines.labels import CALM_PAGES
from inferwatch.engines.mapping import MAX_KEPT_CHARACTERS, Mapper
from inferwatch.engines.registry import TABLES
from inferwatch.engines.rules import Combine, EngineTable, Ignore, LabelFrom, Reason, Rule
from inferwatch.errors import ParseError
from inferwatch.exposition import EOF, Format, Renderer
from inferwatch.model import HistogramValue, Kind, ParsedPage, Sample, SeriesId
from inferwatch.sources.openmetrics import PageParser
from strategies import mutated_tokens
from support_engine import ENGINES, TEXT, Scrapes, figures, histograms, mapped, parsed

VLLM = vllm.TABLE
KV = "kv_cache_usage_ratio"


def custom(*rules: Rule, ignores: Sequence[Ignore] = ()) -> EngineTable:
    filled = {rule.family for rule in rules}
    absent = {family: "No." for family in schema.MAPPED if family not in filled}
    return EngineTable("x", "X", ("x:",), rules, tuple(ignores), absent, ("model_name",), "do something")


def histogram(name: str, labels: str = "", **changes: str) -> bytes:
    """Return a good histogram's lines; `changes` replace values, None-like empty text leaves a line out."""
    parts = {"0.1": "1", "1.0": "3", "+Inf": "4", "count": "4", "sum": "2.5"} | changes
    lines = [
        f'{name}_bucket{{le="{key}"{labels and ","}{labels}}} {value}\n'
        if key[0] in "+0123456789"
        else f"{name}_{key}{{{labels}}} {value}\n"
        for key, value in parts.items()
        if value
    ]
    return "".join(lines).encode()


# Names that changed --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "page",
    [
        b"vllm:kv_cache_usage_perc 0.42\n",
        b"vllm:gpu_cache_usage_perc 0.42\n",
        b"vllm:gpu_cache_usage_perc 0.40\nvllm:kv_cache_usage_perc 0.42\n",
    ],
    ids=["new name", "old name", "both"],
)
def test_renamed_gauge_gives_one_value_and_the_new_name_wins(page: bytes) -> None:
    assert figures(mapped(page), KV) == {("",): 0.42}


def test_models_that_name_the_same_thing_differently_keep_their_values() -> None:
    old = b'vllm:gpu_cache_usage_perc{model_name="a"} 0.4\n'
    new = b'vllm:kv_cache_usage_perc{model_name="b"} 0.5\n'
    result = mapped(old + new)

    assert figures(result, KV) == {("a",): 0.4, ("b",): 0.5}
    assert {upstream for _, upstream in result.used} == {"vllm:gpu_cache_usage_perc", "vllm:kv_cache_usage_perc"}
    assert result.dropped == {}


def test_model_that_has_both_names_has_one_value_and_the_new_name_wins() -> None:
    page = "".join(
        f'vllm:{name}_cache_usage_perc{{model_name="{model}"}} {value}\n'
        for name, model, value in [("gpu", "a", 0.1), ("kv", "a", 0.2), ("gpu", "b", 0.3), ("kv", "c", 0.4)]
    )

    assert figures(mapped(page.encode()), KV) == {("a",): 0.2, ("b",): 0.3, ("c",): 0.4}


def test_series_without_a_model_is_the_same_as_the_only_models_when_the_new_name_is_chosen() -> None:
    page = b'vllm:gpu_cache_usage_perc 0.4\nvllm:kv_cache_usage_perc{model_name="a"} 0.5\n'

    assert figures(mapped(page), KV) == {("a",): 0.5}


def test_what_is_added_to_a_series_belongs_to_the_labels_that_have_it() -> None:
    table = custom(Rule(("computed_total",), schema.PROMPT_TOKENS, plus=("cached_total",)))
    page = b'x:computed_total{model_name="a"} 5\nx:cached_total{model_name="a"} 2\nx:cached_total{model_name="b"} 9\n'

    assert figures(mapped(page, table), "prompt_tokens_total") == {("a",): 7}


def test_old_name_is_read_when_the_new_one_has_no_number() -> None:
    assert figures(mapped(b"vllm:kv_cache_usage_perc NaN\nvllm:gpu_cache_usage_perc 0.4\n"), KV) == {("",): 0.4}


def test_missing_metric_is_absent_and_never_zero_and_its_unknown_name_is_counted() -> None:
    known = b"vllm:num_requests_running 1\n"
    with_kv, without = mapped(known + b"vllm:kv_cache_usage_perc 0.4\n"), mapped(known + b"vllm:kv_cache_fill 0.4\n")

    assert figures(without, KV) == {}
    assert (with_kv.unmapped, without.unmapped) == (0, 1)
    assert without.unmapped_names == ("vllm:kv_cache_fill",)
    assert without.absent == with_kv.absent + 1


def test_time_per_output_token_of_old_releases_is_the_inter_token_latency() -> None:
    result = mapped(histogram("vllm:time_per_output_token_seconds"))

    assert histograms(result, "inter_token_latency_seconds").keys() == {("",)}
    assert histograms(result, "time_per_output_token_seconds") == {}


def test_inter_token_latency_and_per_request_tpot_of_new_releases_are_kept_apart() -> None:
    new = histogram("vllm:inter_token_latency_seconds")
    result = mapped(new + histogram("vllm:request_time_per_output_token_seconds", sum="9"))

    assert histograms(result, "inter_token_latency_seconds")["",].sum == 2.5
    assert histograms(result, "time_per_output_token_seconds")["",].sum == 9


def test_page_with_old_and_new_histogram_gives_one_set_of_series() -> None:
    new = histogram("vllm:inter_token_latency_seconds")
    result = mapped(histogram("vllm:time_per_output_token_seconds", count="40", **{"+Inf": "40"}) + new)

    assert [one.counts for one in histograms(result, "inter_token_latency_seconds").values()] == [(1, 3, 4)]
    assert ("inferwatch_engine_inter_token_latency_seconds", "vllm:inter_token_latency_seconds") in result.used
    assert "vllm:time_per_output_token_seconds" not in {upstream for _, upstream in result.used}


@pytest.mark.parametrize(
    "page",
    [
        b"vllm:num_preemptions_total 7\n",
        b"vllm:num_preemptions 7\n",
        b"# TYPE vllm:num_preemptions counter\nvllm:num_preemptions 7\n",
        b"# TYPE vllm:num_preemptions counter\nvllm:num_preemptions_total 7\n",
        b"# TYPE vllm:num_preemptions_total counter\nvllm:num_preemptions_total 7\nvllm:num_preemptions_created 1e9\n",
    ],
)
def test_counter_is_found_with_and_without_total(page: bytes) -> None:
    assert figures(mapped(page), "preemptions_total") == {("",): 7}


def test_counter_is_found_in_openmetrics_form() -> None:
    assert figures(mapped("vllm.openmetrics"), "preemptions_total") == {("tiny",): 7}


def test_prefixes_are_one_engine_and_the_usual_one_wins() -> None:
    ray = b'ray_vllm:num_requests_running{model_name="m",NodeAddress="10.0.0.1",WorkerId="abc"} 3\n'
    underscored = ray.replace(b"ray_vllm:", b"ray_vllm_")
    both = ray.replace(b" 3", b" 4") + b'vllm:num_requests_running{model_name="m"} 3\n'

    assert [figures(mapped(page), "requests_running") for page in (ray, underscored, both)] == [{("m",): 3}] * 3


# Kinds ---------------------------------------------------------------------------------------------------------------


def test_histogram_whose_name_ends_in_total_is_not_read_as_a_counter() -> None:
    table = custom(Rule(("iteration_tokens_total",), schema.GENERATION_TOKENS))
    page = b"# TYPE x:iteration_tokens_total histogram\n" + histogram("x:iteration_tokens_total")

    assert mapped(page, table).samples == ()
    assert figures(mapped(page.replace(b"x:", b"vllm:"), VLLM), "steps_total") == {("",): 4}


def test_series_of_another_kind_than_expected_is_left_out_counted_and_told() -> None:
    result = mapped(b"# TYPE vllm:num_preemptions_total gauge\nvllm:num_preemptions_total 7\n", VLLM)

    assert result.samples == ()
    assert result.dropped == {"kind_mismatch": 1}
    assert "vllm:num_preemptions_total is a gauge on the page, expected a counter" in result.problems


def test_series_without_a_type_is_judged_by_its_shape() -> None:
    assert figures(
        mapped(b"# TYPE vllm:num_preemptions_total untyped\nvllm:num_preemptions_total 7\n"), "preemptions_total"
    )
    assert not histograms(mapped(b"vllm:time_to_first_token_seconds 4\n", VLLM), "time_to_first_token_seconds")


# Values that can't be true -------------------------------------------------------------------------------------------


def test_value_that_is_not_a_number_is_dropped_and_counted_and_the_page_is_kept() -> None:
    result = mapped("llamacpp-old.prom")

    assert result.dropped == {"not_finite": 1}
    assert figures(result, "generation_tokens_total") == {("",): 0}
    assert all(math.isfinite(sample.value) for sample in result.samples if not isinstance(sample.value, HistogramValue))


@pytest.mark.parametrize("value", ["95", "1.51", "-0.1"])
def test_ratio_that_is_a_percentage_is_rejected_counted_and_told(value: str) -> None:
    result = mapped(f"vllm:kv_cache_usage_perc {value}\nvllm:num_requests_running 1\n".encode())

    assert figures(result, KV) == {}
    assert figures(result, "requests_running") == {("",): 1}
    assert result.dropped == {"out_of_range": 1}
    assert f"vllm:kv_cache_usage_perc is {value}, expected a ratio" in result.problems[0]


def test_ratio_is_rescaled_where_the_table_says_so() -> None:
    percent = custom(Rule(("kv_percent",), schema.KV_CACHE_USAGE, scale=0.01, combine=Combine.MAX))

    assert figures(mapped(b"x:kv_percent 95\n", percent), KV) == {("",): pytest.approx(0.95)}
    assert figures(mapped(b"x:kv_percent 9500\n", percent), KV) == {}


def test_ratio_a_little_above_one_is_kept() -> None:
    assert figures(mapped(b"vllm:kv_cache_usage_perc 1.0001\n"), KV) == {("",): 1.0001}


BLANKS_32_BIT = ["4294967295", "2147483632", "2147483635"]
BLANKS_64_BIT = ["9223372036854775794", "140737488355328.0", "140737488355331.0", "18446744073709551615"]


@pytest.mark.parametrize("value", [*BLANKS_32_BIT, *BLANKS_64_BIT])
def test_sentinel_of_a_gauge_is_dropped_and_counted(value: str) -> None:
    result = mapped(f"vllm:num_requests_waiting {value}\nvllm:num_requests_running 1\n".encode())

    assert figures(result, "requests_waiting") == {}
    assert figures(result, "requests_running") == {("",): 1}
    assert result.dropped == {"sentinel": 1}


@pytest.mark.parametrize("value", BLANKS_64_BIT)
def test_large_sentinel_of_a_counter_is_dropped_and_counted(value: str) -> None:
    result = mapped(f"vllm:generation_tokens_total {value}\nvllm:num_requests_running 1\n".encode())

    assert figures(result, "generation_tokens_total") == {}
    assert result.dropped == {"sentinel": 1}


@pytest.mark.parametrize("value", BLANKS_32_BIT)
def test_counter_that_honestly_passes_a_32_bit_sentinel_is_kept(value: str) -> None:
    result = mapped(f"vllm:generation_tokens_total {value}\n".encode())

    assert figures(result, "generation_tokens_total") == {("",): float(value)}
    assert result.dropped == {}


@pytest.mark.parametrize("value", ["None", "-nan(ind)", "null"])
def test_value_that_is_a_word_for_no_number_is_dropped_and_counted_and_the_page_is_kept(value: str) -> None:
    result = mapped(f"vllm:kv_cache_usage_perc {value}\nvllm:num_requests_running 1\n".encode())

    assert figures(result, KV) == {}
    assert figures(result, "requests_running") == {("",): 1}
    assert result.dropped == {"not_finite": 1}


def test_negative_counter_is_dropped_and_counted() -> None:
    result = mapped(b"vllm:generation_tokens_total -5\n", VLLM)

    assert result.samples == ()
    assert result.dropped == {"out_of_range": 1}


@pytest.mark.parametrize(
    "changes",
    [
        {"1.0": "0"},
        {"+Inf": ""},
        {"count": "5"},
        {"0.1": "-1"},
        {"x": "1"},
        {"+Inf": "2"},
        {"sum": "-5"},
        {"0.1": "0.5"},
        {"+Inf": "1e19", "count": "1e19"},
        {"y": "0"},
        {"z": "0"},
    ],
    ids=[
        "counts fall",
        "no +Inf",
        "count is not that of +Inf",
        "negative",
        "le is no number",
        "+Inf is below",
        "negative sum",
        "count with a fraction",
        "count that nobody counts to",
        "negative bound",
        "bound below all",
    ],
)
def test_broken_histogram_is_dropped_and_counted(changes: dict[str, str]) -> None:
    page = histogram("vllm:time_to_first_token_seconds", **changes).replace(b"_x{", b'_bucket{le="x",')
    page = page.replace(b"_y{", b'_bucket{le="-1",').replace(b"_z{", b'_bucket{le="-Inf",')
    result = mapped(page + b"vllm:num_requests_running 1\n")

    assert histograms(result, "time_to_first_token_seconds") == {}
    assert figures(result, "requests_running") == {("",): 1}
    assert result.dropped == {"broken_histogram": 1}


def test_histogram_keeps_the_upstream_buckets_in_any_order_and_may_lack_sum_and_count() -> None:
    good = HistogramValue((0.1, 1.0), (1, 3, 4), 2.5)
    lines = histogram("vllm:time_to_first_token_seconds").splitlines(keepends=True)
    bare = histogram("vllm:time_to_first_token_seconds", count="", sum="")

    assert histograms(mapped(b"".join(lines)), "time_to_first_token_seconds") == {("",): good}
    assert histograms(mapped(b"".join(reversed(lines))), "time_to_first_token_seconds") == {("",): good}
    assert histograms(mapped(bare), "time_to_first_token_seconds")["",] == HistogramValue((0.1, 1.0), (1, 3, 4), None)


def test_scale_applies_to_bounds_and_sum_of_a_histogram() -> None:
    table = custom(Rule(("ttft_ms",), schema.TIME_TO_FIRST_TOKEN, scale=0.001))
    page = b'x:ttft_ms_bucket{le="3"} 1\nx:ttft_ms_bucket{le="+Inf"} 2\nx:ttft_ms_sum 500\nx:ttft_ms_count 2\n'

    assert histograms(mapped(page, table), "time_to_first_token_seconds") == {
        ("",): HistogramValue((0.003,), (1, 2), 0.5)
    }


# Several series for one ----------------------------------------------------------------------------------------------


def test_data_parallel_ranks_are_summed_and_the_fullest_kv_cache_counts() -> None:
    result = mapped("vllm-dp2.prom")

    assert figures(result, "requests_running") == {("tiny",): 8}
    assert figures(result, "requests_waiting") == {("tiny",): 1}
    assert figures(result, KV) == {("tiny",): 0.9}
    assert figures(result, "generation_tokens_total") == {("tiny",): 1500}
    assert figures(result, "kv_cache_capacity_tokens") == {("tiny",): 32_000}
    merged = HistogramValue((0.1, 1.0), (5, 11, 12), 6.0)
    assert histograms(result, "time_to_first_token_seconds") == {("tiny",): merged}


def test_histograms_with_different_buckets_are_not_added_up() -> None:
    name = "vllm:time_to_first_token_seconds"
    other = histogram(name, 'engine="1"').replace(b'le="0.1"', b'le="0.2"')
    result = mapped(histogram(name, 'engine="0"') + other)

    assert histograms(result, "time_to_first_token_seconds")["",].counts == (1, 3, 4)
    assert result.dropped == {"broken_histogram": 1}


def test_counter_that_falls_is_passed_on_as_it_is() -> None:
    scrapes = Scrapes(VLLM)
    seen = [
        figures(scrapes(b"vllm:generation_tokens_total %d\n" % value), "generation_tokens_total")
        for value in (100, 90, 95)
    ]

    assert seen == [{("",): 100}, {("",): 90}, {("",): 95}]


def test_restart_of_one_rank_does_not_make_the_sum_fall() -> None:
    scrapes = Scrapes(VLLM)
    page = b'vllm:generation_tokens_total{engine="0"} %d\nvllm:generation_tokens_total{engine="1"} %d\n'
    pages = [page % counts for counts in ((1000, 500), (1010, 3), (1020, 5))] + [page.splitlines(True)[0] % 1020]
    seen = [figures(scrapes(page), "generation_tokens_total")["",] for page in pages]

    assert seen == [1500, 1513, 1525, 1525]


def test_restart_of_one_rank_does_not_make_a_histogram_fall() -> None:
    scrapes = Scrapes(VLLM)
    name = "vllm:time_to_first_token_seconds"
    scrapes(histogram(name, 'engine="0"') + histogram(name, 'engine="1"'))
    fresh = histogram(name, 'engine="1"', **{"0.1": "0", "1.0": "1", "+Inf": "1", "count": "1", "sum": "0.5"})
    result = scrapes(histogram(name, 'engine="0"') + fresh)

    assert histograms(result, "time_to_first_token_seconds") == {("",): HistogramValue((0.1, 1.0), (2, 7, 9), 5.5)}


def test_upstream_series_can_be_added_to_another_and_selected_by_a_label() -> None:
    both = custom(
        Rule(("computed_total",), schema.PROMPT_TOKENS, plus=("cached_total",)),
        Rule(("state",), schema.REQUESTS_RUNNING, where={"kind": "active"}),
        Rule(("state",), schema.REQUESTS_WAITING, where={"kind": "waiting"}),
    )
    result = mapped(b'x:computed_total 5\nx:cached_total 2\nx:state{kind="active"} 3\nx:state{kind="new"} 9\n', both)

    assert figures(result, "prompt_tokens_total") == {("",): 7}
    assert figures(result, "requests_running") == {("",): 3}
    assert figures(result, "requests_waiting") == {}
    assert result.unmapped_names == ("x:state",)
    assert figures(mapped(b"x:cached_total 2\n", both), "prompt_tokens_total") == {}


# Labels --------------------------------------------------------------------------------------------------------------


def test_series_without_a_model_belongs_to_the_only_one_on_the_page() -> None:
    info = b'vllm:cache_config_info{num_gpu_blocks="10",block_size="16"} 1\n'
    one = b'vllm:num_requests_running{model_name="a"} 1\n'

    assert figures(mapped(info + one), "kv_cache_capacity_tokens") == {("a",): 160}
    assert figures(mapped(info + one + one.replace(b'"a"', b'"b"')), "kv_cache_capacity_tokens") == {("",): 160}


@pytest.mark.parametrize(
    "labels", ['num_gpu_blocks="None",block_size="16"', 'num_gpu_blocks="0",block_size="16"', 'a="b"']
)
def test_capacity_that_the_configuration_does_not_tell_is_absent(labels: str) -> None:
    assert figures(mapped(f"vllm:cache_config_info{{{labels}}} 1\n".encode()), "kv_cache_capacity_tokens") == {}


def test_finish_reasons_are_outcomes_and_an_unknown_one_is_other() -> None:
    reasons = {"stop": 9, "length": 7, "repetition": 1, "abort": 2, "error": 3, "new": 4}
    page = "".join(f'vllm:request_success_total{{finished_reason="{why}"}} {count}\n' for why, count in reasons.items())

    expected = {("", "success"): 17, ("", "aborted"): 2, ("", "failed"): 3, ("", "other"): 4}
    assert figures(mapped(page.encode()), "requests_total") == expected


def models(names: Sequence[str]) -> ParsedPage:
    series = [
        (SeriesId("vllm:generation_tokens_total", (("engine", "0"), ("model_name", name))), 1.0) for name in names
    ]
    return ParsedPage(series, {}, {})


def test_fifty_thousand_models_become_the_cap_and_other_and_are_counted() -> None:
    mapper = Mapper(VLLM, "t", label_value_limit=500)
    page = models([f"model-{number}" for number in range(50_000)])
    for _ in range(2):
        result = mapper.map(page)

        values = figures(result, "generation_tokens_total")
        assert len(values) == 501
        assert values["other",] == 49_500
        assert result.dropped == {"label_limit": 49_500}


def shown_models(mapper: Mapper, *names: str) -> set[str]:
    return {model for (model,) in figures(mapper.map(models(names)), "generation_tokens_total")}


def test_models_that_are_gone_make_room_for_new_ones_after_a_while() -> None:
    mapper = Mapper(VLLM, "t", label_value_limit=2)
    shown_models(mapper, "a", "b")
    seen = [shown_models(mapper, "b", "c") for _ in range(CALM_PAGES + 1)]

    assert seen == [{"b", "other"}] * CALM_PAGES + [{"b", "c"}]


def test_models_that_do_not_fit_are_other_on_every_page_however_they_change() -> None:
    mapper = Mapper(VLLM, "t", label_value_limit=50)
    seen: set[str] = set()
    for page in range(2 * CALM_PAGES):
        seen |= shown_models(mapper, *(f"model-{page}-{number}" for number in range(300)))

    assert len(seen) == 51


def test_models_that_fit_but_change_at_each_scrape_make_few_series() -> None:
    mapper = Mapper(VLLM, "t", label_value_limit=10)
    seen: set[str] = set()
    for page in range(4 * CALM_PAGES):
        seen |= shown_models(mapper, *(f"model-{page}-{number}" for number in range(10)))

    assert len(seen) <= 4 * 10 + 1


def test_model_that_was_admitted_stays_when_others_are_folded() -> None:
    mapper = Mapper(VLLM, "t", label_value_limit=2)
    seen = [shown_models(mapper, *names) for names in (["a", "b"], ["c", "d", "a", "b"], ["c", "d", "e"], ["e", "b"])]

    assert seen == [{"a", "b"}, {"a", "b", "other"}, {"other"}, {"b", "other"}]


def test_other_open_labels_make_room_too() -> None:
    scrapes = Scrapes(VLLM, label_value_limit=2)

    def reasons(*names: str) -> set[str]:
        page = "".join(f'vllm:admission_rejections_total{{reason="{name}"}} 1\n' for name in names)
        return {reason for _, reason in figures(scrapes(page.encode()), "rejections_total")}

    reasons("a", "b", "c")
    seen = [reasons("c", "a") for _ in range(CALM_PAGES + 1)]

    assert (seen[0], seen[-1]) == ({"a", "other"}, {"a", "c"})


def test_cap_holds_for_other_open_labels_too() -> None:
    page = "".join(f'vllm:admission_rejections_total{{reason="r{number}"}} 1\n' for number in range(20))
    result = Mapper(VLLM, "t", label_value_limit=10).map(parsed(page.encode()))

    assert figures(result, "rejections_total")["", "other"] == 10
    assert result.dropped == {"label_limit": 10}


def test_overlong_label_value_is_cut() -> None:
    assert [
        len(model) for (model,) in figures(Mapper(VLLM, "t").map(models(["x" * 5000])), "generation_tokens_total")
    ] == [256]


def test_memory_is_bounded_when_series_come_and_go() -> None:
    mapper = Mapper(VLLM, "t", label_value_limit=50)
    for number in range(100):
        mapper.map(models([f"m-{number}-{index}" for index in range(50)]))

    assert len(mapper._plans) <= 2 * 50 + 1024 + 50
    assert len(mapper._classifier._groups) <= 2 * 50 + 1024 + 50


def test_memory_is_bounded_when_overlong_series_come_and_go() -> None:
    mapper = Mapper(VLLM, "t")
    for number in range(60):
        names = [f"m-{number}-{index}-" + "x" * 10_000 for index in range(100)]
        mapper.map(models(names))

    kept = sum(len(plan.series.labels[1][1]) for plan in mapper._plans.values())
    assert kept <= MAX_KEPT_CHARACTERS + 1_100_000


# Whatever the page holds ---------------------------------------------------------------------------------------------


def check(mapper: Mapper, page: ParsedPage) -> None:
    result = mapper.map(page)
    labels = [(sample.family.name, sample.labels) for sample in result.samples]

    assert len(set(labels)) == len(labels)
    for sample in result.samples:
        assert sample.family in schema.MAPPED
        assert sample == sample.family(sample.value, *sample.labels)
        if isinstance(sample.value, HistogramValue):
            assert list(sample.value.counts) == sorted(sample.value.counts)
            values = [*sample.value.bounds, *sample.value.counts, sample.value.sum or 0.0]
        else:
            values = [sample.value]
        assert all(math.isfinite(value) for value in values)
    assert set(result.dropped) <= set(schema.DROP_REASONS)
    check_rendered(result.samples)


def check_rendered(samples: Sequence[Sample]) -> None:
    """Render both forms of the page and let the client library read them back."""
    rendered = Renderer().render(samples)
    text = rendered.whole(Format.TEXT).raw.decode()
    openmetrics = (rendered.whole(Format.OPENMETRICS).raw + EOF).decode()
    read_text = [one for family in parse_text(text) for one in family.samples]
    read = [one for family in parse_openmetrics(openmetrics) for one in family.samples]  # type: ignore[no-untyped-call] # the library's parser is not typed

    assert rendered.dropped == 0
    assert len(read) == len(read_text) == rendered.series


NAMES = sorted({name for table in TABLES for rule in table.rules for name in (*rule.upstream, *rule.plus)})
SERIES = st.builds(
    SeriesId,
    st.builds(
        "{}{}{}".format,
        st.sampled_from(["vllm:", "vllm_", "ray_vllm:", "llamacpp:", ""]),
        st.sampled_from(NAMES),
        st.sampled_from(["", "", "_total", "_bucket", "_bucket", "_sum", "_count", "_created"]),
    ),
    st.dictionaries(
        st.sampled_from(["le", "engine", "model_name", "finished_reason", "reason", "block_size", "num_gpu_blocks"]),
        st.sampled_from(["", "0", "1", "1.0", "+Inf", "-Inf", "NaN", "a", "stop", "1e400", "other"])
        | st.text(max_size=3),
        max_size=4,
    ).map(lambda labels: tuple(labels.items())),
)
FLOATS = st.floats(allow_nan=False, allow_infinity=False) | st.sampled_from([0.0, 1.0, 2.0, 1.7e308, -1.7e308])
HOSTILE = st.builds(
    ParsedPage,
    st.dictionaries(SERIES, FLOATS, max_size=30).map(lambda found: list(found.items())),
    st.dictionaries(
        st.builds("vllm:{}".format, st.sampled_from(NAMES)),
        st.sampled_from(["counter", "gauge", "histogram", "summary", "?"]),
    ),
    st.just({}),
)


@given(st.lists(HOSTILE, min_size=1, max_size=4), st.sampled_from(TABLES))
@settings(deadline=None)
def test_no_page_makes_the_mapper_raise_or_give_samples_that_are_not_valid(
    pages: list[ParsedPage], table: EngineTable
) -> None:
    mapper = Mapper(table, "t", label_value_limit=3)
    for page in pages:
        check(mapper, page)


MID = (
    b"".join(
        line
        for line in (ENGINES / "vllm-0.32-mid.prom").read_bytes().splitlines(keepends=True)
        if b"vllm:" in line and b"_created" not in line
    )[:8000].rpartition(b"\n")[0]
    + b"\n"
)


HISTOGRAM_NAMES = st.sampled_from(["vllm:time_to_first_token_seconds", "vllm:request_prompt_tokens"])
HISTOGRAM_VALUES = st.sampled_from(["-5", "-0.0", "0", "1", "1.5", "2", "3", "1e300", "-1e-9", "9e18", ""])
EDGES = st.sampled_from(["-Inf", "-1", "-0.0", "0", "0.1", "1", "1.0", "1e-320", "+Inf", "+Inf", "x"])


@st.composite
def histogram_pages(draw: st.DrawFn) -> bytes:
    lines = []
    for name in draw(st.lists(HISTOGRAM_NAMES, min_size=1, max_size=2)):
        rank = draw(st.sampled_from(["0", "1"]))
        for edge in draw(st.lists(EDGES, max_size=4)):
            lines.append(f'{name}_bucket{{engine="{rank}",le="{edge}"}} {draw(HISTOGRAM_VALUES)}')  # noqa: PERF401 - draws
        for part in ("sum", "count"):
            lines.append(f'{name}_{part}{{engine="{rank}"}} {draw(HISTOGRAM_VALUES)}')  # noqa: PERF401 - draws
    return ("\n".join(line for line in lines if not line.endswith(" ")) + "\nend 1\n").encode()


@given(st.lists(histogram_pages(), min_size=1, max_size=3))
@settings(deadline=None)
def test_no_histogram_of_a_page_makes_our_page_invalid(pages: list[bytes]) -> None:
    parser, mapper = PageParser(), Mapper(VLLM, "t")
    for page in pages:
        check(mapper, parser.parse(page, TEXT))


@given(st.lists(mutated_tokens(MID), min_size=1, max_size=3))
@settings(deadline=None, max_examples=30)
def test_damaged_pages_in_a_row_give_valid_samples(pages: list[bytes]) -> None:
    parser, mapper = PageParser(), Mapper(VLLM, "t")
    check(mapper, parser.parse(MID, TEXT))
    for body in pages:
        try:
            page = parser.parse(body, TEXT)
        except ParseError:
            continue
        check(mapper, page)


def test_what_is_ignored_is_not_counted_as_unmapped() -> None:
    table = custom(
        Rule(("running",), schema.REQUESTS_RUNNING),
        ignores=[
            Ignore(("power_watts",), Reason.HARDWARE),
            Ignore(("python_*",), Reason.RUNTIME, foreign=True),
        ],
    )
    result = mapped(b"x:running 1\nx:power_watts 5\npython_info 1\nx:python_info 1\npower_watts 1\nx:new 1\n", table)

    assert result.unmapped == 3
    assert result.unmapped_names == ("power_watts", "x:new", "x:python_info")


def test_label_from_an_upstream_label_that_is_missing_is_empty() -> None:
    table = custom(Rule(("rejected_total",), schema.REJECTIONS, labels={"reason": LabelFrom("why")}))

    assert figures(mapped(b"x:rejected_total 1\n", table), "rejections_total") == {("", ""): 1}


def test_first_of_several_is_taken_where_the_rule_says_so() -> None:
    table = custom(Rule(("running",), schema.REQUESTS_RUNNING, combine=Combine.FIRST, kind=Kind.GAUGE))

    assert figures(mapped(b'x:running{r="1"} 4\nx:running{r="0"} 2\n', table), "requests_running") == {("",): 4}


def test_llamacpp_has_no_model_label_until_something_else_tells_the_model() -> None:
    assert mapped("llamacpp-mid.prom").models == ("",)
    assert llamacpp.TABLE.model_labels == ()


def test_configured_model_names_the_series_of_a_page_that_names_none() -> None:
    page = PageParser().parse((ENGINES / "llamacpp-after.prom").read_bytes(), TEXT)

    found = Mapper(llamacpp.TABLE, "t", model="llama").map(page)

    assert found.models == ("llama",)


def test_model_on_the_page_wins_over_the_configured_one() -> None:
    page = PageParser().parse((ENGINES / "vllm-0.32-after.prom").read_bytes(), TEXT)

    assert Mapper(VLLM, "t", model="configured").map(page).models == ("tiny",)
