"""Every PromQL query on the pages is one that a real Prometheus takes, about metrics that there are."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from inferwatch.model import Kind
from inferwatch.runtime.discovery import find_samplers
from inferwatch.runtime.selfmetrics import FAMILIES
from support_process import ROOT, agent, prometheus

PAGES = [*(ROOT / "docs").glob("*.md"), *(ROOT / "daemon" / "inferwatch" / "samplers").glob("*.md")]


def queries() -> Iterator[tuple[str, str]]:
    """Yield page and query of each block."""
    for page in sorted(PAGES):
        for query in re.findall(r"^```promql\n(.*?)^```$", page.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE):
            yield page.name, query


def series_names() -> set[str]:
    families = [*FAMILIES, *(family for spec in find_samplers().specs.values() for family in spec.families)]
    histograms = [family.name for family in families if family.kind is Kind.HISTOGRAM]
    return {family.name for family in families} | {f"{n}{s}" for n in histograms for s in ("_bucket", "_sum", "_count")}


def test_there_are_queries() -> None:
    assert {"reading.md", "threads.md"} <= {page for page, _ in queries()}


@pytest.mark.parametrize(("page", "query"), list(queries()))
def test_query_is_about_metrics_that_there_are(page: str, query: str) -> None:
    names = set(re.findall(r"\binferwatch_\w+", query))

    assert names, page
    assert names <= series_names()


@pytest.mark.real("prometheus")
async def test_prometheus_takes_every_query(tmp_path: Path) -> None:
    async with agent() as running, prometheus(tmp_path, f"127.0.0.1:{running.port}") as server:
        await server.wait_for("up == 1")
        for page, query in queries():
            try:
                await server.query(query)
            except AssertionError as error:
                pytest.fail(f"{page}: {error}\n{query}")
