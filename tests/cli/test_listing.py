"""The command `list`."""

import sys
import time
from pathlib import Path

import pytest

from inferwatch.cli import listing
from inferwatch.cli.settings import Flags
from support_cli import Terminal, call, fake, samplers


def test_table_has_a_line_per_sampler_with_tabs_between_the_columns(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    config = tmp_path / "config.toml"
    config.write_text("[samplers.off]\nenabled = false\n", encoding="utf-8")
    unmet = fake("unmet", requires=(lambda _hostfs: None, lambda _hostfs: "no such\nthing here"))
    with samplers(monkeypatch, fake("off"), fake("idle", keys=()), unmet, fake("fine")):
        result = call(capsys, "list", "--config", str(config))

    assert result.code == 0
    assert [line.split("\t") for line in result.out.splitlines()] == [
        ["sampler", "dimension", "enabled", "available", "why not", "summary"],
        ["fine", "cpu", "yes", "yes", "", "What fine tells."],
        ["idle", "cpu", "yes", "idle", "nothing configured", "What idle tells."],
        ["off", "cpu", "no", "yes", "", "What off tells."],
        ["unmet", "cpu", "yes", "no", "no such thing here", "What unmet tells."],
    ]


def test_check_that_hangs_or_breaks_is_a_reason(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def hangs(_hostfs: object) -> None:
        time.sleep(30)

    def breaks(_hostfs: object) -> str | None:
        raise KeyError("x")

    monkeypatch.setattr(listing, "CHECK_LIMIT_SECONDS", 0.1)
    began = time.monotonic()
    with samplers(monkeypatch, fake("a", requires=(hangs,)), fake("b", requires=(breaks,))):
        result = call(capsys, "list")

    assert time.monotonic() - began < 5
    assert "a\tcpu\tyes\tno\tthe check did not finish within 0.1 s\t" in result.out
    assert "b\tcpu\tyes\tno\tthe check failed: KeyError: 'x'\t" in result.out


def test_roots_decide_what_is_available(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    result = call(capsys, "list", "--path.procfs", str(tmp_path), "--path.sysfs", str(tmp_path))
    rows = {line.split("\t")[0]: line.split("\t") for line in result.out.splitlines()}

    assert rows["pressure"][3] == "no"
    assert "/proc/pressure" in rows["pressure"][4]


def test_left_out_plugin_is_told(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    with samplers(monkeypatch, fake("a"), problems=("mine: can't be loaded",)):
        result = call(capsys, "list")

    assert result.err == "left out: mine: can't be loaded\n"


def test_terminal_gets_an_aligned_table_and_brackets_are_no_markup(monkeypatch: pytest.MonkeyPatch) -> None:
    out = Terminal()
    monkeypatch.setattr(sys, "stdout", out)
    monkeypatch.setenv("COLUMNS", "200")
    with samplers(monkeypatch, fake("engine", requires=(lambda _hostfs: "no [[engines]] configured [/]",))):
        code = listing.run(Flags())

    assert code == 0
    assert "no [[engines]] configured [/]" in out.text
    assert "\t" not in out.text


def test_name_prints_the_page(capsys: pytest.CaptureFixture[str]) -> None:
    result = call(capsys, "list", "cpu")

    assert result.code == 0
    assert result.out.startswith("# cpu\n")


def test_name_prints_the_page_also_on_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    out = Terminal()
    monkeypatch.setattr(sys, "stdout", out)

    assert listing.show_page("cpu") == 0
    assert "Known traps" in out.text


@pytest.mark.parametrize(
    ("name", "hint"),
    [("cpuu", "did you mean cpu?"), ("zzz", "there are: cgroup, cpu, "), ("", "there are: cgroup, cpu, ")],
)
def test_unknown_name_is_2_with_a_hint(capsys: pytest.CaptureFixture[str], name: str, hint: str) -> None:
    result = call(capsys, "list", name)

    assert (result.code, result.out) == (2, "")
    assert result.err.startswith(f"{name}: no such sampler; {hint}")
