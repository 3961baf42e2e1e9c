"""The command `run`: what it says when it is ready, and when it can't listen."""

import asyncio
import json
import socket
from collections.abc import Callable
from pathlib import Path

import pytest

from inferwatch.agent import Agent
from inferwatch.cli import run as command
from inferwatch.cli.report import Report
from inferwatch.cli.summary import summary
from inferwatch.errors import NoData
from support_cli import Called, call, fake, raising, samplers


@pytest.fixture(name="stopping")
def _stopping(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let every agent stop by itself as soon as it has announced itself."""
    announce: Callable[[Agent, str], None] = command.announce

    def announce_and_stop(agent: Agent, url: str) -> None:
        announce(agent, url)
        agent._stop.set()

    monkeypatch.setattr(command, "announce", announce_and_stop)


def run(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, *arguments: str) -> Called:
    specs = (fake("a"), fake("b", raising(NoData("no such thing"))), fake("engine", keys=()), fake("off"))
    with samplers(monkeypatch, *specs, problems=("mine: can't be loaded",)):
        return call(capsys, "run", "--web.listen-address", "127.0.0.1:0", *arguments)


@pytest.mark.usefixtures("stopping")
def test_person_gets_a_summary_on_standard_output(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    config = tmp_path / "config.toml"
    config.write_text("[samplers.off]\nenabled = false\n", encoding="utf-8")

    result = run(capsys, monkeypatch, "--log.format", "console", "--config", str(config))

    assert result.code == 0
    assert "is ready: http://127.0.0.1:" in result.out
    assert "It samples\n  a       ok\n" in result.out
    assert "  b       unavailable  no such thing\n" in result.out
    assert "  engine  idle         nothing configured\n" in result.out
    assert "  off     disabled     switched off in the configuration\n" in result.out
    assert "left out\n  mine: can't be loaded\n" in result.out
    assert 'targets: ["127.0.0.1:' in result.out
    assert "[[engines]]" in result.out
    assert "agent ready" not in result.err


@pytest.mark.usefixtures("stopping")
def test_log_collector_gets_one_event_and_nothing_on_standard_output(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    result = run(capsys, monkeypatch, "--log.format", "json")
    ready = [line for line in map(json.loads, result.err.splitlines()) if line["event"] == "agent ready"]

    assert (result.code, result.out) == (0, "")
    assert len(ready) == 1
    assert ready[0]["url"].startswith("http://127.0.0.1:")
    assert ready[0]["sampling"] == ["a", "off"]
    assert ready[0]["unavailable"] == {"b": "no such thing"}
    assert ready[0]["idle"] == {"engine": "nothing configured"}


def test_address_in_use_is_1_with_one_line_that_says_what_to_do(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    with socket.socket() as taken, samplers(monkeypatch, fake("a")):
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        result = call(capsys, "run", "--web.listen-address", address, "--log.level", "error")

    assert (result.code, result.out) == (1, "")
    assert result.err == (
        f"can't listen on {address}: another inferwatch, or another program, listens there;"
        " stop it, or choose another address with --web.listen-address\n"
    )


def test_address_of_another_host_is_1_with_the_reason(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    with samplers(monkeypatch, fake("a")):
        result = call(capsys, "run", "--web.listen-address", "192.0.2.1:80", "--log.level", "error")

    assert result.code == 1
    assert "can't listen on 192.0.2.1:80: Cannot assign requested address" in result.err
    assert "Traceback" not in result.err


def test_os_error_after_the_start_is_a_mistake_and_shows_where(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(_agent: Agent, _url: str) -> None:
        raise OSError("unforeseen")

    monkeypatch.setattr(command, "announce", broken)

    result = run(capsys, monkeypatch)

    assert result.code == 1
    assert "Traceback" in result.err
    assert "please report it" in result.err


def test_configuration_is_read_again_with_the_same_options(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    config = tmp_path / "config.toml"
    config.write_text("[agent]\nlog_level = 'info'\n", encoding="utf-8")
    levels = []

    def reload_and_stop(agent: Agent, _url: str) -> None:
        async def reload() -> None:
            config.write_text("[agent]\nlog_level = 'debug'\ninterval_seconds = 7\n", encoding="utf-8")
            levels.append((await agent.reload(), agent.loaded.config.agent))
            agent._stop.set()

        tasks.append(asyncio.get_running_loop().create_task(reload()))

    tasks: list[asyncio.Task[None]] = []
    monkeypatch.setattr(command, "announce", reload_and_stop)
    run(capsys, monkeypatch, "--config", str(config), "--log.level", "error")

    problems, agent_config = levels[0]
    assert problems == []
    assert (agent_config.log_level, agent_config.interval_seconds) == ("error", 7)


def test_summary_does_not_offer_an_engine_when_there_is_one() -> None:
    text = summary("http://h:1", [Report("engine", "ok", "chat")], ())

    assert "[[engines]]" not in text
    assert "It does not sample" not in text
