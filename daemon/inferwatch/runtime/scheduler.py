"""When each (sampler, instance) runs; the only place that logs a sampler's failures."""

import asyncio
import math
import time
from collections.abc import Sequence
from types import MappingProxyType
from typing import Final

from inferwatch.exposition import Rendered
from inferwatch.logs import get_logger
from inferwatch.model import Event, Snapshot
from inferwatch.runtime.backoff import delay_seconds
from inferwatch.runtime.events import EventRing
from inferwatch.runtime.store import Store
from inferwatch.runtime.unit import Outcome, State, Unit
from inferwatch.spec import Clock

NS: Final = 1_000_000_000
STALE_INTERVALS: Final = 3
NO_DATA: Final = "no_data"
RECHECK_SECONDS: Final = 300.0  # how often something that this host does not have is looked for again
TICK_TOLERANCE: Final = 1e-3  # of an interval
RENDER_INLINE_SAMPLES: Final = 300  # more are rendered in the unit's thread, not on the event loop


class SystemClock:
    """The machine's clocks."""

    def monotonic_ns(self) -> int:
        """Return CLOCK_MONOTONIC in nanoseconds."""
        return time.monotonic_ns()

    def unix_seconds(self) -> float:
        """Return the wall clock in seconds since 1970."""
        return time.time()


class Scheduler:
    """Runs units on a grid, each with its own phase, one run in flight, late ticks skipped and counted.

    Args:
        store: Where results go.
        events: Where a failing or healed sampler is told.
        clock: Time.
    """

    def __init__(self, store: Store, events: EventRing, clock: Clock) -> None:
        self._store = store
        self._events = events
        self._clock = clock
        self._tasks: dict[tuple[str, str], asyncio.Task[None]] = {}
        self._units: dict[tuple[str, str], Unit] = {}
        self._log = get_logger()
        self.first_round_done = asyncio.Event()
        self.settled = asyncio.Event()  # every unit that is there now has run
        self.loop_delay_seconds = 0.0

    @property
    def units(self) -> Sequence[Unit]:
        """Return all units, ordered by sampler and instance."""
        return [self._units[key] for key in sorted(self._units)]

    async def replace(self, units: Sequence[Unit]) -> None:
        """Run these units and no others; those that are the same as before go on undisturbed."""
        wanted = {(unit.spec.name, unit.instance.key): unit for unit in units}
        gone = [key for key, unit in self._units.items() if key not in wanted or not unit.same_as(wanted[key])]
        await asyncio.gather(*(self._stop(key) for key in gone))
        for number, (key, unit) in enumerate(sorted(wanted.items())):
            if key not in self._units:
                self._units[key] = unit
                self.settled.clear()
                self._start(key, number / len(wanted))  # phases are spread, and the work with them
        self._note_first_round()

    async def close(self) -> None:
        """Stop everything; returns within about a second, also when something hangs."""
        await asyncio.gather(*(self._stop(key) for key in tuple(self._tasks)))

    def _start(self, key: tuple[str, str], offset: float) -> None:
        unit = self._units[key]
        task = asyncio.create_task(self._loop(unit, offset), name=f"sampler {unit.label}")
        self._tasks[key] = task

        def ended(task: asyncio.Task[None]) -> None:
            """Start it again: a mistake in here must not silence a sampler for months."""
            if not task.cancelled() and task.exception() is not None and self._tasks.get(key) is task:
                self._log.error("sampler's loop ended, started again", sampler=unit.label, exc_info=task.exception())
                asyncio.get_running_loop().call_later(unit.interval_seconds, self._restart, key, task, offset)

        task.add_done_callback(ended)

    def _restart(self, key: tuple[str, str], ended: asyncio.Task[None], offset: float) -> None:
        if self._tasks.get(key) is ended:
            self._start(key, offset)

    async def _stop(self, key: tuple[str, str]) -> None:
        task, unit = self._tasks.pop(key, None), self._units.pop(key, None)
        if task is None or unit is None:
            return
        task.cancel()
        await asyncio.wait({task}, timeout=1.0)
        await unit.close()
        self._store.drop(*key)

    async def _loop(self, unit: Unit, offset: float) -> None:
        """Run a unit for ever: at once, and then on its grid."""
        phase = offset * unit.interval_seconds
        while unit.must_wait:  # for the thread of the unit that it replaces
            await unit.wait_until_free(unit.interval_seconds)
        tick = self._tick(unit, phase)
        while True:
            await self.run_once(unit)
            tick = await self._sleep(unit, phase, tick)

    def _tick(self, unit: Unit, phase: float) -> int:
        """Return the number of the last tick of a unit's grid; a sleep that ended a hair too early has reached it."""
        return math.floor((self._now() - phase) / unit.interval_seconds + TICK_TOLERANCE)

    async def _sleep(self, unit: Unit, phase: float, tick: int) -> int:
        """Sleep to the next tick and return it; ticks that passed while the unit ran or hung are counted."""
        interval = unit.interval_seconds
        while True:
            passed = max(tick, self._tick(unit, phase))
            unit.skipped += passed - tick
            tick = passed
            if not unit.must_wait:
                break
            await unit.wait_until_free((tick + 1) * interval + phase - self._now())
        tick += max(1, math.ceil(self._delay(unit) / interval - TICK_TOLERANCE))
        due = tick * interval + phase
        await asyncio.sleep(max(0.0, due - self._now()))
        self.loop_delay_seconds = max(self.loop_delay_seconds, self._now() - due)
        return tick

    def _now(self) -> float:
        return self._clock.monotonic_ns() / NS

    def _delay(self, unit: Unit) -> float:
        if unit.state is State.UNAVAILABLE:
            return max(unit.interval_seconds, RECHECK_SECONDS)
        return delay_seconds(unit.interval_seconds, unit.failures_in_row, unit.spec.back_off_limit_seconds)

    async def run_once(self, unit: Unit) -> Outcome:
        """Run a unit once, publish what it gave and note how it is doing."""
        began_ns = self._clock.monotonic_ns()
        began_unix = self._clock.unix_seconds()
        outcome = await unit.run()
        finished_ns = self._clock.monotonic_ns()
        unit.duration_seconds = (finished_ns - began_ns) / NS
        unit.runs += 1
        failures = unit.failures_in_row
        unit.failures_in_row = failures + 1 if outcome.back_off else 0
        if outcome.state in {State.OK, State.PARTIAL} or outcome.samples:
            snapshot = Snapshot(unit.spec.name, unit.instance.key, outcome.samples, began_ns, began_unix)
            try:
                await self._publish(unit, snapshot)
            except Exception as error:  # noqa: BLE001 - whatever a plugin's samples do to the rendering, it is its failure
                problems = {"rendering": f"{type(error).__name__}: {error}"}
                outcome = Outcome(State.FAILING, problems=problems, back_off=True, unexpected=error)
                unit.failures_in_row = failures + 1
            else:
                unit.last_success_unix_seconds, unit.last_success_monotonic_ns = began_unix, began_ns
        unit.failures.update(reason for reason in outcome.problems if reason != NO_DATA)  # an absence is no failure
        unit.tells_while_stuck = outcome.state is State.STUCK and bool(outcome.samples)
        if outcome.state is State.UNAVAILABLE:
            self._store.drop(unit.spec.name, unit.instance.key)
        self._note(unit, outcome)
        self._note_first_round()
        return outcome

    async def _publish(self, unit: Unit, snapshot: Snapshot) -> None:
        shared = sum(other.spec is unit.spec for other in self._units.values()) > 1

        def render() -> Rendered:
            rendered = unit.renderer.render(snapshot.samples)
            self._store.prepare(rendered, shared=shared)
            return rendered

        large = len(snapshot.samples) > RENDER_INLINE_SAMPLES and not unit.is_stuck
        rendered = await unit.lane(render) if large else render()
        expires_ns = snapshot.monotonic_ns + int(STALE_INTERVALS * self._delay(unit) * NS)
        self._store.publish(snapshot, rendered, expires_ns)

    def _note(self, unit: Unit, outcome: Outcome) -> None:
        """Log and tell a change of state: once when it breaks, once when it heals."""
        before, unit.state = unit.state, outcome.state
        known, unit.problems = unit.problems, outcome.problems
        context = {"sampler": unit.spec.name} | ({"instance": unit.instance.key} if unit.instance.key else {})
        now = self._clock.monotonic_ns()
        if outcome.state is State.OK:
            if before not in {State.OK, State.PENDING}:
                seconds = round((now - (unit.broken_since_ns or now)) / NS, 1)
                self._log.info("sampler recovered", **context, was=before.value, after_seconds=seconds)
                self._tell("sampler_recovered", unit, {"was": before.value})
            unit.broken_since_ns = None
            return
        unit.broken_since_ns = unit.broken_since_ns or now
        if outcome.state is before and outcome.problems.keys() <= known.keys():
            return
        error = "; ".join(outcome.problems.values())
        if outcome.state is State.UNAVAILABLE:
            self._log.info("sampler unavailable", **context, reason=error)
            return
        log = self._log.info if outcome.problems.keys() == {NO_DATA} else self._log.warning
        log(
            f"sampler {outcome.state}",
            **context,
            reason=",".join(outcome.problems),
            error=error,
            exc_info=outcome.unexpected,
        )
        self._tell(f"sampler_{outcome.state}", unit, {"reason": ",".join(outcome.problems)})

    def _tell(self, kind: str, unit: Unit, attributes: dict[str, str]) -> None:
        self._events.put(Event(self._clock.monotonic_ns(), kind, unit.label, MappingProxyType(attributes)))

    def _note_first_round(self) -> None:
        if all(unit.runs for unit in self._units.values()):
            self.first_round_done.set()
            self.settled.set()
