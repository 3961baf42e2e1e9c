"""What a sampler is: its declaration (`SamplerSpec`), what it is handed (`Context`) and what it does (`Sampler`)."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, ParamSpec, Protocol, TypeVar

from inferwatch.config import Config, Paths, SamplerOptions
from inferwatch.model import METRIC_NAME, Event, Family, Sample
from inferwatch.sources.hostfs import HostFs
from inferwatch.targets.model import NO_TARGETS, TargetsView

P = ParamSpec("P")
T = TypeVar("T")

DIMENSIONS: Final = ("cpu", "memory", "tokens", "network", "agent")


class Clock(Protocol):
    """Time, handed in so that tests need no sleep."""

    def monotonic_ns(self) -> int:
        """Return CLOCK_MONOTONIC in nanoseconds."""
        ...

    def unix_seconds(self) -> float:
        """Return the wall clock in seconds since 1970."""
        ...


class RunBlocking(Protocol):
    """Run a blocking function in this sampler instance's one thread.

    The thread belongs to the (sampler, instance). Where it does not return before the run's deadline, the instance is
    *stuck*: no second thread is started until the first comes back.
    """

    def __call__(self, function: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Awaitable[T]:
        """Return the function's result; raise what it raises."""
        ...


@dataclass(frozen=True, slots=True)
class Context:
    """Everything that a sampler may touch; nothing is global.

    Args:
        config: The whole configuration.
        options: This sampler's own validated options, of the type that its spec names.
        paths: Roots of the host's file systems.
        hostfs: Reads below these roots.
        clock: Time.
        run_blocking: Runs a blocking function in a thread of this instance.
        emit: Puts an event into the agent's ring.
        interval_seconds: This instance's interval.
        timeout_seconds: Limit of one run.
        instance: Key of this instance (see `SamplerSpec.instances`), empty for the only one.
        targets: The serving processes that were found.
    """

    config: Config
    options: Any  # its static type is the sampler's own: samplers narrow it with isinstance or annotate it
    paths: Paths
    hostfs: HostFs
    clock: Clock
    run_blocking: RunBlocking
    emit: Callable[[Event], None]
    interval_seconds: float
    timeout_seconds: float
    instance: str = ""
    targets: TargetsView = NO_TARGETS


class Sampler(Protocol):
    """One running instance of a sampler."""

    async def sample(self) -> Sequence[Sample]:
        """Read once and return all samples.

        Raises:
            NoData: Absent on this host now: the instance becomes unavailable and is tried again slowly.
            ParseError: Present but of an unexpected form.
            SourceError: Could not be read.
            PartialData: Some of it could be had: it carries the samples and the reasons.
        """
        ...

    async def close(self) -> None:
        """Release what the instance holds; called once, also after a failed or cancelled run."""
        ...


class PartialData(Exception):  # noqa: N818 - it carries data
    """A run that got some of its data.

    Args:
        samples: What could be had; published as usual.
        problems: Reason word to a sentence, for example `{"permission_denied": "/proc/1/io: ..."}`.
        back_off: Whether the next runs come later and later, up to the spec's `back_off_limit_seconds`.
    """

    def __init__(self, samples: Sequence[Sample], problems: Mapping[str, str], *, back_off: bool = False) -> None:
        super().__init__("; ".join(problems.values()))
        self.samples = samples
        self.problems = problems
        self.back_off = back_off


@dataclass(frozen=True, slots=True)
class Instance:
    """One unit of the scheduler.

    Args:
        key: Unique within the sampler, shown in the log and in /api/v1/samplers; empty for the only one.
        interval_seconds: Its own interval, or None for the sampler's.
        timeout_seconds: Its own limit of one run, or None for four fifths of its interval.
        settings: The part of the configuration that it stands for; a reload restarts it only when this changes.
    """

    key: str = ""
    interval_seconds: float | None = None
    timeout_seconds: float | None = None
    settings: object = None


def one_instance(_config: Config) -> Sequence[Instance]:
    """Return the single instance that most samplers have."""
    return (Instance(),)


@dataclass(frozen=True, slots=True)
class SamplerSpec:
    """A sampler's declaration: all that is known of it without running it.

    Args:
        name: Name in the configuration, in metrics and of its file.
        dimension: One of `DIMENSIONS`.
        summary: One sentence: what it tells.
        source: The files or interfaces read.
        families: All families that it can produce.
        create: Makes an instance; does no I/O.
        options: Model of `[samplers.<name>]`.
        requires: Checks run before `create`; each returns a reason when unmet (*unavailable*, not a failure).
        instances: The units that the configuration asks for; none means nothing to do, with `idle_reason`.
        idle_reason: Said when there is no instance, for example "no [[engines]] configured".
        back_off_limit_seconds: Longest time between two runs while it fails.
        needs_two_runs: Whether something can only be said from the second run on (a rate); `once` then runs it twice.
    """

    name: str
    dimension: str
    summary: str
    source: str
    families: tuple[Family, ...]
    create: Callable[[Context], Sampler]
    options: type[SamplerOptions] = SamplerOptions
    requires: tuple[Callable[[HostFs], str | None], ...] = ()
    instances: Callable[[Config], Sequence[Instance]] = one_instance
    idle_reason: str = ""
    back_off_limit_seconds: float = 300.0
    needs_two_runs: bool = False

    def __post_init__(self) -> None:
        if not METRIC_NAME.match(self.name):
            msg = f"sampler {self.name!r}: a name is lower-case letters, digits and underscores"
            raise ValueError(msg)
        options: object = self.options  # what a third party writes is not what the type says
        if not (isinstance(options, type) and issubclass(options, SamplerOptions)):
            msg = f"sampler {self.name}: options is {self.options!r}, expected a subclass of SamplerOptions"
            raise ValueError(msg)  # noqa: TRY004 - as for every other mistake in a declaration
        families: Sequence[object] = self.families
        if strange := [family for family in families if not isinstance(family, Family)]:
            msg = f"sampler {self.name}: {strange[0]!r} is no Family"
            raise ValueError(msg)
        if self.dimension not in DIMENSIONS:
            msg = f"sampler {self.name}: dimension {self.dimension!r} is none of {DIMENSIONS}"
            raise ValueError(msg)
        names = [family.name for family in self.families]
        if twice := {name for name in names if names.count(name) > 1}:
            msg = f"sampler {self.name}: families declared twice: {sorted(twice)}"
            raise ValueError(msg)
