"""From the series of an engine's page to samples of the normalised families, by the engine's table."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from inferwatch.engines.building import Building
from inferwatch.engines.combine import Ledger
from inferwatch.engines.labels import LabelLimit
from inferwatch.engines.rules import EngineTable
from inferwatch.engines.series import Classifier, Group, Plan
from inferwatch.model import ParsedPage, Sample

LABEL_VALUE_LIMIT: Final = 500
UNMAPPED_NAMES: Final = 20
SLACK: Final = 1024
MAX_KEPT_CHARACTERS: Final = 24 << 20  # of names and labels; more than a page within its default cap has


@dataclass(frozen=True, slots=True)
class Mapped:
    """What a page came to.

    Args:
        samples: Samples of the normalised families, in the schema's order and then by labels.
        models: Models that the page names.
        used: Normalised family and the upstream name that was read for it.
        absent: Number of the table's families that the page has no series for.
        unmapped: Number of series that the table does not know.
        unmapped_names: Some of their names.
        dropped: Samples left out or folded, by reason, on this page.
        problems: Sentences about series that are not what the table expects.
    """

    samples: tuple[Sample, ...]
    models: tuple[str, ...]
    used: tuple[tuple[str, str], ...]
    absent: int
    unmapped: int
    unmapped_names: tuple[str, ...]
    dropped: Mapping[str, int]
    problems: tuple[str, ...]


class Mapper:
    """Maps the pages of one engine; it keeps what it learned of each series, by the identity of its `SeriesId`.

    Args:
        table: The engine's table.
        target: Value of the label `target`.
        label_value_limit: Most different models, and values of any other open label.
        model: The model, for pages that name none.
    """

    def __init__(
        self, table: EngineTable, target: str, *, label_value_limit: int = LABEL_VALUE_LIMIT, model: str = ""
    ) -> None:
        self.table = table
        self._model = model
        self._head = (target, table.name)
        self._limit = LabelLimit(label_value_limit)
        self._classifier = Classifier(table, self._limit)
        self._plans: dict[int, Plan] = {}
        self._kept_characters = 0
        self._ledger = Ledger()
        self._page = 0

    def map(self, page: ParsedPage) -> Mapped:
        """Map a page; it never raises, whatever the page holds."""
        self._page += 1
        touched, odd = self._gather(page)
        models = {group.labels[0] for group in touched} - {None}
        building = Building(self._head, _only(models) or self._model, page.types, self._ledger)
        building.dropped.update(page.dropped)
        building.dropped["label_limit"] += sum(plan.folded for plan in odd)
        groups: dict[int, list[Group]] = {}
        for group in touched:
            groups.setdefault(id(group.slot.rule), []).append(group)
        for rule in self.table.rules:
            building.build(rule, groups.get(id(rule), []))
        self._ledger.turn_page()
        self._forget(page)
        unmapped = [plan.series.name for plan in odd if plan.unmapped]
        return Mapped(
            samples=(samples := building.samples),
            models=tuple(sorted({sample.labels[2] for sample in samples})),
            used=tuple(building.used),
            absent=len({rule.family for rule in self.table.rules if not building.has(rule.family)}),
            unmapped=len(unmapped),
            unmapped_names=tuple(sorted(set(unmapped))[:UNMAPPED_NAMES]),
            dropped={reason: count for reason, count in building.dropped.items() if count},
            problems=tuple(building.problems),
        )

    def _gather(self, page: ParsedPage) -> tuple[list[Group], list[Plan]]:
        """Put each value where it belongs; return the groups that got one, and the plans that need a second look."""
        touched: list[Group] = []
        odd: list[Plan] = []
        number, lookup = self._page, self._plans.get
        for series, value in page.series:
            plan = lookup(id(series))
            if plan is None:
                plan = self._plans[id(series)] = self._classifier.plan(series)
                self._kept_characters += len(series.name) + sum(len(key) + len(text) for key, text in series.labels)
            for group, key in plan.feeds:
                if group.page != number:
                    group.page, group.parts = number, {}
                    touched.append(group)
                group.parts[key] = value
            if plan.unmapped or plan.folded:
                odd.append(plan)
        return touched, odd

    def _forget(self, page: ParsedPage) -> None:
        """Forget what the pages no longer have, when it is much, or when it keeps a new label value out."""
        stale = len(self._plans) > 2 * len(page.series) + SLACK or self._kept_characters > MAX_KEPT_CHARACTERS
        if self._limit.is_closed:
            values = {value for series, _ in page.series for value in self._plans[id(series)].values}
            stale |= self._limit.turn_page(values)
        if stale:
            self._plans.clear()
            self._classifier.clear()
            self._kept_characters = 0


def _only(models: set[str | None]) -> str:
    """Return the model of series that name none: the page's only one, or an empty label, which is no label."""
    return next(iter(models)) or "" if len(models) == 1 else ""
