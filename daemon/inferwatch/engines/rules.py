"""What an engine's table is made of: rules (upstream series to normalised family), ignores with reasons, the table."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

from inferwatch.engines.schema import MAPPED, MODEL
from inferwatch.model import Family, Kind

OTHER: Final = "other"
HISTOGRAM_PARTS: Final = ("_bucket", "_sum", "_count")
WATCHED: Final = re.compile("token|latency|queue|cache|request|preempt")


class Combine(StrEnum):
    """What becomes of several upstream series that are one normalised series (data-parallel ranks, for example)."""

    SUM = "sum"
    MAX = "max"
    FIRST = "first"


class Take(StrEnum):
    """What is read of the upstream series."""

    VALUE = "value"
    COUNT = "count"  # a histogram's number of observations, as a counter
    LABELS = "labels"  # a product of label values (`Rule.products`), of an info series


class Reason(StrEnum):
    """Why a series is knowingly left out."""

    RUNTIME = "runtime"  # about the process, which the host's samplers see for every engine alike
    HTTP_LAYER = "http_layer"  # about the web server before the engine, whose paths and classes differ per deployment
    CONFIGURATION = "configuration"  # what was asked for or set, not what happened
    DEBUGGING = "debugging"  # sampled, or needs a flag that is not meant for production
    HARDWARE = "hardware"  # about the accelerator or the transport, not about serving
    DERIVED = "derived"  # follows from what is mapped, or is averaged over a window that is not ours
    DUPLICATE = "duplicate"
    RETIRED = "retired"  # a mode that the engine no longer has


@dataclass(frozen=True, slots=True)
class LabelFrom:
    """A normalised label's value, from an upstream label.

    Args:
        upstream: Name of the upstream label.
        values: Upstream value to normalised value, any other becomes `other`; empty keeps the values as they are.
    """

    upstream: str
    values: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Rule:
    """How one normalised family is filled.

    Args:
        upstream: Names without the engine's prefix, newest first; the first that the page has is read, the others are
            not. A counter's name matches with and without `_total`.
        family: The normalised family.
        kind: What the upstream series must be; the family's kind when not set.
        scale: Factor from the upstream unit to the family's, for bounds and sums of a histogram too.
        combine: What becomes of several series that differ in labels that the family does not have.
        labels: The family's labels beyond target, engine and model: from an upstream label, or a fixed text.
        where: Labels that the upstream series must have, with these values.
        plus: Names of further series that are added to the first.
        take: What is read of the series.
        products: For `Take.LABELS`: alternatives of label names whose numbers are multiplied.
        note: For the engine's page: since when a name is used, what differs in meaning.
    """

    upstream: tuple[str, ...]
    family: Family
    kind: Kind | None = None
    scale: float = 1.0
    combine: Combine = Combine.SUM
    labels: Mapping[str, LabelFrom | str] = field(default_factory=dict)
    where: Mapping[str, str] = field(default_factory=dict)
    plus: tuple[str, ...] = ()
    take: Take = Take.VALUE
    products: tuple[tuple[str, ...], ...] = ()
    note: str = ""

    def __post_init__(self) -> None:
        if not self.upstream:
            raise ValueError(f"{self.family.name}: a rule names at least one upstream series")
        if set(self.labels) != set(self.family.labels) - set(MODEL):
            raise ValueError(f"{self.family.name}: the rule gives labels {set(self.labels)}, not {self.family.labels}")
        if self.family.unit == "ratio" and self.combine is Combine.SUM:
            raise ValueError(f"{self.family.name}: ratios can't be summed; combine them with max or first")
        if (self.take is Take.LABELS) != bool(self.products):
            raise ValueError(f"{self.family.name}: `products` belongs to Take.LABELS, and to nothing else")

    @property
    def expected(self) -> Kind:
        """Return the kind that the upstream series must be."""
        return self.kind or self.family.kind

    def spellings(self, name: str) -> tuple[str, ...]:
        """Return the names under which a page may have an upstream name: counters with and without `_total`."""
        if self.expected is not Kind.COUNTER:
            return (name,)
        stem = name.removesuffix("_total")
        return (name, f"{stem}_total" if stem == name else stem)


@dataclass(frozen=True, slots=True)
class Ignore:
    """Series that are knowingly left out.

    Args:
        names: Names without the engine's prefix; one that ends in `*` stands for all that begin so. A histogram's name
            covers its parts.
        reason: Why.
        duplicate_of: The series (or series, in words) that says the same.
        sentence: The reason in a sentence; needed for what sounds like serving (`WATCHED`) and is no duplicate.
        foreign: Whether the names stand on the page without the engine's prefix.
    """

    names: tuple[str, ...]
    reason: Reason
    duplicate_of: str = ""
    sentence: str = ""
    foreign: bool = False

    def __post_init__(self) -> None:
        if (self.reason is Reason.DUPLICATE) != bool(self.duplicate_of):
            raise ValueError(f"{self.names}: a duplicate, and nothing else, says of what")
        if self.sentence and not self.sentence.endswith("."):
            raise ValueError(f"{self.names}: the sentence ends in a full stop")
        if bad := [name for name in self.names if self._needs_words(name)]:
            raise ValueError(f"{bad}: such series are ignored only as a duplicate or with a sentence of their own")

    def covers(self, name: str) -> bool:
        """Return whether a series is left out; a pattern without a sentence never covers what needs one."""
        names = {name, *(name.removesuffix(part) for part in HISTOGRAM_PARTS)}
        for pattern in self.names:
            if pattern.endswith("*"):
                if name.startswith(pattern[:-1]) and not self._needs_words(name):
                    return True
            elif pattern in names:
                return True
        return False

    def _needs_words(self, name: str) -> bool:
        return WATCHED.search(name) is not None and not (self.duplicate_of or self.sentence)


@dataclass(frozen=True, slots=True)
class EngineTable:
    """All that is known of one engine's page.

    Args:
        name: Value of the label `engine` and of the option `kind`.
        title: Name for people.
        prefixes: What its series begin with, the usual one first.
        rules: What is mapped; later rules never overwrite earlier ones.
        ignores: What is not, and why.
        absent: Families that this engine can't fill: name to a sentence.
        model_labels: Upstream labels that hold the model's name, the first that is there counts.
        enable: What to do when the engine answers but has no metrics page.
    """

    name: str
    title: str
    prefixes: tuple[str, ...]
    rules: tuple[Rule, ...]
    ignores: tuple[Ignore, ...]
    absent: Mapping[Family, str]
    model_labels: tuple[str, ...]
    enable: str
    _stems: frozenset[str] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        filled = {rule.family for rule in self.rules}
        if both := [family.name for family in filled & set(self.absent)]:
            raise ValueError(f"{self.name}: mapped and declared absent: {both}")
        if neither := [family.name for family in MAPPED if family not in filled and family not in self.absent]:
            raise ValueError(f"{self.name}: neither mapped nor declared absent: {neither}")
        keys = [
            (rule.family, tuple(value for value in rule.labels.values() if isinstance(value, str)))
            for rule in self.rules
        ]
        if len(set(keys)) != len(keys):
            raise ValueError(f"{self.name}: two rules fill the same series")
        names = (name for rule in self.rules for name in (*rule.upstream, *rule.plus))
        object.__setattr__(self, "_stems", frozenset(names))

    def split(self, name: str) -> tuple[int, str] | None:
        """Return which prefix a series' name has and what follows it, None when it has none of them."""
        for index, prefix in enumerate(self.prefixes):
            if name.startswith(prefix):
                return index, name[len(prefix) :]
        return None

    def recognises(self, names: Iterable[str]) -> bool:
        """Return whether some name is one of this engine's, not only in its prefix."""
        return any((found := self.split(name)) is not None and self._knows(found[1]) for name in names)

    def ignores_series(self, name: str) -> bool:
        """Return whether a series is knowingly left out."""
        found = self.split(name)
        stem = found[1] if found is not None else name
        return any(ignore.covers(stem) for ignore in self.ignores if ignore.foreign == (found is None))

    def _knows(self, stem: str) -> bool:
        variants = (stem, f"{stem}_total", *(stem.removesuffix(part) for part in ("_total", *HISTOGRAM_PARTS)))
        return any(variant in self._stems for variant in variants)
