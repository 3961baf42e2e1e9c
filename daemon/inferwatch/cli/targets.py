"""The command `targets`: which serving processes are found here, and where their metrics are."""

import asyncio
import sys
from collections.abc import Sequence
from typing import Final, NamedTuple

from inferwatch import logs
from inferwatch.agent import Agent
from inferwatch.cli import settings
from inferwatch.cli.output import complain, say, write
from inferwatch.cli.table import aligned, print_rich
from inferwatch.config import Config
from inferwatch.errors import InferwatchError
from inferwatch.runtime.blocking import BlockingPool, Lane
from inferwatch.runtime.discovery import find_samplers
from inferwatch.samplers.targets import HIDDEN
from inferwatch.targets.model import Target, TargetTable
from inferwatch.web.api import to_json
from inferwatch.web.targets_api import targets_document
from inferwatch.web.targets_view import TargetView, front, target_views
from inferwatch.web.view import printable

LOOK_LIMIT_SECONDS: Final = 10.0
PIDS_SHOWN: Final = 6
ADDRESSES_SHOWN: Final = 2
CONTAINER_DIGITS: Final = 12
HEADER: Final = ("target", "engine", "model", "processes", "pids", "address", "container", "metrics page")
RULE: Final = """\
[[targets]]
name = "my-service"
match = { cmdline = "python .*serve\\\\.py" }"""


class Row(NamedTuple):
    """One line of the table."""

    name: str
    engine: str
    model: str
    roles: str
    pids: str
    address: str
    container: str
    metrics_page: str


def run(flags: settings.Flags, output_format: str) -> int:
    """Look once and print what there is; return 1 when the processes can't be looked at."""
    discovery = find_samplers()
    loaded = settings.load(flags, discovery)
    logs.configure(loaded.config.agent.log_level, loaded.config.agent.log_format)
    agent = Agent(loaded, discovery, lambda: loaded)
    try:
        asyncio.run(_look(agent))
    except TimeoutError:
        complain(f"{loaded.config.agent.paths.procfs}: not read within {LOOK_LIMIT_SECONDS:g} s")
        return 1
    except InferwatchError as error:
        complain(str(error))
        return 1
    if output_format == "json":
        write(to_json(targets_document(agent)))
    else:
        _print(agent)
    complain(*missing(agent.targets.current()))
    return 0


async def _look(agent: Agent) -> None:
    async with asyncio.timeout(LOOK_LIMIT_SECONDS):
        await Lane(BlockingPool())(agent.targets.refresh)
    await agent.find_engines()


def _print(agent: Agent) -> None:
    found = [_row(view) for view in target_views(agent)]
    if not found:
        say(nothing_found(agent.loaded.config))
    elif sys.stdout.isatty():
        print_rich(HEADER, found)
    else:
        say(aligned(HEADER, found))


def _row(view: TargetView) -> Row:
    target, page = view.target, view.page
    row = Row(
        name=target.name,
        engine=target.engine,
        model=view.model,
        roles=",".join(f"{role}×{number}" for role, number in view.roles.items()),  # noqa: RUF001 - the sign for times
        pids=_some([str(process.id.pid) for process in target.processes], PIDS_SHOWN),
        address=_some([endpoint.url or f":{endpoint.port}" for endpoint in front(target)], ADDRESSES_SHOWN),
        container=_container(target),
        metrics_page=page.url or f"none: {page.missing_reason}",
    )
    return Row(*map(printable, row))


def _some(items: Sequence[str], limit: int) -> str:
    more = [f"+{len(items) - limit}"] if len(items) > limit else []
    return ",".join([*items[:limit], *more])


def _container(target: Target) -> str:
    pod = f"{target.pod_namespace}/{target.pod}" if target.pod else target.pod_uid
    return ",".join(part for part in (target.container_id[:CONTAINER_DIGITS], pod) if part)


def nothing_found(config: Config) -> str:
    """Return what to do where no target was found."""
    off = ' (known engines are not looked for: processes = "off" under [discovery])'
    found = f"no serving process found{off if config.discovery.processes == 'off' else ''}"
    return f"{found}; a rule in the configuration names one that is not recognised:\n\n{RULE}"


def missing(table: TargetTable) -> list[str]:
    """Return a sentence for each reason why targets may be missing."""
    sentences = []
    if table.hidden:
        sentences.append(HIDDEN)
    if table.permission_denied:
        unread = f"{table.permission_denied} processes can't be read, so targets, ports or containers may be missing"
        sentences.append(f"{unread}; run as root or with CAP_SYS_PTRACE")
    sentences += [
        f"{number} {what} left out because of a limit of [discovery]"
        for what, number in sorted(table.left_out.items())
        if number
    ]
    return sentences
