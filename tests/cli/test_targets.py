"""The command `targets`."""

import json
import sys
import tomllib
from pathlib import Path

import pytest

from inferwatch.agent import Agent
from inferwatch.cli import targets as command
from inferwatch.cli.settings import Flags
from inferwatch.config import Config
from inferwatch.config_targets import DiscoveryConfig
from inferwatch.errors import SourceError
from inferwatch.targets.model import Endpoint, ProcessId, Target, TargetProcess, TargetTable
from inferwatch.targets.probe import DiscoveredEngine
from inferwatch.targets.probe import Discovery as EnginesFound
from inferwatch.targets.tracker import TargetTracker
from support_cli import Terminal, call

HOSTILE = 'a"[/red]\n\x1b[31m\u202e\udc80'
SAFE = 'a"[/red]��[31m��'


def show(monkeypatch: pytest.MonkeyPatch, table: TargetTable, found: EnginesFound | None = None) -> None:
    """Let the command find these targets."""

    def refresh(tracker: TargetTracker) -> TargetTable:
        tracker._table = table
        return table

    async def find_engines(agent: Agent) -> bool:
        agent.engines_found = found or EnginesFound((), {})
        return True

    monkeypatch.setattr(TargetTracker, "refresh", refresh)
    monkeypatch.setattr(Agent, "find_engines", find_engines)


def processes(*roles: str) -> tuple[TargetProcess, ...]:
    return tuple(TargetProcess(ProcessId(100 + n, n), 1, "python3", role) for n, role in enumerate(roles))


SERVING = Target(
    "vllm-8000", "vllm", "m/x", processes("api_server", "engine_core", *["worker"] * 6), container_id="c" * 64,
    endpoints=(Endpoint("http://127.0.0.1:8000", 8000, front=True), Endpoint("http://127.0.0.1:29500", 29500)),
    pod="p-0", pod_namespace="ml",
)  # fmt: skip
UNREACHABLE = Target(
    "tgi-3000", "tgi", "", processes("router"), endpoints=(Endpoint("", 3000, "no way there", front=True),)
)
FOUND = EnginesFound((DiscoveredEngine("vllm-8000", "http://127.0.0.1:8000/metrics", "vllm"),), {})


def test_table_has_a_line_per_target(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    show(monkeypatch, TargetTable((UNREACHABLE, SERVING)), FOUND)
    result = call(capsys, "targets")
    lines = [line.split(None, 7) for line in result.out.splitlines()[1:]]

    assert result.code == 0
    assert lines == [
        ["tgi-3000", "tgi", "-", "router×1", "100", ":3000", "-", "none: port 3000: no way there"],  # noqa: RUF001 - times
        [
            "vllm-8000",
            "vllm",
            "m/x",
            "api_server×1,engine_core×1,worker×6",  # noqa: RUF001 - times
            "100,101,102,103,104,105,+2",
            "http://127.0.0.1:8000",
            "cccccccccccc,ml/p-0",
            "http://127.0.0.1:8000/metrics",
        ],
    ]


def test_columns_are_aligned(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    show(monkeypatch, TargetTable((UNREACHABLE, SERVING)), FOUND)
    head, first, second = call(capsys, "targets").out.splitlines()

    assert head.index("metrics page") == first.index("none: ") == second.index("http://127.0.0.1:8000/metrics")


def test_terminal_gets_a_table_and_brackets_are_no_markup(monkeypatch: pytest.MonkeyPatch) -> None:
    out = Terminal()
    show(monkeypatch, TargetTable((Target("[/red]", "vllm", "m/x", processes("server")),)))
    monkeypatch.setattr(sys, "stdout", out)
    monkeypatch.setenv("COLUMNS", "200")

    assert command.run(Flags(), "text") == 0
    assert "[/red]" in out.text
    assert "m/x" in out.text


def test_hostile_names_forge_no_lines_and_no_colours(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    target = Target(HOSTILE, "vllm", HOSTILE, processes(HOSTILE), pod=HOSTILE, pod_namespace="ml")
    show(monkeypatch, TargetTable((target,)), EnginesFound((), {HOSTILE: HOSTILE}))
    result = call(capsys, "targets")

    assert len(result.out.splitlines()) == 2
    assert result.out.count(SAFE) == 5
    assert "\x1b" not in result.out


def test_json_is_the_document_of_the_api(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    target = Target(HOSTILE, "vllm", "", processes("server"))
    show(monkeypatch, TargetTable((target, SERVING)), FOUND)
    result = call(capsys, "targets", "--format", "json")
    first, second = json.loads(result.out)["targets"]

    assert result.code == 0
    assert first["name"] == HOSTILE.replace("\udc80", "�")
    assert second["metrics_page"]["url"] == "http://127.0.0.1:8000/metrics"
    assert len(second["processes"]) == 8


def test_no_targets_is_fine_and_tells_how_to_name_one(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    show(monkeypatch, TargetTable())
    result = call(capsys, "targets")
    said, _, rule = result.out.partition("\n\n")

    assert result.code == 0
    assert said.startswith("no serving process found; ")
    config = Config.model_validate(tomllib.loads(rule))
    assert config.targets[0].match.cmdline == r"python .*serve\.py"


def test_search_that_is_switched_off_is_told() -> None:
    assert 'processes = "off"' in command.nothing_found(Config(discovery=DiscoveryConfig(processes="off")))


def test_what_is_missing_is_told_on_standard_error(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    show(monkeypatch, TargetTable((SERVING,), 1, 1, 3, {"targets": 2, "processes": 0}), FOUND)
    result = call(capsys, "targets")

    assert result.code == 0
    assert result.err == (
        "3 processes can't be read, so targets, ports or containers may be missing;"
        " run as root or with CAP_SYS_PTRACE\n"
        "2 targets left out because of a limit of [discovery]\n"
    )


def test_hidden_processes_are_told_on_standard_error(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    show(monkeypatch, TargetTable(hidden=True))
    result = call(capsys, "targets")

    assert result.code == 0
    assert "hidepid" in result.err
    assert "CAP_SYS_PTRACE" in result.err


def test_directory_that_is_missing_is_1(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    result = call(capsys, "targets", "--path.procfs", str(tmp_path / "missing"))

    assert (result.code, result.out) == (1, "")
    assert str(tmp_path) in result.err
    assert "Traceback" not in result.err


def test_processes_that_can_not_be_listed_are_1(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(_tracker: TargetTracker) -> TargetTable:
        raise SourceError("/proc: refused", reason="permission_denied")

    monkeypatch.setattr(TargetTracker, "refresh", refuse)
    result = call(capsys, "targets")

    assert (result.code, result.err) == (1, "/proc: refused\n")


def test_processes_that_are_not_read_in_time_are_1(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(command, "LOOK_LIMIT_SECONDS", 0.0)
    result = call(capsys, "targets")

    assert result.code == 1
    assert result.err == "/proc: not read within 0 s\n"
