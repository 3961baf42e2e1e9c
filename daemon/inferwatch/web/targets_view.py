"""What the pages and the command line tell of a target beyond its record: its metrics page, its last OOM kill."""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from inferwatch.config import Config
from inferwatch.config_engines import EngineConfig
from inferwatch.model import Event
from inferwatch.runtime.events import EventRing
from inferwatch.sources.http import shown_address
from inferwatch.sources.procfs.net_tcp import Address
from inferwatch.targets.model import Endpoint, Target
from inferwatch.targets.places import Place, places
from inferwatch.targets.probe import Discovery as EnginesFound
from inferwatch.web.view import AgentView

OOM_KILL: Final = "oom_kill"
AUTO: Final = "auto"
SWITCHED_OFF: Final = 'not looked for: engines = "off" under [discovery]'
NO_PORT: Final = "it listens on no port for clients yet, or which port can't be read"
NOT_YET: Final = "not looked for yet"


@dataclass(frozen=True, slots=True)
class MetricsPage:
    """Where a target's metrics are scraped, or why they are not.

    Args:
        url: Address of the page, empty when there is none.
        engine: Engine by the page's series or by the user's entry; empty when neither tells.
        model: Model by the page or the entry; empty when neither tells.
        found_by: `discovery`, `configuration` (an `[[engines]]` entry) or empty.
        missing_reason: Why no page of it is scraped, empty when one is.
    """

    url: str = ""
    engine: str = ""
    model: str = ""
    found_by: str = ""
    missing_reason: str = ""


@dataclass(frozen=True, slots=True)
class TargetView:
    """A target as the pages show it.

    Args:
        target: Its record.
        page: Its metrics page.
        oom_kill: The newest event about an OOM kill of it, None when none is known.
    """

    target: Target
    page: MetricsPage
    oom_kill: Event | None

    @property
    def model(self) -> str:
        """Return the model that the command line tells, or else the page; empty when neither does."""
        return self.target.model or self.page.model

    @property
    def roles(self) -> Mapping[str, int]:
        """Return the number of processes by role, the role of the oldest process first."""
        return Counter(process.role for process in self.target.processes)


def target_views(agent: AgentView) -> list[TargetView]:
    """Return every target, ordered by name."""
    config, found, own = agent.loaded.config, agent.engines_found, agent.targets.own_addresses
    kills = newest_oom_kills(agent.events)
    return [
        TargetView(target, metrics_page(target, config, found, own), kills.get(target.name))
        for target in agent.targets.current().targets
    ]


def newest_oom_kills(events: EventRing) -> Mapping[str, Event]:
    """Return the newest OOM kill of each target that the ring still has; those of no target are under ""."""
    _, known = events.since()
    return {event.target or "": event for event in known if event.kind == OOM_KILL}


def metrics_page(
    target: Target, config: Config, found: EnginesFound, own_addresses: Collection[Address] = frozenset()
) -> MetricsPage:
    """Return where a target's metrics are scraped; a user's entry wins, as it does in the search."""
    entry = _entry_of(target, config.engines, own_addresses, found)
    if entry is not None:
        engine = "" if entry.kind == AUTO else entry.kind
        return MetricsPage(shown_address(entry.url), engine, entry.model or "", "configuration")
    if config.discovery.engines == "off":
        return MetricsPage(missing_reason=SWITCHED_OFF)
    engine_found = next((engine for engine in found.engines if engine.target == target.name), None)
    if engine_found is not None:
        return MetricsPage(engine_found.url, engine_found.engine, engine_found.model, "discovery")
    return MetricsPage(missing_reason=_why_not(target, found))


def front(target: Target) -> Sequence[Endpoint]:
    """Return the endpoints for clients."""
    return [endpoint for endpoint in target.endpoints if endpoint.front]


def _entry_of(
    target: Target, entries: Sequence[EngineConfig], own: Collection[Address], found: EnginesFound
) -> EngineConfig | None:
    ends = frozenset[Place]().union(*(places(end.url, own) for end in front(target) if end.url))
    return next((e for e in entries if e.target_name == target.name or places(e.url, own, found.hosts) & ends), None)


def _why_not(target: Target, found: EnginesFound) -> str:
    if target.name in found.problems:
        return found.problems[target.name]
    endpoints = front(target)
    unreachable = [f"port {e.port}: {e.unreachable_reason}" for e in endpoints if e.unreachable_reason]
    if unreachable:
        return "; ".join(unreachable)
    return NOT_YET if endpoints else NO_PORT
