"""One round of all samplers outside the schedule, for `once` and `doctor`."""

import asyncio
from collections.abc import Sequence
from typing import Final

from inferwatch.agent import Agent
from inferwatch.exposition import Renderer
from inferwatch.model import Snapshot
from inferwatch.runtime.scheduler import Scheduler
from inferwatch.runtime.selfmetrics import NAME, SelfMetrics
from inferwatch.runtime.store import Store
from inferwatch.runtime.unit import Outcome, State, Unit

TARGETS: Final = "targets"
BETWEEN_RUNS_SECONDS: Final = 1.0
NEVER_NS: Final = 1  # later than the round's store ever sees


class Round(Scheduler):
    """Runs each unit of an agent once, or twice where something can only be said from the second run on.

    Its store never drops anything: a page is complete also when one sampler took longer than another's data lasts.

    Args:
        agent: Whose units are run; it is not started.
    """

    def __init__(self, agent: Agent) -> None:
        self.store = Store(lambda: 0)
        super().__init__(self.store, agent.events, agent.clock)
        self._agent = agent
        self._roster = [unit for unit in agent.units(agent.loaded) if unit.spec.name != NAME]

    @property
    def units(self) -> Sequence[Unit]:
        """Return the units, ordered by sampler and instance."""
        return sorted(self._roster, key=lambda unit: (unit.spec.name, unit.instance.key))

    async def take(self) -> None:
        """Run everything concurrently, each within its own deadline, and then the agent's own metrics.

        The targets come first: the others are about them, and engines are found through them.
        """
        try:
            first = [unit for unit in self._roster if unit.spec.name == TARGETS]
            await asyncio.gather(*(self._run(unit) for unit in first))
            await self._agent.find_engines()
            rest = [unit for unit in self._agent.units(self._agent.loaded) if unit.spec.name not in {NAME, TARGETS}]
            self._roster = [*first, *rest]
            await asyncio.gather(*(self._run(unit) for unit in rest))
            await self._add_own_metrics()
        finally:
            await asyncio.gather(*(unit.close() for unit in self.units))

    @property
    def gave_data(self) -> bool:
        """Return whether any sampler but the agent's own worked; to say that an engine is down is no work."""
        gave = {(snapshot.sampler, snapshot.instance) for snapshot in self.store.snapshots() if snapshot.samples}
        return any((unit.spec.name, unit.instance.key) in gave and not unit.failures_in_row for unit in self.units)

    async def _run(self, unit: Unit) -> None:
        outcome = await self._run_once(unit)
        if unit.spec.needs_two_runs and outcome.state in {State.OK, State.PARTIAL}:
            await asyncio.sleep(BETWEEN_RUNS_SECONDS)
            await self._run_once(unit)

    async def _run_once(self, unit: Unit) -> Outcome:
        try:
            return await self.run_once(unit)
        except Exception as error:  # noqa: BLE001 - whatever a plugin's samples do to the rendering, the others go on
            unit.state, unit.problems = State.FAILING, {"unexpected": f"{type(error).__name__}: {error}"}
            return Outcome(unit.state, problems=unit.problems, unexpected=error)

    async def _add_own_metrics(self) -> None:
        agent, clock = self._agent, self._agent.clock
        metrics = SelfMetrics(self, self.store, agent.events, agent.reload_state)
        samples = tuple(await metrics.sample())
        snapshot = Snapshot(NAME, "", samples, clock.monotonic_ns(), clock.unix_seconds())
        self.store.publish(snapshot, Renderer().render(samples), NEVER_NS)
