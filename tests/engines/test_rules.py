import pytest

from inferwatch.engines import schema
from inferwatch.engines.registry import TABLES, recognise, table_of
from inferwatch.engines.rules import WATCHED, Combine, EngineTable, Ignore, LabelFrom, Reason, Rule, Take
from inferwatch.model import Family, Kind
from support_engine import ENGINES, parsed

FIXTURES = sorted(path.name for path in ENGINES.iterdir() if path.suffix in {".prom", ".openmetrics"})


def absent(*filled: Rule) -> dict[Family, str]:
    return {family: "No." for family in schema.MAPPED if family not in {rule.family for rule in filled}}


def table(*rules: Rule, **changes: object) -> EngineTable:
    fields: dict[str, object] = {
        "name": "x",
        "title": "X",
        "prefixes": ("x:",),
        "rules": rules,
        "ignores": (),
        "absent": absent(*rules),
        "model_labels": (),
        "enable": "start it with --metrics",
    }
    return EngineTable(**fields | changes)  # type: ignore[arg-type] # fields of several types, by name


@pytest.mark.parametrize("name", ["x_tokens", "x_latency", "queue_x", "x_cache_x", "requests", "preemptions"])
def test_series_that_sounds_like_serving_is_ignored_only_as_a_duplicate_or_with_a_sentence(name: str) -> None:
    with pytest.raises(ValueError, match="sentence of their own"):
        Ignore((name,), Reason.HARDWARE)

    assert Ignore((name,), Reason.HARDWARE, sentence="For a reason.").covers(name)
    assert Ignore((name,), Reason.DUPLICATE, duplicate_of="y").covers(name)


def test_pattern_without_a_sentence_does_not_swallow_what_sounds_like_serving() -> None:
    ignore = Ignore(("gpu_*",), Reason.HARDWARE)

    assert ignore.covers("gpu_power")
    assert not ignore.covers("gpu_cache_usage_perc")


def test_histogram_is_ignored_with_all_its_parts() -> None:
    ignore = Ignore(("block_life_seconds",), Reason.DEBUGGING)

    assert all(ignore.covers(f"block_life_seconds{part}") for part in ("", "_bucket", "_sum", "_count"))
    assert not ignore.covers("block_life_seconds_total")


def test_duplicate_says_of_what_and_nothing_else_does() -> None:
    with pytest.raises(ValueError, match="says of what"):
        Ignore(("x",), Reason.DUPLICATE)
    with pytest.raises(ValueError, match="says of what"):
        Ignore(("x",), Reason.HARDWARE, duplicate_of="y")


def test_sentence_ends_in_a_full_stop() -> None:
    with pytest.raises(ValueError, match="full stop"):
        Ignore(("x",), Reason.HARDWARE, sentence="no stop")


def test_rule_that_makes_no_sense_fails_at_import() -> None:
    with pytest.raises(ValueError, match="can't be summed"):
        Rule(("kv",), schema.KV_CACHE_USAGE)
    with pytest.raises(ValueError, match="gives labels"):
        Rule(("done",), schema.REQUESTS)
    with pytest.raises(ValueError, match="at least one"):
        Rule((), schema.PREEMPTIONS)
    with pytest.raises(ValueError, match=r"Take\.LABELS"):
        Rule(("info",), schema.KV_CACHE_CAPACITY, take=Take.LABELS)


def test_table_says_of_every_family_whether_it_is_filled_or_why_not() -> None:
    rule = Rule(("waiting",), schema.REQUESTS_WAITING)

    assert table(rule).rules == (rule,)
    with pytest.raises(ValueError, match="neither mapped nor declared absent"):
        table(rule, absent={})
    with pytest.raises(ValueError, match="mapped and declared absent"):
        table(rule, absent=absent())


def test_two_rules_may_fill_different_series_of_a_family_but_not_the_same() -> None:
    good = Rule(("ok",), schema.REQUESTS, labels={"outcome": "success"})
    bad = Rule(("err",), schema.REQUESTS, labels={"outcome": "failed"})

    assert table(good, bad).rules == (good, bad)
    with pytest.raises(ValueError, match="two rules fill the same series"):
        table(good, Rule(("fine",), schema.REQUESTS, labels={"outcome": "success"}))


@pytest.mark.parametrize("engine", TABLES, ids=lambda engine: engine.name)
def test_built_in_table_ignores_with_reasons_and_explains_what_is_absent(engine: EngineTable) -> None:
    for ignore in engine.ignores:
        names = [name for name in ignore.names if WATCHED.search(name)]
        assert not names or ignore.duplicate_of or ignore.sentence
    assert all(sentence.endswith(".") for sentence in engine.absent.values())
    mapped = {name for rule in engine.rules for name in (*rule.upstream, *rule.plus)}
    assert not [name for name in mapped for ignore in engine.ignores if not ignore.foreign and ignore.covers(name)]


@pytest.mark.parametrize(
    ("name", "engine"), [(name, name.split("-")[0].split(".")[0]) for name in FIXTURES if not name.startswith("sglang")]
)
def test_page_is_recognised_by_its_series(name: str, engine: str) -> None:
    found = recognise(parsed(name))

    assert found is not None
    assert found.name == engine


@pytest.mark.parametrize(
    "page",
    [
        b"up 1\n",
        b"vllm_router_requests_total 5\n",  # the prefix alone is not enough
        b"process_cpu_seconds_total 5\nhttp_requests_total 1\n",
        b"num_requests_running 5\n",
    ],
)
def test_page_of_another_program_is_recognised_as_none(page: bytes) -> None:
    assert recognise(parsed(page)) is None
    assert recognise(parsed("sglang-0.5.23.prom")) is None


def test_table_is_found_by_name() -> None:
    assert [table_of(one.name) for one in TABLES] == list(TABLES)
    assert table_of("nope") is None


def test_combine_of_a_ratio_and_labels_of_a_rule_are_kept() -> None:
    rule = Rule(("kv",), schema.KV_CACHE_USAGE, combine=Combine.MAX)
    rejected = Rule(("rejected_total",), schema.REJECTIONS, labels={"reason": LabelFrom("why")})

    assert (rule.expected, rejected.expected) == (Kind.GAUGE, Kind.COUNTER)
    assert rejected.spellings("rejected_total") == ("rejected_total", "rejected")
    assert rule.spellings("kv") == ("kv",)
