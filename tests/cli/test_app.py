"""The program as a whole: options, usage, exit codes."""

from pathlib import Path
from typing import get_args

import pytest

from inferwatch import __version__
from inferwatch.cli.app import LogFormat, LogLevel
from inferwatch.cli.settings import Flags
from inferwatch.config import AgentConfig
from support_cli import call, fake, samplers

COMMANDS = ("run", "once", "list", "targets", "doctor")


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    result = call(capsys, "--version")

    assert (result.code, result.out) == (0, f"inferwatch {__version__}\n")


@pytest.mark.parametrize("flag", ["-h", "--help"])
@pytest.mark.parametrize(
    "command", [(), ("run",), ("once",), ("list",), ("targets",), ("doctor",), ("check-config",), ("render",)]
)
def test_help(capsys: pytest.CaptureFixture[str], command: tuple[str, ...], flag: str) -> None:
    result = call(capsys, *command, flag)

    assert result.code == 0
    assert result.out.startswith("Usage: inferwatch")


@pytest.mark.parametrize(
    "arguments",
    [
        (),
        ("nonsense",),
        ("run", "--nonsense"),
        ("run", "argument"),
        ("once", "--format", "xml"),
        ("targets", "--format", "xml"),
        ("once", "--web.listen-address", ":1"),
        ("run", "--log.level", "loud"),
        ("check-config",),
        ("render", "nonsense"),
    ],
)
def test_wrong_usage_is_2_without_a_trace(capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...]) -> None:
    result = call(capsys, *arguments)

    assert result.code == 2
    assert "Usage: inferwatch" in result.out + result.err
    assert "Traceback" not in result.err


@pytest.mark.parametrize("command", COMMANDS)
def test_options_that_the_commands_share(capsys: pytest.CaptureFixture[str], command: str) -> None:
    text = call(capsys, command, "--help").out

    for option in ("--config", "--path.procfs", "--path.sysfs", "--path.rootfs", "--log.level", "--log.format"):
        assert option in text


def test_choices_are_those_of_the_configuration() -> None:
    fields = AgentConfig.model_fields

    assert get_args(LogLevel) == get_args(fields["log_level"].annotation)
    assert get_args(LogFormat) == get_args(fields["log_format"].annotation)


def test_flags_override_nothing_unless_given() -> None:
    assert Flags(config=Path("x")).overrides() == {}


def test_flags_are_nested_as_in_the_file() -> None:
    flags = Flags(procfs=Path("/p"), log_level="debug", listen_address=":1")

    assert flags.overrides() == {
        "agent": {"log_level": "debug", "paths": {"procfs": Path("/p")}},
        "web": {"listen_address": ":1"},
    }


@pytest.mark.parametrize("command", ["run", "once", "list", "targets"])
def test_configuration_that_can_not_be_used_is_2_with_a_line_per_mistake(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, command: str
) -> None:
    file = tmp_path / "config.toml"
    file.write_text("[agent]\nintervall = 1\n[samplers.cpuu]\n", encoding="utf-8")

    result = call(capsys, command, "--config", str(file))

    assert result.code == 2
    assert result.out == ""
    assert result.err == (
        f"{file}: agent.intervall: unknown option; did you mean interval_seconds?\n"
        f"{file}: samplers.cpuu: unknown sampler; did you mean cpu?\n"
    )


def test_option_that_can_not_be_used_is_2_and_named(capsys: pytest.CaptureFixture[str]) -> None:
    result = call(capsys, "run", "--web.listen-address", "nonsense")

    assert result.code == 2
    assert result.err.startswith("command line: web.listen_address: 'nonsense' is not an address to listen on")


def test_check_config_says_what_a_valid_file_switches_on(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    file = tmp_path / "config.toml"
    text = "[samplers.b]\nenabled = false\n[[engines]]\nurl = 'http://h:8000/metrics'\n[web]\nlisten_address = ':1'\n"
    file.write_text(text, encoding="utf-8")

    with samplers(monkeypatch, fake("a"), fake("b")):
        result = call(capsys, "check-config", str(file))

    assert (result.code, result.err) == (0, "")
    assert result.out == f"{file}: ok\nsamplers: a (off: b)\nengines: h:8000; listens on :1\n"


def test_engine_of_an_unknown_kind_is_2_with_a_hint(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    file = tmp_path / "config.toml"
    file.write_text("[[engines]]\nurl = 'http://h'\nkind = 'vlm'\n", encoding="utf-8")

    result = call(capsys, "check-config", str(file))

    assert result.code == 2
    assert result.err == (
        f"{file}: engines[0].kind: one of auto, vllm, llamacpp expected, found 'vlm'; did you mean vllm?\n"
    )


def test_check_config_of_an_invalid_file_is_2(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    result = call(capsys, "check-config", str(tmp_path / "missing"))

    assert (result.code, result.out) == (2, "")
    assert result.err.startswith(f"{tmp_path}/missing: can't be read: No such file or directory")


def test_unexpected_exception_is_1_with_its_trace_and_no_local_variables(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(_flags: Flags) -> int:
        token = "hunter" + "2"
        raise RuntimeError(token[:0] + "unforeseen")

    monkeypatch.setattr("inferwatch.cli.listing.run", broken)

    result = call(capsys, "list")

    assert result.code == 1
    assert "RuntimeError: unforeseen\ninferwatch: this is a mistake in inferwatch; please report it" in result.err
    assert "hunter2" not in result.err


def test_config_example_goes_where_it_is_told(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    file = tmp_path / "example.toml"

    written = call(capsys, "render", "config-example", "-o", str(file))
    printed = call(capsys, "render", "config-example")
    nowhere = call(capsys, "render", "config-example", "-o", str(tmp_path / "no" / "where"))

    assert (written.code, written.out) == (0, "")
    assert printed.out == file.read_text(encoding="utf-8")
    assert (nowhere.code, nowhere.err) == (1, f"{tmp_path}/no/where: can't be written: No such file or directory\n")


def test_render_docs_checks_and_writes(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    package = tmp_path / "daemon" / "inferwatch"
    for folder, names in {"samplers": ("metrics", "options"), "engines": ("mapping",)}.items():
        source = Path(__file__).parents[2] / "daemon" / "inferwatch" / folder
        (package / folder).mkdir(parents=True)
        pairs = "".join(f"<!-- {name}:begin -->\n<!-- {name}:end -->\n" for name in names)
        for module in source.glob("[a-z]*.py"):
            (package / folder / f"{module.stem}.md").write_text(pairs, encoding="utf-8")

    before = call(capsys, "render", "docs", "--check", "--root", str(tmp_path))
    written = call(capsys, "render", "docs", "--root", str(tmp_path))
    after = call(capsys, "render", "docs", "--check", "--root", str(tmp_path))

    assert before.code == 1
    assert f"{package}/samplers/cpu.md: its generated part is out of date\n" in before.err
    assert f"{tmp_path}/docs/metrics.md: written\n" in written.out
    assert (written.code, after.code, after.err) == (0, 0, "")
