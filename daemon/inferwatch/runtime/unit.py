"""One (sampler, instance): its state, and one run of it."""

import asyncio
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Final

from inferwatch.errors import InferwatchError, NoData, ParseError, SourceError
from inferwatch.exposition import Renderer
from inferwatch.model import Sample
from inferwatch.runtime.blocking import Lane
from inferwatch.spec import Context, Instance, PartialData, Sampler, SamplerSpec

CANCEL_GRACE_SECONDS: Final = 0.5


class State(StrEnum):
    """How a (sampler, instance) is doing."""

    PENDING = "pending"  # has not run yet
    OK = "ok"
    PARTIAL = "partial"  # some of its data is missing
    FAILING = "failing"
    UNAVAILABLE = "unavailable"  # absent on this host; tried again slowly
    STUCK = "stuck"  # a blocking read has not returned; no second thread is started until it does


@dataclass(frozen=True, slots=True)
class Outcome:
    """What one run came to.

    Args:
        state: The state that follows from it.
        samples: What is to be published.
        problems: Reason word to a sentence.
        back_off: Whether the next run comes later.
        unexpected: The exception, when it was none that a sampler is meant to raise.
    """

    state: State
    samples: tuple[Sample, ...] = ()
    problems: Mapping[str, str] = field(default_factory=dict)
    back_off: bool = False
    unexpected: BaseException | None = None


@dataclass(slots=True)
class Unit:
    """A (sampler, instance) with all that the scheduler knows of it.

    Args:
        spec: The sampler's declaration.
        instance: The instance.
        context: What its sampler is handed.
        lane: Its one thread.
    """

    spec: SamplerSpec
    instance: Instance
    context: Context
    lane: Lane
    renderer: Renderer = field(default_factory=Renderer)
    state: State = State.PENDING
    problems: Mapping[str, str] = field(default_factory=dict)
    failures_in_row: int = 0
    failures: Counter[str] = field(default_factory=Counter)
    skipped: int = 0
    runs: int = 0
    duration_seconds: float | None = None
    last_success_unix_seconds: float | None = None
    last_success_monotonic_ns: int | None = None
    broken_since_ns: int | None = None
    tells_while_stuck: bool = False
    sampler: Sampler | None = None
    leftover: asyncio.Task[Outcome] | None = None

    @property
    def interval_seconds(self) -> float:
        """Return the time between two runs while all is well."""
        return self.context.interval_seconds

    @property
    def label(self) -> str:
        """Return its name for people."""
        return f"{self.spec.name}[{self.instance.key}]" if self.instance.key else self.spec.name

    def same_as(self, other: "Unit") -> bool:
        """Return whether another unit does the same with the same settings, so that a reload keeps this one."""
        return (
            self.spec is other.spec
            and self.instance == other.instance
            and self.context.options == other.context.options
            and self.context.paths == other.context.paths
            and self.context.targets is other.context.targets
            and self.context.config.agent.label_value_limit == other.context.config.agent.label_value_limit
            and self.context.interval_seconds == other.context.interval_seconds
            and self.context.timeout_seconds == other.context.timeout_seconds
        )

    async def run(self) -> Outcome:
        """Run once within the deadline; never raises but for the cancellation of the caller."""
        task = asyncio.ensure_future(self._sample())
        try:
            done, _ = await asyncio.wait({task}, timeout=self.context.timeout_seconds)
        except asyncio.CancelledError:
            task.cancel()
            raise
        if not done:
            await asyncio.sleep(0)  # the loop itself may have been late: what has been answered meanwhile counts
            await asyncio.sleep(0)
        if task.done():
            outcome = self._outcome(task)
            # it gave up waiting for its thread in time and tells so; the thread is still there
            return replace(outcome, state=State.STUCK) if self.lane.busy and outcome.samples else outcome
        task.cancel()
        await asyncio.wait({task}, timeout=CANCEL_GRACE_SECONDS)
        if not task.done():  # it swallows its cancellation: as bad as a thread that does not return
            self.leftover = task
        stuck = self.is_stuck
        sentence = f"did not finish within {self.context.timeout_seconds:g} s"
        if stuck:
            sentence += "; it is not started again until its blocked read returns"
        return Outcome(State.STUCK if stuck else State.FAILING, problems={"timeout": sentence}, back_off=True)

    @property
    def must_wait(self) -> bool:
        """Return whether it may not run now: it is stuck, and has nothing to tell without its thread."""
        return self.is_stuck and not self.tells_while_stuck

    @property
    def is_stuck(self) -> bool:
        """Return whether something of an earlier run is still going on."""
        return self.lane.busy is not None or (self.leftover is not None and not self.leftover.done())

    async def wait_until_free(self, limit_seconds: float) -> None:
        """Wait until nothing of an earlier run is going on, or the limit is over."""
        pending = [future for future in (self.lane.busy, self.leftover) if future is not None and not future.done()]
        if pending:
            await asyncio.wait(pending, timeout=max(limit_seconds, 0.001), return_when=asyncio.ALL_COMPLETED)

    async def close(self) -> None:
        """Close the sampler, within a limit; errors are of no interest any more."""
        sampler, self.sampler = self.sampler, None
        if sampler is None:
            return
        task = asyncio.ensure_future(_close(sampler))
        await asyncio.wait({task}, timeout=CANCEL_GRACE_SECONDS)
        task.cancel()

    async def _sample(self) -> Outcome:
        try:
            return await self._sample_once()
        except (SystemExit, KeyboardInterrupt) as error:  # asyncio would end the whole agent with them
            raise RuntimeError(f"the sampler raised {type(error).__name__}") from error

    async def _sample_once(self) -> Outcome:
        if self.sampler is None:
            reason = await self._unmet()
            if reason is not None:
                raise NoData(reason)
            self.sampler = self.spec.create(self.context)
        samples = tuple(await self.sampler.sample())
        self._check(samples)
        return Outcome(State.OK, samples)

    async def _unmet(self) -> str | None:
        """Return the reason of the first requirement that is not met; they read files, so they run in the thread."""

        def first(checks: tuple[Callable[..., str | None], ...]) -> str | None:
            return next((reason for check in checks if (reason := check(self.context.hostfs)) is not None), None)

        return await self.context.run_blocking(first, self.spec.requires) if self.spec.requires else None

    def _check(self, samples: tuple[Sample, ...]) -> None:
        declared = self.spec.families
        found: Sequence[object] = samples  # what a third party returns is not what the type says
        for sample in found:
            if not isinstance(sample, Sample) or len(sample.labels) != len(sample.family.labels):
                raise ParseError(f"sampler {self.spec.name} returned {sample!r:.200}, which is no sample of its family")
        stray = {sample.family.name for sample in samples if sample.family not in declared}
        if stray:
            raise ParseError(f"sampler {self.spec.name} returned families that it does not declare: {sorted(stray)}")

    def _outcome(self, task: asyncio.Task[Outcome]) -> Outcome:
        if task.cancelled():
            return Outcome(State.FAILING, problems={"cancelled": "the sampler cancelled itself"}, back_off=True)
        error = task.exception()
        if error is None:
            return task.result()
        if isinstance(error, PartialData):
            return self._partial(error)
        state, reason, unexpected = _judge(error)
        sentence = f"{type(error).__name__}: {error}" if unexpected else str(error)
        return Outcome(state, problems={reason: sentence}, back_off=True, unexpected=error if unexpected else None)

    def _partial(self, error: PartialData) -> Outcome:
        samples = tuple(error.samples)
        try:
            self._check(samples)
        except ParseError as stray:
            return Outcome(State.FAILING, problems={"parse": str(stray)}, back_off=True)
        return Outcome(State.PARTIAL, samples, dict(error.problems), back_off=error.back_off)


async def _close(sampler: Sampler) -> None:
    try:
        await sampler.close()
    except (Exception, SystemExit, KeyboardInterrupt):  # noqa: BLE001 - it is over; nobody could do anything about it
        return


def _judge(error: BaseException) -> tuple[State, str, bool]:
    """Return the state and the reason word that an exception means, and whether it is none that was meant to be."""
    if isinstance(error, NoData):
        return State.UNAVAILABLE, "no_data", False
    if isinstance(error, SourceError):
        return State.STUCK if error.reason == "stuck" else State.FAILING, error.reason, False
    if isinstance(error, ParseError):
        return State.FAILING, "parse", False
    return State.FAILING, "unexpected", not isinstance(error, InferwatchError)
