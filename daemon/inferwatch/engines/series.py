"""What one upstream series means by an engine's table; decided once per series, then looked up by its identity."""

import math
from dataclasses import dataclass, field
from typing import Final

from inferwatch.engines.labels import LabelLimit, shortened
from inferwatch.engines.rules import HISTOGRAM_PARTS, OTHER, EngineTable, LabelFrom, Rule, Take
from inferwatch.model import Kind, SeriesId

VALUE: Final = "value"
SUM: Final = "sum"
COUNT: Final = "count"
BROKEN: Final = "broken"
EXTRA: Final = -1

Source = tuple[str, tuple[tuple[str, str], ...]]


@dataclass(frozen=True, slots=True, eq=False)
class Slot:
    """One spelling of one upstream name of a rule.

    Args:
        rule: The rule.
        choice: Which of the rule's alternatives it is, 0 the best; `EXTRA` for one that is added to the chosen one.
        prefix: Which of the engine's prefixes the name has.
        upstream: The whole name, as a page has it (of a histogram, without `_bucket`).
    """

    rule: Rule
    choice: int
    prefix: int
    upstream: str


@dataclass(slots=True, eq=False)
class Group:
    """The series that make one value: a scalar, or all lines of one histogram.

    Args:
        slot: Where it belongs.
        labels: Model (None when the series does not tell) and the rule's further labels.
        source: Upstream name and labels, which tell the parts of a sum apart.
        product: For `Take.LABELS`: the product of its labels, None when they hold no numbers.
        page: Number of the page that `parts` are of.
        parts: Values on that page: bucket bounds as numbers, `SUM`, `COUNT`, `VALUE`, or `BROKEN`.
    """

    slot: Slot
    labels: tuple[str | None, ...]
    source: Source
    product: float | None = None
    page: int = 0
    parts: dict[float | str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, eq=False)
class Plan:
    """What to do with a series: which groups its value goes to, and as what.

    Args:
        series: The series, held so that its id() is not given to another object.
        feeds: Groups, and the key in their `parts`.
        unmapped: Whether the table does not know the series.
        values: Its open labels and their values, whether admitted or not.
        folded: Whether one of them became `other` because of the cap.
    """

    series: SeriesId
    feeds: tuple[tuple[Group, float | str], ...] = ()
    unmapped: bool = False
    values: tuple[tuple[str, str], ...] = ()
    folded: bool = False


class Classifier:
    """Makes plans for one engine's series.

    Args:
        table: The engine's table.
        limit: The cap on label values.
    """

    def __init__(self, table: EngineTable, limit: LabelLimit) -> None:
        self._table = table
        self._limit = limit
        self._groups: dict[tuple[Slot, tuple[str | None, ...], Source], Group] = {}
        self._slots: dict[str, list[Slot]] = {}
        for rule in table.rules:
            for slot in _slots(table, rule):
                self._slots.setdefault(slot.upstream, []).append(slot)

    def clear(self) -> None:
        """Forget all groups."""
        self._groups.clear()

    def plan(self, series: SeriesId) -> Plan:
        """Decide what a series is."""
        matches = [(slot, key) for slot, key in self._matches(series) if _selected(slot.rule, series)]
        if not matches:
            return Plan(series, unmapped=not self._table.ignores_series(series.name))
        values: dict[tuple[str, str], None] = {}
        feeds = [(self._group(slot, self._labels(slot.rule, series, values), series), key) for slot, key in matches]
        folded = any(self._limit.admit(label, value) != value for label, value in values)
        return Plan(series, tuple(feeds), values=tuple(values), folded=folded)

    def _matches(self, series: SeriesId) -> list[tuple[Slot, float | str]]:
        """Return the slots of a sample's name, and what part of a histogram the sample is."""
        found: list[tuple[Slot, float | str]] = [
            (slot, VALUE) for slot in self._slots.get(series.name, ()) if slot.rule.expected is not Kind.HISTOGRAM
        ]
        for suffix, part in zip(HISTOGRAM_PARTS, (BROKEN, SUM, COUNT), strict=True):
            if series.name.endswith(suffix):
                key: float | str = _bound(series) if suffix == "_bucket" else part
                for slot in self._slots.get(series.name.removesuffix(suffix), ()):
                    if slot.rule.expected is Kind.HISTOGRAM:
                        found.append((slot, key))  # noqa: PERF401 - the comprehension would hide what is asked
        return found

    def _labels(self, rule: Rule, series: SeriesId, values: dict[tuple[str, str], None]) -> tuple[str | None, ...]:
        """Return the normalised labels, and note the values of those that are open."""

        def admitted(label: str, value: str) -> str:
            value = shortened(value)
            values[label, value] = None
            return self._limit.admit(label, value)

        model = next((value for name in self._table.model_labels if (value := series.label(name)) is not None), None)
        labels = [None if model is None else admitted("model", model)]
        for name in rule.family.labels[3:]:
            wanted = rule.labels[name]
            if isinstance(wanted, LabelFrom):
                value = series.label(wanted.upstream) or ""
                labels.append(wanted.values.get(value, OTHER) if wanted.values else admitted(name, value))
            else:
                labels.append(wanted)
        return tuple(labels)

    def _group(self, slot: Slot, labels: tuple[str | None, ...], series: SeriesId) -> Group:
        source = (slot.upstream, tuple(sorted(pair for pair in series.labels if pair[0] != "le")))
        key = (slot, labels, source)
        group = self._groups.get(key)
        if group is None:
            product = _product(slot.rule, series) if slot.rule.take is Take.LABELS else None
            group = self._groups[key] = Group(slot, labels, source, product)
        return group


def _slots(table: EngineTable, rule: Rule) -> list[Slot]:
    slots = []
    for prefix, text in enumerate(table.prefixes):
        names = [name for upstream in rule.upstream for name in rule.spellings(upstream)]
        slots += [Slot(rule, choice, prefix, text + name) for choice, name in enumerate(names)]
        extras = [name for upstream in rule.plus for name in rule.spellings(upstream)]
        slots += [Slot(rule, EXTRA, prefix, text + name) for name in extras]
    return slots


def _selected(rule: Rule, series: SeriesId) -> bool:
    return all(series.label(name) == value for name, value in rule.where.items())


def _bound(series: SeriesId) -> float | str:
    try:
        bound = float(series.label("le") or "")
    except ValueError:
        return BROKEN
    return BROKEN if math.isnan(bound) else bound


def _product(rule: Rule, series: SeriesId) -> float | None:
    """Return the product of the first alternative of labels that all hold positive numbers."""
    for names in rule.products:
        try:
            product = math.prod(float(series.label(name) or "") for name in names)
        except ValueError:
            continue
        if math.isfinite(product) and product > 0:
            return product
    return None
