"""The records that travel between the layers: families, samples, snapshots, parsed pages and events."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from types import MappingProxyType
from typing import Final

METRIC_NAME: Final = re.compile(r"[a-z][a-z0-9_]*\Z")
RESERVED_LABELS: Final = frozenset({"le", "quantile", "job", "instance", "type"})


class Kind(StrEnum):
    """What kind of metric a family is, in OpenMetrics' words."""

    COUNTER = "counter"
    GAUGE = "gauge"
    HISTOGRAM = "histogram"
    INFO = "info"


@dataclass(frozen=True, slots=True)
class HistogramValue:
    """One classic histogram.

    Args:
        bounds: Inclusive upper bounds, ascending, without +Inf.
        counts: Cumulative, one per bound and one more for +Inf, which is the number of observations.
        sum: Sum of the observations, or None where the source has none.
    """

    bounds: tuple[float, ...]
    counts: tuple[float, ...]
    sum: float | None

    def __post_init__(self) -> None:
        if len(self.counts) != len(self.bounds) + 1:
            msg = (
                f"histogram has {len(self.counts)} counts for {len(self.bounds)} bounds, expected one more than bounds"
            )
            raise ValueError(msg)


@dataclass(frozen=True, slots=True, eq=False)
class Family:
    """A metric family: everything that is known of it before a value is.

    A family is made once, as a constant of a module, and is compared and hashed by identity,
    which happens for every sample.

    Calling a family makes a sample of it: `CPU_SECONDS(12.5, "0", "user")`.

    Args:
        name: Full name as it stands on the page; a counter's ends in `_total`, an info's in `_info`.
        help: One sentence: what the value is, per what, and where it comes from.
        kind: Counter, gauge, histogram or info.
        unit: Base unit that the name ends in (before `_total`), for example `seconds`; empty for a plain number.
        labels: Label names in the order in which a sample's values are given.
        buckets: A histogram's usual bounds, for documentation; empty where they are the upstream's.

    Raises:
        ValueError: When the name, the unit or a label breaks a rule of the exposition format.
    """

    name: str
    help: str
    kind: Kind
    unit: str = ""
    labels: tuple[str, ...] = ()
    buckets: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        if not METRIC_NAME.match(self.name):
            msg = f"{self.name!r} is not a metric name: lower-case letters, digits and underscores expected"
            raise ValueError(msg)
        if (self.kind is Kind.COUNTER) != self.name.endswith("_total"):
            msg = f"{self.name}: a counter's name, and no other, ends in _total (kind is {self.kind})"
            raise ValueError(msg)
        if (self.kind is Kind.INFO) != self.name.endswith("_info"):
            msg = f"{self.name}: an info's name, and no other, ends in _info (kind is {self.kind})"
            raise ValueError(msg)
        if self.unit and not self.base_name.endswith(f"_{self.unit}"):
            msg = f"{self.name}: the name does not end in its unit {self.unit!r}"
            raise ValueError(msg)
        if not self.help.endswith("."):
            msg = f"{self.name}: the help is a sentence and ends in a full stop"
            raise ValueError(msg)
        if bad := RESERVED_LABELS.intersection(self.labels):
            msg = f"{self.name}: the label names {sorted(bad)} are reserved"
            raise ValueError(msg)
        if len(set(self.labels)) != len(self.labels):
            msg = f"{self.name}: a label name stands twice in {self.labels}"
            raise ValueError(msg)

    @property
    def base_name(self) -> str:
        """Return the OpenMetrics family name: without `_total` or `_info`."""
        return self.name.removesuffix("_total" if self.kind is Kind.COUNTER else "_info")

    @property
    def line_names(self) -> tuple[str, ...]:
        """Return the names at the beginning of its lines, and its own."""
        suffixes = ("_bucket", "_sum", "_count") if self.kind is Kind.HISTOGRAM else ()
        return (self.name, *(self.name + suffix for suffix in suffixes))

    def __call__(self, value: "float | HistogramValue", *labels: str) -> "Sample":
        """Make a sample.

        Raises:
            ValueError: When the number of label values or the sort of value is wrong; the client libraries drop a
                superfluous label in silence, which makes duplicate series.
        """
        if len(labels) != len(self.labels):
            msg = f"{self.name}: {len(labels)} label values {labels!r} given, expected {self.labels!r}"
            raise ValueError(msg)
        if isinstance(value, HistogramValue) != (self.kind is Kind.HISTOGRAM):
            msg = f"{self.name}: a {self.kind} can't have a value of type {type(value).__name__}"
            raise ValueError(msg)
        return Sample(self, labels, value)


@dataclass(frozen=True, slots=True)
class Sample:
    """One value of one series. Label values are any text; the exposition makes them safe."""

    family: Family
    labels: tuple[str, ...]
    value: float | HistogramValue


@dataclass(frozen=True, slots=True)
class Snapshot:
    """What one run of one (sampler, instance) produced.

    Args:
        sampler: Name of the sampler.
        instance: Name of the instance, empty for a sampler that has just one.
        samples: In the order in which they are shown.
        monotonic_ns: When the run began, on CLOCK_MONOTONIC.
        unix_seconds: The same moment on the wall clock, for people.
    """

    sampler: str
    instance: str
    samples: tuple[Sample, ...]
    monotonic_ns: int
    unix_seconds: float


@dataclass(frozen=True, slots=True)
class SeriesId:
    """Name and labels of one series of a scraped page; label pairs in the page's order."""

    name: str
    labels: tuple[tuple[str, str], ...]

    def label(self, name: str) -> str | None:
        """Return the value of a label, None when the series does not have it."""
        return next((value for key, value in self.labels if key == name), None)


@dataclass(frozen=True, slots=True)
class ParsedPage:
    """A page in Prometheus text or OpenMetrics form.

    Args:
        series: Every series in page order with its last value on the page (a series that stands twice counts once);
            NaN and infinite values are not in it.
        types: Family name to the word of its TYPE line.
        dropped: Number of samples left out, by reason (`not_finite`, `duplicate`).
    """

    series: Sequence[tuple[SeriesId, float]]
    types: Mapping[str, str]
    dropped: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Event:
    """Something that happened at a moment, rather than a value.

    Args:
        monotonic_ns: When, on CLOCK_MONOTONIC (which is also BPF's clock).
        kind: `restart`, `oom_kill`, `stall`, `gil_hold`, `reload`, `sampler_failing`, `sampler_healed`, ...
        target: Target, sampler or engine that it is about; empty for the host or the agent.
        attributes: Further facts, values as text.
    """

    monotonic_ns: int
    kind: str
    target: str = ""
    attributes: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
