"""One page's samples in the making: which upstream name counts, whether its values can be true, what they add up to."""

import math
from collections import Counter
from collections.abc import Hashable, Iterator, Mapping, Sequence
from typing import Final

from inferwatch.engines.combine import Ledger, combine
from inferwatch.engines.histograms import assemble
from inferwatch.engines.rules import Combine, Rule, Take
from inferwatch.engines.schema import MAPPED
from inferwatch.engines.series import BROKEN, COUNT, EXTRA, SUM, VALUE, Group, Slot, Source
from inferwatch.model import Family, HistogramValue, Kind, Sample

LARGEST_RATIO: Final = 1.5  # above 1 by rounding or overcommitment, yes; 95 is a percentage
ACCEPTED_TYPES: Final[Mapping[Kind, frozenset[str]]] = {
    Kind.COUNTER: frozenset({"counter", "unknown", "untyped"}),
    Kind.GAUGE: frozenset({"gauge", "info", "unknown", "untyped"}),
    Kind.HISTOGRAM: frozenset({"histogram", "unknown", "untyped"}),
}

# DCGM's blanks (dcgm_structs.h: not found, not supported, no permission) and the unsigned -1 of a number that went
# below zero. 64-bit blanks are all 2^63 once they are floats. A counter may honestly pass 2^31 or 2^32, so those are
# blanks in gauges only: a queue length or a token capacity that is exactly one of them is none.
LARGE_SENTINELS: Final = frozenset({*(float(2**47 + step) for step in range(4)), 2.0**63, 2.0**64})
SENTINELS: Final = LARGE_SENTINELS | {*(float(0x7FFFFFF0 + step) for step in range(4)), 2.0**32 - 1}

Labels = tuple[str, ...]


class Building:
    """The samples of one page.

    Args:
        head: Values of the labels target and engine.
        model: Model of series that name none.
        types: The page's TYPE lines.
        ledger: The engine's running totals.
    """

    def __init__(self, head: Labels, model: str, types: Mapping[str, str], ledger: Ledger) -> None:
        self._head = head
        self._model = model
        self._types = types
        self._ledger = ledger
        self._samples: dict[str, list[Sample]] = {}
        self._right_kind: dict[Slot, bool] = {}
        self.used: list[tuple[str, str]] = []
        self.problems: list[str] = []
        self.dropped: Counter[str] = Counter()

    @property
    def samples(self) -> tuple[Sample, ...]:
        """Return what was built, in the schema's order and then by labels."""
        found = (self._samples.get(family.name, ()) for family in MAPPED)
        return tuple(sample for samples in found for sample in sorted(samples, key=_by_labels))

    def build(self, rule: Rule, groups: Sequence[Group]) -> None:
        """Make the samples of one rule from what the page has for it."""
        chosen = self._choose(groups)
        make = self._histograms if rule.family.kind is Kind.HISTOGRAM else self._scalars
        samples = list(make(rule, chosen))
        if samples:
            self._samples.setdefault(rule.family.name, []).extend(samples)
            self.used += sorted({(rule.family.name, group.slot.upstream) for group in chosen})

    def has(self, family: Family) -> bool:
        """Return whether there is a sample of a family."""
        return family.name in self._samples

    def _choose(self, groups: Sequence[Group]) -> list[Group]:
        """Return the groups of the best alternative that each set of labels has, and what the rule adds to it.

        Not of the page: two engines behind one page, an old one and a new one, may name the same thing differently.
        """
        groups = [group for group in groups if self._is_right_kind(group.slot)]
        best: dict[Labels, tuple[int, int]] = {}
        for group in groups:
            if group.slot.choice != EXTRA:
                labels, this = self._labels(group), (group.slot.choice, group.slot.prefix)
                best[labels] = min(best.get(labels, this), this)
        return [group for group in groups if _belongs(group.slot, best.get(self._labels(group)))]

    def _is_right_kind(self, slot: Slot) -> bool:
        right = self._right_kind.get(slot)
        if right is None:
            names = (slot.upstream, slot.upstream.removesuffix("_total"), slot.upstream.removesuffix("_info"))
            kind = next((self._types[name] for name in names if name in self._types), "unknown")
            right = self._right_kind[slot] = kind in ACCEPTED_TYPES[slot.rule.expected]
            if not right:
                self.problems.append(f"{slot.upstream} is a {kind} on the page, expected a {slot.rule.expected}")
        self.dropped["kind_mismatch"] += not right
        return right

    def _scalars(self, rule: Rule, groups: Sequence[Group]) -> Iterator[Sample]:
        parts: dict[Labels, dict[Hashable, tuple[float, ...]]] = {}
        for group in groups:
            value = self._value(rule, group)
            if value is not None:
                parts.setdefault(self._labels(group), {})[group.source] = (value,)
        for labels, values in parts.items():
            if rule.family.kind is Kind.COUNTER and rule.combine is Combine.SUM:
                value = self._ledger.add((rule.family.name, labels), values)[0]
            else:
                value = combine(rule.combine, (vector[0] for vector in values.values()))
            if math.isfinite(value):
                yield rule.family(value, *labels)

    def _value(self, rule: Rule, group: Group) -> float | None:
        """Return a group's value in the family's unit, None when it has none or it can't be true."""
        if rule.take is Take.LABELS:
            return group.product
        value = group.parts.get(VALUE)
        if rule.take is Take.COUNT:
            value = group.parts.get(COUNT, group.parts.get(math.inf))
        if value is None:
            return None
        if value in (SENTINELS if rule.expected is Kind.GAUGE else LARGE_SENTINELS):
            self.dropped["sentinel"] += 1
            return None
        scaled = value * rule.scale
        is_ratio = rule.family.unit == "ratio"
        if (is_ratio and not 0 <= scaled <= LARGEST_RATIO) or (rule.family.kind is Kind.COUNTER and scaled < 0):
            self.dropped["out_of_range"] += 1
            expected = "a ratio from 0 to 1" if is_ratio else "a number not below 0"
            self.problems.append(f"{group.slot.upstream} is {value:g}, expected {expected}; the value is left out")
            return None
        return scaled

    def _histograms(self, rule: Rule, groups: Sequence[Group]) -> Iterator[Sample]:
        parts: dict[Labels, dict[Source, HistogramValue]] = {}
        for group in groups:
            histogram = _assembled(group, rule.scale)
            same = parts.setdefault(self._labels(group), {})
            if histogram is None or any(histogram.bounds != other.bounds for other in same.values()):
                self.dropped["broken_histogram"] += 1
            else:
                same[group.source] = histogram
        for labels, histograms in parts.items():
            if histograms:
                yield rule.family(self._sum(rule, labels, histograms), *labels)

    def _sum(self, rule: Rule, labels: Labels, histograms: Mapping[Source, HistogramValue]) -> HistogramValue:
        bounds = next(iter(histograms.values())).bounds
        vectors: dict[Hashable, tuple[float, ...]] = {
            source: (*histogram.counts, histogram.sum or 0.0) for source, histogram in histograms.items()
        }
        *counts, total = self._ledger.add((rule.family.name, labels, bounds), vectors, witness=len(bounds))
        known = all(histogram.sum is not None for histogram in histograms.values())
        return HistogramValue(bounds, tuple(counts), total if known and math.isfinite(total) else None)

    def _labels(self, group: Group) -> Labels:
        return (*self._head, *(self._model if value is None else value for value in group.labels))


def _belongs(slot: Slot, best: tuple[int, int] | None) -> bool:
    """Return whether a spelling is the best alternative, or is added to it."""
    return best is not None and slot.prefix == best[1] and slot.choice in {best[0], EXTRA}


def _assembled(group: Group, scale: float) -> HistogramValue | None:
    parts = group.parts
    total, count = parts.pop(SUM, None), parts.pop(COUNT, None)
    if BROKEN in parts:
        return None
    return assemble({bound: value for bound, value in parts.items() if isinstance(bound, float)}, total, count, scale)


def _by_labels(sample: Sample) -> Labels:
    return sample.labels
