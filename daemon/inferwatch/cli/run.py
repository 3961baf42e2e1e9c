"""The command `run`: sample and serve until stopped."""

import asyncio
import errno
import sys
from collections.abc import Coroutine
from contextlib import suppress
from functools import partial
from typing import Any, Final

from inferwatch import logs
from inferwatch.agent import Agent
from inferwatch.cli import settings
from inferwatch.cli.output import complain, say
from inferwatch.cli.report import WORKING, Report, reports
from inferwatch.cli.summary import summary
from inferwatch.runtime.discovery import find_samplers
from inferwatch.runtime.memory import share_one_arena

END_SECONDS: Final = 0.5


def run(flags: settings.Flags) -> int:
    """Run the agent; return the exit code."""
    share_one_arena()
    discovery = find_samplers()
    loaded = settings.load(flags, discovery)
    logs.configure(loaded.config.agent.log_level, loaded.config.agent.log_format)
    agent = Agent(loaded, discovery, partial(settings.load, flags, discovery))
    ready: list[str] = []

    def announce_once(agent: Agent, url: str) -> None:
        ready.append(url)
        announce(agent, url)

    try:
        _run_to_the_end(agent.run(announce_once))
    except OSError as error:
        if ready:  # not the address then, but a mistake in the agent
            raise
        complain(_cannot_listen(loaded.config.web.listen_address, error))
        return 1
    return 0


def _run_to_the_end(main: Coroutine[Any, Any, None]) -> None:
    """Run like `asyncio.run`, but end also when a task swallows its cancellation: the interpreter's exit ends it."""
    loop = asyncio.new_event_loop()
    try:
        loop.run_until_complete(main)
    finally:
        left = asyncio.all_tasks(loop)
        for task in left:
            task.cancel()
        if left:
            loop.run_until_complete(asyncio.wait(left, timeout=END_SECONDS))
        if all(task.done() for task in left):
            loop.close()


def announce(agent: Agent, url: str) -> None:
    """Tell what is sampled and what is not: people in a summary, a log collector in one event."""
    found = reports(agent.discovery, agent.loaded, agent.scheduler.units, agent.store.snapshots())
    log_format = agent.loaded.config.agent.log_format
    terminal = sys.stderr is not None and sys.stderr.isatty()
    console = log_format == "console" or (log_format == "auto" and terminal)
    if console or terminal:
        with suppress(SystemExit):  # that nobody can read the greeting is no reason to stop
            say(summary(url, found, agent.discovery.problems))
    if not console:
        _log_ready(url, found)


def _log_ready(url: str, found: list[Report]) -> None:
    by_state: dict[str, dict[str, str]] = {}
    for report in found:
        by_state.setdefault(report.state, {})[report.name] = report.detail
    rest = {state: names for state, names in sorted(by_state.items()) if state not in {*WORKING, "unavailable"}}
    logs.get_logger().info(
        "agent ready",
        url=url,
        sampling=[report.name for report in found if report.state in WORKING],
        unavailable=by_state.get("unavailable", {}),
        **rest,
    )


def _cannot_listen(address: str, error: OSError) -> str:
    if error.errno == errno.EADDRINUSE:
        return (
            f"can't listen on {address}: another inferwatch, or another program, listens there;"
            " stop it, or choose another address with --web.listen-address"
        )
    return str(error)  # the web server's own sentence, which says what to do
