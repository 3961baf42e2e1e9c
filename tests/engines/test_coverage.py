import pytest

from golden_files import assert_golden
from inferwatch.engines import llamacpp, schema, vllm
from inferwatch.engines.mapping import Mapped
from inferwatch.engines.rules import HISTOGRAM_PARTS, EngineTable
from inferwatch.model import Family, HistogramValue, Kind, Sample
from support_engine import ENGINES, mapped, parsed

RECORDED = sorted(path.name for path in ENGINES.glob("*.prom") if not path.name.startswith("sglang"))
COMPLETE = [name for name in RECORDED if name not in {"vllm-dp2.prom", "llamacpp-old.prom"}]


def known_series() -> list[tuple[str, str]]:
    lines = (ENGINES / "known-series.txt").read_text().splitlines()
    return [(name, kind) for name, kind in (line.split() for line in lines if line and line[0] != "#")]


def covered(table: EngineTable, name: str) -> str:
    """Return how a table treats a family of the page: `mapped`, `ignored` or nothing."""
    found = table.split(name)
    stem = found[1] if found else name
    if found and any(stem in (*rule.upstream, *rule.plus) for rule in table.rules):
        return "mapped"
    return "ignored" if table.ignores_series(name) else ""


@pytest.mark.parametrize("name", [*RECORDED, "vllm.openmetrics"])
def test_every_series_of_a_page_is_mapped_or_knowingly_ignored(name: str) -> None:
    result = mapped(name)

    assert result.unmapped_names == ()
    assert result.problems == ()


@pytest.mark.parametrize(("name", "kind"), known_series())
def test_every_known_series_is_mapped_or_ignored_with_the_right_kind(name: str, kind: str) -> None:
    table = llamacpp.TABLE if name.startswith("llamacpp:") else vllm.TABLE
    rules = [rule for rule in table.rules if name.rpartition(":")[2] in rule.upstream]

    assert covered(table, name)
    assert {rule.expected.value for rule in rules} <= {kind}


def test_no_known_series_is_listed_twice_in_a_table() -> None:
    for table in (vllm.TABLE, llamacpp.TABLE):
        names = [name for ignore in table.ignores for name in ignore.names]

        assert len(names) == len(set(names))


@pytest.mark.parametrize(
    ("name", "missing"),
    [
        (
            "vllm-0.32-after.prom",
            {schema.SPECULATIVE_DRAFTS, schema.SPECULATIVE_DRAFT_TOKENS, schema.SPECULATIVE_ACCEPTED_TOKENS},
        ),
        ("llamacpp-after.prom", {schema.KV_CACHE_USAGE}),
    ],
)
def test_every_family_is_filled_or_declared_absent_or_known_to_need_something(name: str, missing: set[Family]) -> None:
    table = vllm.TABLE if name.startswith("vllm") else llamacpp.TABLE
    filled = {sample.family for sample in mapped(name).samples}

    assert filled | set(table.absent) | missing == set(schema.MAPPED)
    assert not filled & (set(table.absent) | missing)
    assert mapped(name).absent == len(missing)


@pytest.mark.parametrize("name", COMPLETE)
def test_recorded_page_drops_nothing(name: str) -> None:
    assert mapped(name).dropped == {}


def test_histograms_of_the_page_keep_their_buckets() -> None:
    page = parsed("vllm-0.32-after.prom")
    upstream = sum(series.name == "vllm:time_to_first_token_seconds_bucket" for series, _ in page.series)
    sample = next(one for one in mapped("vllm-0.32-after.prom").samples if one.family is schema.TIME_TO_FIRST_TOKEN)

    assert isinstance(sample.value, HistogramValue)
    assert len(sample.value.counts) == upstream


def test_every_family_name_and_unit_follows_the_house_rules() -> None:
    for family in schema.FAMILIES:
        assert family.name.startswith("inferwatch_engine_")
        assert family.labels[:2] == schema.ENGINE
        if family.kind is Kind.HISTOGRAM:
            assert family.unit in {"seconds", "tokens"}
    assert len({family.name for family in schema.FAMILIES}) == len(schema.FAMILIES)
    assert not any(family.name.endswith(HISTOGRAM_PARTS) for family in schema.FAMILIES)


def line(sample: Sample) -> str:
    labels = ",".join(f'{name}="{value}"' for name, value in zip(sample.family.labels, sample.labels, strict=True))
    value = sample.value
    if isinstance(value, HistogramValue):
        counts = " ".join(
            f"{bound}:{count:.12g}" for bound, count in zip((*value.bounds, "+Inf"), value.counts, strict=True)
        )
        return f"{sample.family.name}{{{labels}}} sum={value.sum!r} {counts}"
    return f"{sample.family.name}{{{labels}}} {value!r}"


def normalised(result: Mapped) -> str:
    facts = [
        *(f"# {metric} <- {upstream}" for metric, upstream in result.used),
        f"# absent {result.absent} unmapped {result.unmapped} dropped {dict(sorted(result.dropped.items()))}",
    ]
    return "\n".join([*facts, *(line(sample) for sample in result.samples)]) + "\n"


@pytest.mark.parametrize("name", [*RECORDED, "vllm.openmetrics"])
def test_normalised_page_is_the_golden_one(name: str) -> None:
    assert_golden(f"engines/{name.removesuffix('.prom')}.txt", normalised(mapped(name)))
