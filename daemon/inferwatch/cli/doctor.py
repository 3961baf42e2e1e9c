"""The command `doctor`: what works on this host, what does not, and what to do."""

import asyncio
from collections.abc import Iterator, Mapping
from typing import Final

from inferwatch import logs
from inferwatch.agent import Agent
from inferwatch.cli import abilities, settings
from inferwatch.cli.abilities import Finding, Level
from inferwatch.cli.output import say
from inferwatch.cli.report import DISABLED, IDLE, Report, one_line, reports
from inferwatch.cli.round import Round
from inferwatch.configfile import LoadedConfig
from inferwatch.errors import ConfigError
from inferwatch.runtime.discovery import find_samplers
from inferwatch.runtime.unit import State
from inferwatch.samplers import Discovery

LEVELS: Final[Mapping[str, Level]] = {
    State.OK: Level.OK,
    State.PARTIAL: Level.NOTE,
    State.UNAVAILABLE: Level.NOTE,
    DISABLED: Level.NOTE,
    IDLE: Level.NOTE,
}


def run(flags: settings.Flags) -> int:
    """Print one line per ability; return 1 when something that is configured fails."""
    discovery = find_samplers()
    findings = []
    for finding in _findings(flags, discovery):
        findings.append(finding)
        say(f"{finding.level:4}  {finding.ability:24}  {one_line(finding.text)}".rstrip())
    return int(any(finding.level is Level.FAIL for finding in findings))


def _findings(flags: settings.Flags, discovery: Discovery) -> Iterator[Finding]:
    yield abilities.program()
    try:
        loaded = settings.load(flags, discovery)
    except ConfigError as error:
        yield from (Finding("configuration", Level.FAIL, problem) for problem in error.problems)
        yield Finding("configuration", Level.NOTE, "what follows is about the defaults")
        loaded = settings.load(settings.Flags(), discovery)
    else:
        where = f"{loaded.path} is valid" if loaded.path else "none given, the defaults are in use"
        yield Finding("configuration", Level.OK, where)
    yield abilities.permissions()
    yield from abilities.file_systems(loaded.config.agent.paths)
    yield abilities.listen_address(loaded.config.web.listen_address)
    yield from (Finding("plugin", Level.FAIL, problem) for problem in discovery.problems)
    yield from _samplers(loaded, discovery)


def _samplers(loaded: LoadedConfig, discovery: Discovery) -> Iterator[Finding]:
    """Run everything once and tell of each sampler, and of each instance where there are named ones (engines)."""
    level = loaded.config.agent.log_level
    # what a run would log stands in the lines below
    logs.configure("error" if level in {"info", "warning"} else level, loaded.config.agent.log_format)
    taken = asyncio.run(_take(Agent(loaded, discovery, lambda: loaded)))
    for report in reports(discovery, loaded, taken.units, taken.store.snapshots()):
        yield Finding(report.name, LEVELS.get(report.state, Level.FAIL), _sentence(report))


async def _take(agent: Agent) -> Round:
    taken = Round(agent)
    await taken.take()
    return taken


def _sentence(report: Report) -> str:
    return f"{report.state}: {report.detail}" if report.detail else report.state
