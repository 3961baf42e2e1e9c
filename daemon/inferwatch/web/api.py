"""The JSON documents under /api/v1."""

import json
import math
from collections.abc import Mapping, Sequence
from typing import Final

from inferwatch import __version__
from inferwatch.exposition import safe_text
from inferwatch.runtime.unit import Unit
from inferwatch.web.view import AgentView, SamplerView, sampler_views

NS: Final = 1_000_000_000


def samplers_document(agent: AgentView) -> dict[str, object]:
    """Return what /api/v1/samplers shows: every sampler with its instances, and those that could not be loaded.

    Nothing of the configuration is in it but intervals: an option may hold a secret.
    """
    return {
        "version": __version__,
        "ready": agent.scheduler.first_round_done.is_set(),
        "samplers": [_sampler(view) for view in sampler_views(agent)],
        "problems": list(agent.discovery.problems),
    }


def to_json(document: object) -> bytes:
    """Encode a document as JSON that every parser takes: `json` alone would let NaN and lone surrogates through."""
    return json.dumps(_clean(document), ensure_ascii=False, allow_nan=False).encode() + b"\n"


def _sampler(view: SamplerView) -> dict[str, object]:
    return {
        "name": view.spec.name,
        "dimension": view.spec.dimension,
        "summary": view.spec.summary,
        "enabled": view.enabled,
        "idle_reason": view.idle_reason,
        "families": len(view.spec.families),
        "instances": [_instance(unit) for unit in view.units],
    }


def _instance(unit: Unit) -> dict[str, object]:
    succeeded = unit.last_success_monotonic_ns
    age = None if succeeded is None else (unit.context.clock.monotonic_ns() - succeeded) / NS
    return {
        "instance": unit.instance.key,
        "state": unit.state.value,
        "interval_seconds": unit.interval_seconds,
        "timeout_seconds": unit.context.timeout_seconds,
        "age_seconds": age,
        "duration_seconds": unit.duration_seconds,
        "runs": unit.runs,
        "skipped": unit.skipped,
        "failures": unit.failures,
        "problems": unit.problems,
    }


def _clean(value: object) -> object:
    """Return a copy that holds nothing but what JSON has."""
    if value is None or isinstance(value, bool | int):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {safe_text(str(key)): _clean(item) for key, item in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, str | bytes):
        return [_clean(item) for item in value]
    return safe_text(str(value))
