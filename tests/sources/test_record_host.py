"""The script that records a host tree: what it writes is what the samplers read, and it overwrites nothing."""

import runpy
import sys
from pathlib import Path

import pytest

from inferwatch.samplers import cpu, memory, network
from support import HOSTS, host, make_context, tree

SCRIPT = HOSTS.parent / "record_host.py"


def run_script(monkeypatch: pytest.MonkeyPatch, *arguments: str) -> int:
    monkeypatch.setattr(sys, "argv", [str(SCRIPT), *arguments])
    with pytest.raises(SystemExit) as caught:
        runpy.run_path(str(SCRIPT), run_name="__main__")
    assert isinstance(caught.value.code, int)
    return caught.value.code


async def test_recorded_tree_feeds_the_samplers(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    target = tmp_path / "recorded"

    assert run_script(monkeypatch, str(target)) == 0
    for module in (cpu, memory, network):
        assert await module.SAMPLER.create(make_context(tree(target, {}))).sample()
    assert "kernel: " in (target / "ORIGIN.md").read_text()


def test_existing_recording_is_not_overwritten(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    (tmp_path / "ORIGIN.md").write_text("mine")

    assert run_script(monkeypatch, str(tmp_path)) == 2
    assert "not overwritten" in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["ORIGIN.md"]


def test_only_listed_files_are_recorded(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    run_script(monkeypatch, str(tmp_path / "recorded"))
    listed = {f"proc/{name}" for name in runpy.run_path(str(SCRIPT))["PROC_FILES"]} | {"ORIGIN.md"}
    written = {
        str(path.relative_to(tmp_path / "recorded")) for path in (tmp_path / "recorded").rglob("*") if path.is_file()
    }

    assert {name for name in written if not name.startswith("sys/devices/system/node/")} <= listed


@pytest.mark.parametrize("name", ["debian12-2cpu", "two-nodes", "hotplug", "psi-off"])
def test_every_tree_tells_its_origin(name: str) -> None:
    text = (host(name).rootfs / "ORIGIN.md").read_text()

    assert text.startswith("# Origin\n\n")
    assert "Recorded on 20" in text or "Constructed (20" in text
