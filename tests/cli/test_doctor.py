"""The command `doctor`."""

import http.server
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from inferwatch.cli import abilities
from inferwatch.cli.abilities import Level
from inferwatch.config import Paths
from inferwatch.errors import NoData, SourceError
from inferwatch.spec import PartialData
from support import fail_open, tree
from support_cli import VALUE, Called, call, fake, hang_in_a_thread, raising, samplers


@contextmanager
def listener() -> Iterator[str]:
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        server.listen()
        yield f"127.0.0.1:{server.getsockname()[1]}"


@pytest.fixture(name="config")
def _config(tmp_path: Path) -> Path:
    """Return a file that names a free port, so that an agent on the default one changes nothing."""
    path = tmp_path / "config.toml"
    path.write_text("[web]\nlisten_address = '127.0.0.1:0'\n", encoding="utf-8")
    return path


def levels(result: Called) -> dict[str, str]:
    """Return ability to level."""
    return {line.split()[1]: line.split()[0] for line in result.out.splitlines()}


def test_every_outcome_of_a_sampler_is_a_line(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, config: Path
) -> None:
    config.write_text(config.read_text(encoding="utf-8") + "[samplers.e]\nenabled = false\n", encoding="utf-8")
    partial = PartialData([VALUE(1, "x")], {"io": "no\nrest"})
    specs = (
        fake("a"),
        fake("b", raising(partial)),
        fake("c", raising(NoData("no such thing"))),
        fake("d", keys=()),
        fake("e"),
    )
    with samplers(monkeypatch, *specs):
        result = call(capsys, "doctor", "--config", str(config))

    assert result.code == 0
    assert result.out.splitlines()[-5:] == [
        "ok    a                         ok",
        "note  b                         partial: no rest",
        "note  c                         unavailable: no such thing",
        "note  d                         idle: nothing configured",
        "note  e                         disabled: switched off in the configuration",
    ]


@pytest.mark.parametrize("run", [raising(SourceError("denied", reason="io")), raising(KeyError("x")), hang_in_a_thread])
def test_sampler_that_fails_is_1(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, config: Path, run: object
) -> None:
    with samplers(monkeypatch, fake("a", run)):  # type: ignore[arg-type] # parametrize has no types
        result = call(capsys, "doctor", "--config", str(config))

    assert result.code == 1
    assert levels(result)["a"] == "FAIL"


def test_every_instance_with_a_name_is_a_line_of_its_own(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, config: Path
) -> None:
    with samplers(monkeypatch, fake("engine", keys=("chat", "embed"))):
        result = call(capsys, "doctor", "--config", str(config))

    assert {"engine[chat]": "ok", "engine[embed]": "ok"}.items() <= levels(result).items()


def test_engine_that_does_not_answer_is_1(capsys: pytest.CaptureFixture[str], config: Path) -> None:
    with listener() as address:
        pass
    engine = f"[[engines]]\nurl = 'http://{address}/metrics'\ntarget = 'chat'\n"
    config.write_text(config.read_text(encoding="utf-8") + engine, encoding="utf-8")
    result = call(capsys, "doctor", "--config", str(config))

    assert result.code == 1
    assert f"FAIL  engine[chat]              down: http://{address}/metrics: can't connect" in result.out


def test_invalid_configuration_is_1_and_the_defaults_are_looked_at(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, config: Path
) -> None:
    config.write_text("[agnet]\n", encoding="utf-8")
    with samplers(monkeypatch, fake("a")):
        result = call(capsys, "doctor", "--config", str(config))

    assert result.code == 1
    assert f"FAIL  configuration             {config}: agnet: unknown option; did you mean agent?\n" in result.out
    assert levels(result)["a"] == "ok"


def test_plugin_that_can_not_be_used_is_1(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, config: Path
) -> None:
    with samplers(monkeypatch, fake("a"), problems=("mine: can't be loaded",)):
        result = call(capsys, "doctor", "--config", str(config))

    assert (result.code, levels(result)["plugin"]) == (1, "FAIL")


def test_missing_file_systems_say_which_option_names_them(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, config: Path, tmp_path: Path
) -> None:
    nowhere = str(tmp_path / "nowhere")
    roots = [f"--path.{name}={nowhere}" for name in ("procfs", "sysfs", "rootfs")]
    with samplers(monkeypatch, fake("a")):
        result = call(capsys, "doctor", "--config", str(config), *roots)

    assert result.code == 1
    assert (
        f"FAIL  procfs                    {nowhere}/stat: No such file or directory; is it mounted there?" in result.out
    )
    assert "check --path.sysfs" in result.out
    assert "check --path.rootfs" in result.out


def procfs(tmp_path: Path, files: dict[str, bytes], namespace: str | None = None) -> abilities.Finding:
    hostfs = tree(tmp_path, {"proc/stat": b"cpu 1\n", "sys/devices/system/cpu/online": b"0\n", **files})
    if namespace is not None:
        (tmp_path / "proc/1/ns").mkdir(parents=True)
        (tmp_path / "proc/1/ns/pid").symlink_to(namespace)
    found = abilities.file_systems(Paths(procfs=hostfs.procfs, sysfs=hostfs.sysfs, rootfs=hostfs.rootfs))
    return next(finding for finding in found if finding.ability == "procfs")


def test_procfs_of_the_host_is_recognised(tmp_path: Path) -> None:
    assert procfs(tmp_path, {}, "pid:[4026531836]").text == f"{tmp_path}/proc is the host's"


def test_procfs_of_a_container_is_a_note(tmp_path: Path) -> None:
    finding = procfs(tmp_path, {}, "pid:[4026532201]")

    assert finding.level is Level.NOTE
    assert "name it with --path.procfs" in finding.text


def test_hidden_processes_are_a_note(tmp_path: Path) -> None:
    finding = procfs(tmp_path, {})

    assert finding.level is Level.NOTE
    assert "hidepid" in finding.text


def test_namespace_that_may_not_be_read_is_nothing_to_complain_of(tmp_path: Path) -> None:
    assert procfs(tmp_path, {"proc/1/stat": b""}).text == f"{tmp_path}/proc is readable"


def test_file_that_may_not_be_read_is_a_failure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fail_open(monkeypatch, {"proc/stat": 13})

    finding = procfs(tmp_path, {})

    assert finding.level is Level.FAIL
    assert "Permission denied; run as root" in finding.text


def test_free_address_is_ok() -> None:
    with listener() as address:
        pass

    assert abilities.listen_address(address) == abilities.Finding("web", Level.OK, f"{address} is free")


def test_address_of_another_program_is_a_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(abilities, "ASK_LIMIT_SECONDS", 0.2)
    with listener() as address:
        finding = abilities.listen_address(address)

    assert finding.level is Level.FAIL
    assert finding.text.startswith(f"another program listens on {address}")


@pytest.mark.parametrize(("server", "level"), [("inferwatch", Level.OK), ("nginx", Level.FAIL)])
def test_address_of_an_agent_that_runs_already_is_ok(server: str, level: Level) -> None:
    class Handler(http.server.BaseHTTPRequestHandler):
        def version_string(self) -> str:
            return server

        def do_GET(self) -> None:
            self.send_response(200)
            self.end_headers()

        def log_message(self, *_arguments: object) -> None:
            """Say nothing."""

    with http.server.HTTPServer(("127.0.0.1", 0), Handler) as peer:
        thread = threading.Thread(target=peer.handle_request)
        thread.start()
        finding = abilities.listen_address(f"127.0.0.1:{peer.server_port}")
        thread.join()

    assert finding.level is level


def test_address_of_another_host_is_a_failure() -> None:
    finding = abilities.listen_address("192.0.2.1:80")

    assert finding.level is Level.FAIL
    assert finding.text.startswith("can't listen on 192.0.2.1:80: Cannot assign requested address")
