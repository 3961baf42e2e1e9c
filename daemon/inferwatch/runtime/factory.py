"""Makes the units that a configuration asks for."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Final

from inferwatch.config import Config, SamplerOptions
from inferwatch.config_engines import EngineConfig
from inferwatch.configfile import LoadedConfig
from inferwatch.logs import get_logger
from inferwatch.runtime.blocking import BlockingPool, Lane
from inferwatch.runtime.events import EventRing
from inferwatch.runtime.unit import Unit
from inferwatch.samplers import Discovery
from inferwatch.sources.hostfs import HostFs
from inferwatch.spec import Clock, Context, Instance, SamplerSpec
from inferwatch.targets.model import TargetsView

TIMEOUT_SHARE: Final = 0.8  # of the interval: a run is over before the next one is due
TIMEOUT_LIMIT_SECONDS: Final = 30.0
SHORTEST_SECONDS: Final = 0.1


class UnitFactory:
    """Makes units; a unit's thread outlives it, so that one that hangs never gets a second one beside it.

    Args:
        discovery: The samplers that exist.
        own: The agent's own sampler, which is always there.
        clock: Time.
        events: Where samplers put events.
    """

    def __init__(self, discovery: Discovery, own: SamplerSpec, clock: Clock, events: EventRing) -> None:
        self._discovery = discovery
        self._own = own
        self._clock = clock
        self._events = events
        self._pool = BlockingPool()
        self._lanes: dict[tuple[str, str], Lane] = {}
        self._refused: set[str] = set()

    def lane(self, *key: str) -> Lane:
        """Return the one thread's worth of blocking work that has this name."""
        return self._lanes.setdefault((key[0], key[-1]), Lane(self._pool))

    def units(self, loaded: LoadedConfig, targets: TargetsView, found: Sequence[EngineConfig]) -> list[Unit]:
        """Return the units that a configuration asks for.

        Args:
            loaded: The configuration.
            targets: What samplers are handed.
            found: Engines that were found without configuration.
        """
        config = loaded.config.model_copy(update={"engines": (*loaded.config.engines, *found)})
        loaded = replace(loaded, config=config)
        units = [
            self._unit(config, targets, spec, instance, loaded.options[name])
            for name, spec in self._discovery.specs.items()
            if loaded.options[name].enabled
            for instance in self._instances(spec, config)
        ]
        return [*units, self._unit(config, targets, self._own, Instance(), SamplerOptions())]

    def _instances(self, spec: SamplerSpec, config: Config) -> Iterator[Instance]:
        """Yield a sampler's instances; what a third-party one makes of it must not keep the others from running."""
        seen: set[str] = set()
        try:
            for instance in spec.instances(config):
                interval = instance.interval_seconds
                if instance.key in seen or (interval is not None and interval < SHORTEST_SECONDS):
                    self._refuse(
                        spec, f"instance {instance.key!r} stands twice, or its interval {interval} is too short"
                    )
                    continue
                seen.add(instance.key)
                yield instance
        except Exception as error:  # noqa: BLE001 - foreign code
            self._refuse(spec, f"its instances can't be told: {type(error).__name__}: {error}")

    def _refuse(self, spec: SamplerSpec, error: str) -> None:
        if spec.name not in self._refused:
            self._refused.add(spec.name)
            get_logger().warning("sampler left out", sampler=spec.name, error=error)

    def _unit(
        self, config: Config, targets: TargetsView, spec: SamplerSpec, instance: Instance, options: SamplerOptions
    ) -> Unit:
        interval = instance.interval_seconds or options.interval_seconds or config.agent.interval_seconds
        lane = self.lane(spec.name, instance.key)
        context = Context(
            config=config,
            options=options,
            paths=config.agent.paths,
            hostfs=hostfs_of(config),
            clock=self._clock,
            run_blocking=lane,
            emit=self._events.put,
            interval_seconds=interval,
            timeout_seconds=instance.timeout_seconds or min(interval * TIMEOUT_SHARE, TIMEOUT_LIMIT_SECONDS),
            instance=instance.key,
            targets=targets,
        )
        return Unit(spec, instance, context, lane)

    def forget_lanes(self, units: Sequence[Unit]) -> None:
        """Forget the threads of units that are gone, but for those that hang."""
        running = {(unit.spec.name, unit.instance.key) for unit in units}
        self._lanes = {key: lane for key, lane in self._lanes.items() if key in running or lane.busy}

    def close(self) -> None:
        """End the idle threads."""
        self._pool.close()


def hostfs_of(config: Config) -> HostFs:
    """Return the host's file systems as the configuration sees them."""
    paths = config.agent.paths
    return HostFs(paths.procfs, paths.sysfs, paths.rootfs)
