"""The composition root: configuration to units, scheduler, store and web; signals, reload and shutdown."""

import asyncio
import gc
import signal
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Final

from inferwatch import __version__
from inferwatch.config import Config, EngineConfig, SamplerOptions
from inferwatch.configfile import LoadedConfig
from inferwatch.errors import ConfigError
from inferwatch.logs import configure, get_logger
from inferwatch.model import Event
from inferwatch.runtime.blocking import BlockingPool, Lane
from inferwatch.runtime.events import EventRing
from inferwatch.runtime.scheduler import Scheduler, SystemClock
from inferwatch.runtime.selfmetrics import FAMILIES, NAME, ReloadState, SelfMetrics
from inferwatch.runtime.store import Store
from inferwatch.runtime.unit import State, Unit
from inferwatch.samplers import Discovery
from inferwatch.sources.hostfs import HostFs
from inferwatch.spec import Clock, Context, Instance, SamplerSpec
from inferwatch.targets.model import TargetTable
from inferwatch.targets.probe import Discovery as EnginesFound
from inferwatch.targets.probe import EngineProbe
from inferwatch.targets.tracker import TargetTracker
from inferwatch.web.app import WebServer

TIMEOUT_SHARE: Final = 0.8  # of the interval: a run is over before the next one is due
TIMEOUT_LIMIT_SECONDS: Final = 30.0
FIRST_ROUND_LIMIT_SECONDS: Final = 10.0


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
        self.targets = self._tracker(loaded.config)
        self._found: tuple[EngineConfig, ...] = ()
        self.engines_found = EnginesFound((), {})
        self._finding_fails = False
        self._probe = EngineProbe(self.clock, timeout_seconds=loaded.config.discovery.probe_timeout_seconds)
        self.reload_state = ReloadState(successful=True, success_unix_seconds=self.clock.unix_seconds())
        self._read_config = read_config
        self._pool = BlockingPool()
        self._lanes: dict[tuple[str, str], Lane] = {}
        self._stop = asyncio.Event()
        self._reloading = asyncio.Lock()
        self._reloads: set[asyncio.Task[Sequence[str]]] = set()
        self._log = get_logger()
        metrics = SelfMetrics(self.scheduler, self.store, self.events, self.reload_state)
        self._self_spec = SamplerSpec(
            NAME, "agent", "The agent itself.", "/proc/self", FAMILIES, lambda _context: metrics
        )

    async def start(self) -> None:
        """Start sampling; returns when every sampler has run once, or after ten seconds."""
        for problem in self.discovery.problems:
            self._log.warning("sampler left out", error=problem)
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
        await asyncio.gather(*(self.scheduler.run_once(u) for u in self.scheduler.units if u.spec is self._self_spec))

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
        loop.add_signal_handler(signal.SIGHUP, self._spawn_reload)
        web = WebServer(self)
        url = await web.start(self.loaded.config.web.listen_address)
        try:
            started = asyncio.create_task(self.start())
            finding = asyncio.create_task(self._keep_finding_engines(started))
            stopped = asyncio.create_task(self._stop.wait())
            await asyncio.wait({started, stopped}, return_when=asyncio.FIRST_COMPLETED)
            if started.done():
                started.result()
                # what is there now stays: without this a full collection stops the loop for some 35 ms
                gc.collect()
                gc.freeze()
                announce(self, url)
                await stopped
            started.cancel()
            finding.cancel()
        finally:
            self._log.info("agent stopping")
            await asyncio.gather(self.close(), web.close())

    async def close(self) -> None:
        """Stop sampling and end the idle threads."""
        await self.scheduler.close()
        self._pool.close()

    async def find_engines(self) -> bool:
        """Look for metrics pages of the targets and scrape what is found; return whether that changed anything."""
        config = self.loaded.config
        table = self.targets.current() if config.discovery.engines == "on" else TargetTable()
        self.engines_found = await self._probe.discover(table, config.engines, self.targets.own_addresses)
        engines = tuple(engine.config() for engine in self.engines_found.engines)
        if engines == self._found:
            return False
        self._found = engines
        return True

    async def _keep_finding_engines(self, started: asyncio.Task[None]) -> None:
        """Look for engines again and again; those that are known cost nothing."""
        await asyncio.wait({started})
        while True:
            await asyncio.sleep(self.loaded.config.agent.interval_seconds)
            await self._follow_engines()

    async def _follow_engines(self) -> None:
        """Scrape the engines that are there now and no others."""
        async with self._reloading:
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

    def _tracker(self, config: Config) -> TargetTracker:
        return TargetTracker(_hostfs(config), config.targets, self.clock, config.discovery)

    def units(self, loaded: LoadedConfig) -> list[Unit]:
        """Return the units that a configuration asks for, those of the engines that were found included."""
        engines = (*loaded.config.engines, *self._found)
        loaded = replace(loaded, config=loaded.config.model_copy(update={"engines": engines}))
        wanted = [
            self._unit(loaded, spec, instance, loaded.options[name])
            for name, spec in self.discovery.specs.items()
            if loaded.options[name].enabled
            for instance in spec.instances(loaded.config)
        ]
        return [*wanted, self._unit(loaded, self._self_spec, Instance(), SamplerOptions())]

    def _unit(self, loaded: LoadedConfig, spec: SamplerSpec, instance: Instance, options: SamplerOptions) -> Unit:
        config = loaded.config
        interval = instance.interval_seconds or options.interval_seconds or config.agent.interval_seconds
        timeout = instance.timeout_seconds or min(interval * TIMEOUT_SHARE, TIMEOUT_LIMIT_SECONDS)
        paths = config.agent.paths
        # the lane outlives a reload: a new unit must not get a second thread beside one that hangs
        lane = self._lanes.setdefault((spec.name, instance.key), Lane(self._pool))
        context = Context(
            config=config,
            options=options,
            paths=paths,
            hostfs=_hostfs(config),
            clock=self.clock,
            run_blocking=lane,
            emit=self.events.put,
            interval_seconds=interval,
            timeout_seconds=timeout,
            instance=instance.key,
            targets=self.targets,
        )
        return Unit(spec, instance, context, lane)

    def _spawn_reload(self) -> None:
        task = asyncio.get_running_loop().create_task(self.reload())
        self._reloads.add(task)  # the loop keeps only a weak reference to a task
        task.add_done_callback(self._reloads.discard)

    async def reload(self) -> Sequence[str]:
        """Read the configuration again; an invalid one changes nothing.

        Returns:
            What is wrong with the new configuration, one sentence a mistake; empty when it is now in use.
        """
        async with self._reloading:
            try:
                loaded = await asyncio.to_thread(self._read_config)
            except ConfigError as error:
                self.reload_state.successful = False
                self._log.error("configuration not reloaded, the old one stays in use", problems=error.problems)
                self._note_reload("failed")
                return error.problems
            if loaded.config.web != self.loaded.config.web:
                self._log.warning("a change of [web] takes effect after a restart")
            if _targets_of(loaded.config) != _targets_of(self.loaded.config):
                self.targets = self._tracker(loaded.config)
            self.loaded = loaded
            configure(loaded.config.agent.log_level, loaded.config.agent.log_format)
            self._log = get_logger()
            await self.scheduler.replace(self.units(loaded))
            running = {(unit.spec.name, unit.instance.key) for unit in self.scheduler.units}
            self._lanes = {key: lane for key, lane in self._lanes.items() if key in running or lane.busy}
            self.reload_state.successful = True
            self.reload_state.success_unix_seconds = self.clock.unix_seconds()
            self._log.info("configuration reloaded", path=str(loaded.path) if loaded.path else None)
            self._note_reload("successful")
            return ()

    def _note_reload(self, outcome: str) -> None:
        self.events.put(Event(self.clock.monotonic_ns(), "reload", attributes={"outcome": outcome}))

    @property
    def version(self) -> str:
        """Return the agent's version."""
        return __version__


def _hostfs(config: Config) -> HostFs:
    paths = config.agent.paths
    return HostFs(paths.procfs, paths.sysfs, paths.rootfs)


def _targets_of(config: Config) -> tuple[object, ...]:
    """Return the part of a configuration that the tracker of targets stands for."""
    return config.targets, config.discovery, config.agent.paths
