"""The composition root: configuration -> samplers -> scheduler -> store -> web; signals, reload and shutdown."""

import asyncio
import gc
import signal
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Final

from inferwatch.config import Config
from inferwatch.config_engines import EngineConfig
from inferwatch.configfile import LoadedConfig
from inferwatch.errors import ConfigError, InferwatchError, SourceError
from inferwatch.logs import configure, get_logger
from inferwatch.model import Event
from inferwatch.runtime.events import EventRing
from inferwatch.runtime.factory import UnitFactory, hostfs_of
from inferwatch.runtime.memory import give_back_memory
from inferwatch.runtime.scheduler import Scheduler, SystemClock
from inferwatch.runtime.selfmetrics import FAMILIES, NAME, ReloadState, SelfMetrics
from inferwatch.runtime.store import Store
from inferwatch.runtime.unit import State, Unit
from inferwatch.samplers import Discovery
from inferwatch.spec import Clock, SamplerSpec
from inferwatch.targets.model import TargetTable
from inferwatch.targets.places import HostNames
from inferwatch.targets.probe import Discovery as EnginesFound
from inferwatch.targets.probe import EngineProbe
from inferwatch.targets.tracker import TargetTracker
from inferwatch.web.app import WebServer

FIRST_ROUND_LIMIT_SECONDS: Final = 10.0
FIRST_LOOK_SECONDS: Final = 2.0
READ_LIMIT_SECONDS: Final = 10.0
RELOAD_PAUSE_SECONDS: Final = 1.0
ENGINE: Final = "engine"  # the sampler of engines' pages


class Agent:
    """Everything that runs.

    Args:
        loaded: The configuration to start with.
        discovery: The samplers that exist.
        read_config: Reads the configuration again, for a reload; raises ConfigError.
        clock: Time.
    """

    def __init__(
        self,
        loaded: LoadedConfig,
        discovery: Discovery,
        read_config: Callable[[], LoadedConfig],
        clock: Clock | None = None,
    ) -> None:
        self.loaded = loaded
        self.discovery = discovery
        self.clock = clock or SystemClock()
        self.events = EventRing(loaded.config.agent.event_limit)
        self.store = Store(self.clock.monotonic_ns)
        self.scheduler = Scheduler(self.store, self.events, self.clock)
        self.reload_state = ReloadState(successful=True, success_unix_seconds=self.clock.unix_seconds())
        metrics = SelfMetrics(self.scheduler, self.store, self.events, self.reload_state)
        self._own = SamplerSpec(NAME, "agent", "The agent itself.", "/proc/self", FAMILIES, lambda _context: metrics)
        self._factory = UnitFactory(discovery, self._own, self.clock, self.events)
        self.targets = self._tracker(loaded.config)
        self.engines_found = EnginesFound((), {})
        self._probe = EngineProbe(self.clock, timeout_seconds=loaded.config.discovery.probe_timeout_seconds)
        self._hosts = HostNames(self.clock, self._factory.lane("names", ""))
        self._found: tuple[EngineConfig, ...] = ()
        self._finding_fails = False
        self._read_config = read_config
        self._stop = asyncio.Event()
        self._changing = asyncio.Lock()  # of the set of units
        self._reload_wanted = asyncio.Event()
        self._log = get_logger()

    def units(self, loaded: LoadedConfig) -> list[Unit]:
        """Return the units that a configuration asks for, those of the engines that were found included."""
        return self._factory.units(loaded, self.targets, self._found)

    async def start(self) -> None:
        """Start sampling; returns when every sampler has run once, or after ten seconds."""
        for problem in self.discovery.problems:
            self._log.warning("sampler left out", error=problem)
        # so that every sampler's first run has the targets; a failure is told by the sampler `targets`
        with suppress(InferwatchError, TimeoutError):
            async with asyncio.timeout(FIRST_LOOK_SECONDS):
                await self._factory.lane("targets", "")(self.targets.refresh)
        await self.scheduler.replace(self.units(self.loaded))
        try:
            async with asyncio.timeout(FIRST_ROUND_LIMIT_SECONDS):
                await self.scheduler.settled.wait()
                await self._follow_engines()
                await self.scheduler.settled.wait()
        except TimeoutError:
            pending = [unit.label for unit in self.scheduler.units if unit.state is State.PENDING]
            self._log.warning("first round not finished", waiting_for=pending)
        # the agent's own page part was made while the others were still running
        await asyncio.gather(*(self.scheduler.run_once(u) for u in self.scheduler.units if u.spec is self._own))

    async def run(self, announce: "Callable[[Agent, str], None]") -> None:
        """Serve until SIGTERM or SIGINT; SIGHUP reloads.

        Args:
            announce: Called with the URL when the agent is ready.

        Raises:
            OSError: When the address can't be listened on.
        """
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self._stop.set)
        loop.add_signal_handler(signal.SIGHUP, self._reload_wanted.set)
        web = WebServer(self)
        url = await web.start(self.loaded.config.web.listen_address)
        started = asyncio.create_task(self.start())
        tasks = [started, *(asyncio.create_task(each(started)) for each in (self._keep_finding, self._keep_reloading))]
        stopped = asyncio.create_task(self._stop.wait())
        try:
            await asyncio.wait({started, stopped}, return_when=asyncio.FIRST_COMPLETED)
            if started.done():
                started.result()
                # what is there now stays: without this a full collection stops the loop for some 35 ms
                gc.collect()
                gc.freeze()
                give_back_memory()
                announce(self, url)
                await stopped
        finally:
            for task in tasks:
                task.cancel()
            self._log.info("agent stopping")
            await asyncio.gather(self.close(), web.close())

    async def close(self) -> None:
        """Stop sampling and end the idle threads."""
        await self.scheduler.close()
        self._factory.close()

    async def find_engines(self) -> bool:
        """Look for metrics pages of the targets; return whether the engines to scrape are others than before."""
        config = self.loaded.config
        table = self.targets.current() if config.discovery.engines == "on" else TargetTable()
        hosts = await self._hosts.of(engine.url for engine in config.engines)
        broken = {unit.instance.key for unit in self.scheduler.units if unit.spec.name == ENGINE and unit.problems}
        self.engines_found = await self._probe.discover(
            table, config.engines, self.targets.own_addresses, hosts, broken
        )
        self.targets.learn_models(self.engines_found.models)
        before, self._found = self._found, tuple(engine.config() for engine in self.engines_found.engines)
        return before != self._found

    async def _keep_finding(self, started: asyncio.Task[None]) -> None:
        """Look for engines again and again; those that are known cost nothing."""
        await asyncio.wait({started})
        while True:
            await asyncio.sleep(self.loaded.config.agent.interval_seconds)
            await self._follow_engines()

    async def _follow_engines(self) -> None:
        """Scrape the engines that are there now and no others."""
        async with self._changing:
            try:
                if await self.find_engines():
                    await self.scheduler.replace(self.units(self.loaded))
            except Exception as error:  # noqa: BLE001 - what an engine answers must not end the search for others
                if not self._finding_fails:
                    self._log.warning("search for engines failing", error=repr(error), exc_info=error)
                self._finding_fails = True
            else:
                if self._finding_fails:
                    self._log.info("search for engines recovered")
                self._finding_fails = False

    async def _keep_reloading(self, started: asyncio.Task[None]) -> None:
        """Reload when asked to; many signals at once are one."""
        await asyncio.wait({started})
        while True:
            await self._reload_wanted.wait()
            self._reload_wanted.clear()
            await self.reload()
            await asyncio.sleep(RELOAD_PAUSE_SECONDS)

    async def reload(self) -> Sequence[str]:
        """Read the configuration again; an invalid one changes nothing.

        Returns:
            What is wrong with the new configuration, one sentence a mistake; empty when it is now in use.
        """
        async with self._changing:
            try:
                await self._use(await self._read())
            except ConfigError as error:
                problems = error.problems
            except Exception as error:  # noqa: BLE001 - a mistake in here must not end the agent either
                problems = [f"not reloaded because of a mistake in inferwatch: {type(error).__name__}: {error}"]
            else:
                problems = []
            self.reload_state.successful = not problems
            outcome = "failed" if problems else "successful"
            self.events.put(Event(self.clock.monotonic_ns(), "reload", attributes={"outcome": outcome}))
            if problems:
                self._log.error("configuration not reloaded, the old one stays in use", problems=problems)
                return problems
            self.reload_state.success_unix_seconds = self.clock.unix_seconds()
            self._log.info("configuration reloaded", path=str(self.loaded.path) if self.loaded.path else None)
            return []

    async def _read(self) -> LoadedConfig:
        """Read the file in a thread of its own: it may lie on a file system that hangs."""
        try:
            async with asyncio.timeout(READ_LIMIT_SECONDS):
                return await self._factory.lane("reload", "")(self._read_config)
        except (TimeoutError, SourceError) as error:
            raise ConfigError([f"{self.loaded.path}: could not be read within {READ_LIMIT_SECONDS:g} s"]) from error

    async def _use(self, loaded: LoadedConfig) -> None:
        before = self.loaded
        targets = self.targets
        if _targets_of(loaded.config) != _targets_of(before.config):
            targets = self._tracker(loaded.config)
        units = self._factory.units(loaded, targets, self._found)
        for table, fixed in (
            ("[web]", loaded.config.web != before.config.web),
            ("agent.event_limit", loaded.config.agent.event_limit != before.config.agent.event_limit),
        ):
            if fixed:
                self._log.warning(f"a change of {table} takes effect after a restart")
        configure(loaded.config.agent.log_level, loaded.config.agent.log_format)
        self.loaded, self.targets, self._log = loaded, targets, get_logger()
        await self.scheduler.replace(units)
        self._factory.forget_lanes(self.scheduler.units)

    def _tracker(self, config: Config) -> TargetTracker:
        return TargetTracker(hostfs_of(config), config.targets, self.clock, config.discovery)


def _targets_of(config: Config) -> tuple[object, ...]:
    """Return the part of a configuration that the tracker of targets stands for."""
    return config.targets, config.discovery, config.agent.paths
