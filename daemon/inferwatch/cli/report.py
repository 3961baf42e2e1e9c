"""How each sampler is doing, in one word and one sentence; `run` and `doctor` tell it in their own form."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from inferwatch.configfile import LoadedConfig
from inferwatch.engines import schema
from inferwatch.model import Snapshot
from inferwatch.runtime.unit import State, Unit
from inferwatch.samplers import Discovery

DISABLED: Final = "disabled"
IDLE: Final = "idle"
DOWN: Final = "down"  # an engine whose page could not be had; its sampler works, and says so in inferwatch_engine_up
WORKING: Final = frozenset({State.OK.value, State.PARTIAL.value})


@dataclass(frozen=True, slots=True)
class Report:
    """One sampler, or one of its instances where these have names.

    Args:
        name: The sampler, with the instance in brackets.
        state: A unit's state, or `disabled`, `idle` or `down`.
        detail: What is wrong or missing, one line; empty when there is nothing to say.
    """

    name: str
    state: str
    detail: str


def reports(
    discovery: Discovery, loaded: LoadedConfig, units: Sequence[Unit], snapshots: Sequence[Snapshot]
) -> list[Report]:
    """Return the reports, ordered by name; the agent's own metrics are left out."""
    down = frozenset(_engines_down(snapshots))
    found = []
    for name, spec in sorted(discovery.specs.items()):
        mine = [unit for unit in units if unit.spec.name == name]
        if not loaded.options[name].enabled:
            found.append(Report(name, DISABLED, "switched off in the configuration"))
        elif not mine:
            found.append(Report(name, IDLE, spec.idle_reason))
        for unit in mine:
            state = DOWN if (name, unit.instance.key) in down else unit.state.value
            found.append(Report(unit.label, state, one_line("; ".join(unit.problems.values()))))
    return found


def one_line(text: str) -> str:
    """Return text without line breaks and control characters: it may come from a scraped page or a process name."""
    return "".join(char if char.isprintable() else " " for char in text).strip()


def _engines_down(snapshots: Sequence[Snapshot]) -> Iterator[tuple[str, str]]:
    for snapshot in snapshots:
        if any(sample.family is schema.UP and sample.value == 0 for sample in snapshot.samples):
            yield snapshot.sampler, snapshot.instance
