"""What the web pages know of the agent."""

from collections.abc import Awaitable, Sequence
from dataclasses import dataclass
from typing import Protocol

from inferwatch.configfile import LoadedConfig
from inferwatch.runtime.events import EventRing
from inferwatch.runtime.scheduler import Scheduler
from inferwatch.runtime.store import Store
from inferwatch.runtime.unit import Unit
from inferwatch.samplers import Discovery
from inferwatch.sources.procfs.net_tcp import Address
from inferwatch.spec import Clock, SamplerSpec
from inferwatch.targets.model import TargetsView
from inferwatch.targets.probe import Discovery as EnginesFound


class Tracker(TargetsView, Protocol):
    """The targets, and what tells whether an address is the agent's own host."""

    @property
    def own_addresses(self) -> frozenset[Address]:
        """Return the addresses of the agent's network namespace."""
        ...


class AgentView(Protocol):
    """What the server needs of the agent."""

    loaded: LoadedConfig
    discovery: Discovery
    store: Store
    scheduler: Scheduler
    events: EventRing

    @property
    def clock(self) -> Clock:
        """Return the agent's time."""
        ...

    @property
    def targets(self) -> Tracker:
        """Return the targets; a reload may put another tracker there."""
        ...

    @property
    def engines_found(self) -> EnginesFound:
        """Return what the last search for metrics pages of targets found."""
        ...

    def reload(self) -> Awaitable[Sequence[str]]:
        """Read the configuration again and return what is wrong with it."""
        ...


@dataclass(frozen=True, slots=True)
class SamplerView:
    """A sampler as the pages show it.

    Args:
        spec: Its declaration.
        enabled: Whether the configuration wants it.
        units: Its instances, ordered by key; none while it is disabled or idle.
    """

    spec: SamplerSpec
    enabled: bool
    units: tuple[Unit, ...]

    @property
    def idle_reason(self) -> str | None:
        """Return why an enabled sampler has no instance, None when it has one or is disabled."""
        if self.units or not self.enabled:
            return None
        return self.spec.idle_reason or "nothing to do with this configuration"


def sampler_views(agent: AgentView) -> list[SamplerView]:
    """Return every sampler, ordered by name: those discovered, running or not, and the agent's own."""
    units: dict[str, list[Unit]] = {}
    for unit in agent.scheduler.units:
        units.setdefault(unit.spec.name, []).append(unit)
    # the agent's own sampler is run without having been discovered
    specs = {name: running[0].spec for name, running in units.items()} | dict(agent.discovery.specs)
    options = agent.loaded.options
    return [
        SamplerView(spec, name not in options or options[name].enabled, tuple(units.get(name, ())))
        for name, spec in sorted(specs.items())
    ]


def printable(text: str) -> str:
    """Replace what can't be shown: a newline would forge a line, a lone surrogate can't be encoded at all."""
    return "".join(char if char.isprintable() else "\N{REPLACEMENT CHARACTER}" for char in text)
