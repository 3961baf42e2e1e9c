"""The command `once`: sample everything, print one complete page and exit."""

import asyncio
import json
import math
from collections.abc import Iterator, Sequence
from typing import Any

from inferwatch import logs
from inferwatch.agent import Agent
from inferwatch.cli import settings
from inferwatch.cli.output import write
from inferwatch.cli.round import Round
from inferwatch.exposition import Format, safe_text
from inferwatch.model import HistogramValue, Sample
from inferwatch.runtime.discovery import find_samplers


def run(flags: settings.Flags, page_format: str) -> int:
    """Print a page; return 0 when at least one sampler gave data."""
    discovery = find_samplers()
    loaded = settings.load(flags, discovery)
    logs.configure(loaded.config.agent.log_level, loaded.config.agent.log_format)
    for problem in discovery.problems:
        logs.get_logger().warning("sampler left out", error=problem)
    agent = Agent(loaded, discovery, lambda: loaded)
    taken = asyncio.run(_take(agent))
    if page_format == "json":
        write(as_json(agent, taken))
    else:
        write(taken.store.page(Format[page_format.upper()], gzip=False))
    return 0 if taken.gave_data else 1


async def _take(agent: Agent) -> Round:
    taken = Round(agent)
    await taken.take()
    return taken


def as_json(agent: Agent, taken: Round) -> bytes:
    """Return the states and the samples as JSON; like the page, without what is not a finite number."""
    samplers: dict[str, Any] = {
        name: {"enabled": agent.loaded.options[name].enabled, "idle_reason": None, "instances": {}}
        for name in sorted(agent.discovery.specs)
    }
    for unit in taken.units:
        state = {"state": unit.state, "problems": dict(unit.problems)}
        samplers[unit.spec.name]["instances"][unit.instance.key] = state
    for name, sampler in samplers.items():
        if sampler["enabled"] and not sampler["instances"]:
            sampler["idle_reason"] = agent.discovery.specs[name].idle_reason
    samples = [entry for snapshot in taken.store.snapshots() for entry in _entries(snapshot.samples)]
    return json.dumps({"samplers": samplers, "samples": samples}, allow_nan=False, indent=1).encode() + b"\n"


def _entries(samples: Sequence[Sample]) -> Iterator[dict[str, Any]]:
    seen = set()
    for sample in samples:
        key = (sample.family, sample.labels)
        value = _finite(sample.value)
        if value is None or key in seen:
            continue
        seen.add(key)
        labels = dict(zip(sample.family.labels, map(safe_text, sample.labels), strict=True))
        yield {"name": sample.family.name, "labels": labels, **value}


def _finite(value: float | HistogramValue) -> dict[str, Any] | None:
    if not isinstance(value, HistogramValue):
        return {"value": value} if math.isfinite(value) else None
    numbers = [*value.counts, *(() if value.sum is None else (value.sum,))]
    if not all(map(math.isfinite, numbers)):
        return None
    edges = [*map(str, value.bounds), "+Inf"]
    buckets = [{"le": edge, "count": count} for edge, count in zip(edges, value.counts, strict=True)]
    return {"histogram": {"buckets": buckets, "sum": value.sum, "count": value.counts[-1]}}
