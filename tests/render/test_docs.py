"""The generated parts of the pages."""

from pathlib import Path

import pytest

from inferwatch.engines.registry import TABLES
from inferwatch.engines.rules import EngineTable
from inferwatch.model import Family, Kind
from inferwatch.render.docs import metrics_index, samplers_index, stale_pages
from inferwatch.render.engine_tables import mapping_part
from inferwatch.render.markdown import MarkerError, fill, metrics_table, table
from inferwatch.render.pages import page_of, tables
from inferwatch.runtime import selfmetrics
from inferwatch.samplers import builtin_specs
from inferwatch.spec import SamplerSpec

PAGE = """\
# cpu

<!-- metrics:begin -->
<!-- metrics:end -->

between

<!-- options:begin -->
old
<!-- options:end -->
end
"""
FAMILY = Family("inferwatch_things_total", "Things | seen.", Kind.COUNTER, labels=("kind",))
SPEC = SamplerSpec("cpu", "cpu", "It tells.", "/proc/stat", (FAMILY,), lambda _context: pytest.fail("not run"))


@pytest.fixture(name="root")
def _root(tmp_path: Path) -> Path:
    page = tmp_path / "daemon" / "inferwatch" / "samplers" / "cpu.md"
    page.parent.mkdir(parents=True)
    page.write_text(PAGE, encoding="utf-8")
    return tmp_path


def test_table_makes_pipes_and_line_breaks_harmless() -> None:
    assert table(("a", "b"), [("x|y", "1\n2")]) == "| a | b |\n| --- | --- |\n| x\\|y | 1 2 |"


def test_metrics_are_ordered_by_name() -> None:
    families = [Family(f"inferwatch_{name}", "A thing.", Kind.GAUGE) for name in ("b", "c", "a")]

    lines = metrics_table(families).splitlines()[2:]

    assert [line.split("`")[1] for line in lines] == ["inferwatch_a", "inferwatch_b", "inferwatch_c"]


def test_fill_replaces_what_stands_between_the_markers_and_nothing_else() -> None:
    text = fill(PAGE, "options", "new", "cpu.md")

    assert text == PAGE.replace("old", "\nnew\n")


def test_fill_twice_is_the_same_as_once() -> None:
    once = fill(PAGE, "metrics", "new", "cpu.md")

    assert fill(once, "metrics", "new", "cpu.md") == once


@pytest.mark.parametrize(
    "page",
    [
        "",
        "<!-- x:begin -->",
        "<!-- x:end --><!-- x:begin -->",
        "<!-- x:begin --><!-- x:end --><!-- x:begin --><!-- x:end -->",
    ],
)
def test_missing_or_repeated_marker_is_named(page: str) -> None:
    with pytest.raises(MarkerError, match=r"page.md: expected <!-- x:begin --> and, after it, <!-- x:end -->"):
        fill(page, "x", "body", "page.md")


def test_stale_pages_are_filled_and_then_no_longer_stale(root: Path) -> None:
    stale = stale_pages(root, [SPEC], [])
    for path, text in stale.items():
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")
    page = (root / "daemon/inferwatch/samplers/cpu.md").read_text(encoding="utf-8")

    assert [path.name for path in stale] == ["cpu.md", "samplers.md", "metrics.md"]
    assert "| `inferwatch_things_total` | counter |  | `kind` | Things \\| seen. |" in page
    assert "| `interval_seconds` | not set |" in page
    assert stale_pages(root, [SPEC], []) == {}


def test_missing_page_says_what_to_write(root: Path) -> None:
    (root / "daemon/inferwatch/samplers/cpu.md").unlink()

    with pytest.raises(
        MarkerError, match=r"cpu.md: missing; write the page, with the marker pairs of metrics, options"
    ):
        stale_pages(root, [SPEC], [])


def test_directory_that_is_no_source_tree_is_refused(tmp_path: Path) -> None:
    with pytest.raises(MarkerError, match="not a source tree"):
        stale_pages(tmp_path, [SPEC], [])


def test_indexes_name_every_sampler_and_every_metric() -> None:
    specs = builtin_specs()
    families = {family.name for spec in specs for family in spec.families} | {f.name for f in selfmetrics.FAMILIES}

    assert all(f"samplers/{spec.name}.md)" in samplers_index(specs) for spec in specs)
    assert all(f"`{name}`" in metrics_index(specs) for name in families)


@pytest.mark.parametrize("engine", TABLES, ids=[engine.name for engine in TABLES])
def test_engine_part_names_every_rule_and_everything_left_out(engine: EngineTable) -> None:
    part = mapping_part(engine)

    assert all(f"`{engine.prefixes[0]}{name}`" in part for rule in engine.rules for name in rule.upstream)
    assert all(f"| `{family.name}` |" in part for family in engine.absent)
    assert all(f"{name}`" in part for ignore in engine.ignores for name in ignore.names)


def test_page_of_a_sampler_stands_beside_its_module() -> None:
    cpu = next(spec for spec in builtin_specs() if spec.name == "cpu")

    assert page_of(cpu).startswith("# cpu\n")


def test_sampler_without_a_page_has_its_tables_as_one() -> None:
    foreign = SamplerSpec("foreign", "cpu", "It tells.", "/proc/stat", (FAMILY,), SPEC.create)

    text = page_of(foreign)

    assert text.startswith("# foreign\n\nIt tells. Read from /proc/stat.")
    assert tables(foreign)["metrics"] in text
