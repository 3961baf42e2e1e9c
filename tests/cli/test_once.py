"""The command `once`."""

import json
import time
from collections.abc import Sequence
from pathlib import Path

import pytest
from prometheus_client.openmetrics.parser import text_string_to_metric_families as parse_openmetrics
from prometheus_client.parser import text_string_to_metric_families as parse_text

from inferwatch.cli import round as round_module
from inferwatch.errors import NoData, SourceError
from inferwatch.model import Family, HistogramValue, Kind, Sample
from inferwatch.spec import Context, PartialData
from support_cli import VALUE, call, fake, fine, hang, hang_in_a_thread, raising, samplers

WAIT = Family("inferwatch_test_wait_seconds", "Waits.", Kind.HISTOGRAM, "seconds", ("who",))


@pytest.mark.parametrize(("page_format", "parse"), [("text", parse_text), ("openmetrics", parse_openmetrics)])
def test_page_is_complete_and_nothing_else_is_on_standard_output(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, page_format: str, parse: type
) -> None:
    with samplers(monkeypatch, fake("a"), fake("b", raising(NoData("no such thing here")))):
        result = call(capsys, "once", "--format", page_format)
    found = {sample.name: sample for family in parse(result.out) for sample in family.samples}

    assert result.code == 0
    assert found["inferwatch_test_value"].value == 1.5
    assert found["inferwatch_sampler_available"].labels == {"sampler": "b"}
    assert found["inferwatch_sampler_series"].value == 1
    assert "no such thing here" in result.err


def test_every_instance_is_on_the_page_under_one_head(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    with samplers(monkeypatch, fake("a", keys=("x", "y"))):
        text = call(capsys, "once").out

    assert text.count("# TYPE inferwatch_test_value") == 1
    assert 'inferwatch_test_value{who="x"} 1.5\ninferwatch_test_value{who="y"} 1.5\n' in text


def test_samplers_that_hang_end_with_their_deadline_and_spoil_nothing(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    began = time.monotonic()
    with samplers(monkeypatch, fake("a"), fake("b", hang_in_a_thread), fake("c", hang)):
        result = call(capsys, "once")

    assert time.monotonic() - began < 5
    assert result.code == 0
    assert "inferwatch_test_value" in result.out
    assert 'inferwatch_sampler_problem_info{sampler="b",reason="timeout"} 1' in result.out
    assert 'inferwatch_sampler_up{sampler="c"} 0' in result.out


def test_data_of_a_quick_sampler_outlast_the_wait_for_a_slow_one(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    config = tmp_path / "config.toml"
    config.write_text("[samplers.quick]\ninterval_seconds = 0.1\n", encoding="utf-8")

    with samplers(monkeypatch, fake("quick"), fake("slow", hang, timeout_seconds=1.0)):
        result = call(capsys, "once", "--config", str(config))

    assert "inferwatch_test_value" in result.out


@pytest.mark.parametrize("error", [NoData("absent"), SourceError("denied", reason="permission_denied"), KeyError("x")])
def test_no_sampler_with_data_is_1(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    with samplers(monkeypatch, fake("a", raising(error))):
        result = call(capsys, "once")

    assert result.code == 1
    assert "inferwatch_build_info" in result.out


def test_partial_data_count_as_data(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    partial = PartialData([VALUE(1, "x")], {"io": "the rest could not be read"})
    with samplers(monkeypatch, fake("a", raising(partial))):
        result = call(capsys, "once")

    assert result.code == 0
    assert 'inferwatch_test_value{who="x"} 1\n' in result.out


def test_rates_are_had_from_a_second_run(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    runs: list[str] = []

    async def second_only(context: Context) -> Sequence[Sample]:
        runs.append(context.instance)
        return await fine(context) if len(runs) > 1 else []

    monkeypatch.setattr(round_module, "BETWEEN_RUNS_SECONDS", 0.01)
    with samplers(monkeypatch, fake("a", second_only, needs_two_runs=True)):
        result = call(capsys, "once")

    assert len(runs) == 2
    assert (result.code, "inferwatch_test_value" in result.out) == (0, True)


def test_sampler_whose_labels_are_no_text_spoils_nothing(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    async def wrong(_context: Context) -> Sequence[Sample]:
        return [Sample(VALUE, (3,), 1.0)]  # type: ignore[arg-type] # a plugin's mistake, which is the point

    with samplers(monkeypatch, fake("a"), fake("b", wrong)):
        result = call(capsys, "once", "--format", "json")

    assert result.code == 0
    assert json.loads(result.out)["samplers"]["b"]["instances"][""]["state"] == "failing"


def test_json_has_the_states_and_the_samples(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    with samplers(monkeypatch, fake("a"), fake("b", raising(NoData("absent"))), fake("c", keys=())):
        document = json.loads(call(capsys, "once", "--format", "json").out)

    assert document["samplers"] == {
        "a": {"enabled": True, "idle_reason": None, "instances": {"": {"state": "ok", "problems": {}}}},
        "b": {
            "enabled": True,
            "idle_reason": None,
            "instances": {"": {"state": "unavailable", "problems": {"no_data": "absent"}}},
        },
        "c": {"enabled": True, "idle_reason": "nothing configured", "instances": {}},
    }
    assert {"name": "inferwatch_test_value", "labels": {"who": "only"}, "value": 1.5} in document["samples"]
    assert any(sample["name"] == "inferwatch_sampler_up" for sample in document["samples"])


def test_json_is_valid_whatever_the_values(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    async def awkward(_context: Context) -> Sequence[Sample]:
        return [
            VALUE(float("nan"), "nan"),
            VALUE(float("inf"), "inf"),
            VALUE(1, "\udc80\x00\n"),
            VALUE(2, "twice"),
            VALUE(3, "twice"),
            WAIT(HistogramValue((0.1, 1.0), (1.0, 2.0, 3.0), 2.5), "h"),
            WAIT(HistogramValue((0.1,), (1.0, 2.0), None), "no sum"),
            WAIT(HistogramValue((0.1,), (1.0, float("nan")), None), "nan"),
        ]

    def refuse(constant: str) -> None:
        pytest.fail(f"{constant} is no JSON")

    with samplers(monkeypatch, fake("a", awkward, families=(VALUE, WAIT))):
        text = call(capsys, "once", "--format", "json").out
    document = json.loads(text, parse_constant=refuse)
    mine = {sample["labels"]["who"]: sample for sample in document["samples"] if "who" in sample["labels"]}

    assert mine.keys() == {"\ufffd\x00\n", "twice", "h", "no sum"}
    assert mine["twice"]["value"] == 2
    assert mine["h"]["histogram"] == {
        "buckets": [{"le": "0.1", "count": 1.0}, {"le": "1.0", "count": 2.0}, {"le": "+Inf", "count": 3.0}],
        "sum": 2.5,
        "count": 3.0,
    }
    assert mine["no sum"]["histogram"]["sum"] is None


def test_left_out_plugin_is_told_on_standard_error(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    with samplers(monkeypatch, fake("a"), problems=("mine: can't be loaded",)):
        result = call(capsys, "once")

    assert result.code == 0
    assert "mine: can't be loaded" in result.err
