"""The log: one line per event, whatever stands in it."""

import io
import json
from collections.abc import Iterator

import pytest
import structlog

from inferwatch.logs import LogFormat, configure, get_logger

FORGED = "fine\n2026-01-01T00:00:00Z [info     ] forged"
HOSTILE = [FORGED, "\r\x1b[2Jgone", "a\u2028b", "\udc80", "\x00", "\x85", "\u202eevil"]


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture(autouse=True)
def _restore() -> Iterator[None]:
    before = structlog.get_config()
    yield
    structlog.configure(**before)


def logged(log_format: LogFormat, *, stream: io.StringIO | None = None, **values: object) -> str:
    out = stream or io.StringIO()
    configure("info", log_format, out)
    get_logger().info("sampler failing", **values)
    return out.getvalue()


@pytest.mark.parametrize(
    "value", [*HOSTILE, float("nan"), {"a": {FORGED}}, [FORGED], (1, None), b"\xff\n", object(), ValueError(FORGED)]
)
def test_json_line_can_be_parsed_whatever_the_value(value: object) -> None:
    text = logged("json", error=value)

    assert text.count("\n") == 1
    assert json.loads(text)["event"] == "sampler failing"
    assert json.loads(text)["level"] == "info"
    assert json.loads(text)["timestamp"].endswith("Z")


def test_json_keeps_data_apart_from_the_event() -> None:
    entry = json.loads(logged("json", sampler="cpu", problems=["a", "b"]))

    assert (entry["sampler"], entry["problems"]) == ("cpu", ["a", "b"])


@pytest.mark.parametrize(
    "value", [*HOSTILE, [FORGED], {"a": FORGED}, {FORGED: 1}, ("\x1b[2J",), {"a": [FORGED]}, b"\n", ValueError(FORGED)]
)
def test_console_line_stays_one_line_whatever_the_value(value: object) -> None:
    text = logged("console", error=value)

    assert text.count("\n") == 1
    assert text.removesuffix("\n").isprintable()


def test_console_escapes_also_on_a_terminal() -> None:
    text = logged("console", stream=Terminal(), error="\x1b[2Jgone\n")

    assert "\x1b[2J" not in text
    assert text.count("\n") == 1


@pytest.mark.parametrize(("stream", "is_json"), [(Terminal(), False), (io.StringIO(), True)])
def test_auto_is_console_on_a_terminal_and_json_otherwise(*, stream: io.StringIO, is_json: bool) -> None:
    assert logged("auto", stream=stream).startswith("{") is is_json


def test_console_has_no_colours_in_a_file() -> None:
    assert "\x1b" not in logged("console", sampler="cpu")


@pytest.mark.parametrize(("level", "shown"), [("debug", 4), ("info", 3), ("warning", 2), ("error", 1)])
def test_level_is_the_least_that_is_shown(level: str, shown: int) -> None:
    out = io.StringIO()
    configure(level, "json", out)
    log = get_logger(sampler="cpu")
    for method in (log.debug, log.info, log.warning, log.error):
        method("something")

    assert out.getvalue().count("\n") == shown


def test_second_configuration_replaces_the_first() -> None:
    first, second = io.StringIO(), io.StringIO()
    configure("info", "json", first)
    configure("info", "console", second)
    get_logger().info("something")

    assert first.getvalue() == ""
    assert "something" in second.getvalue()


def failing(token: str) -> None:
    raise ValueError(f"{token[:0]}broken\nforged line")


@pytest.mark.parametrize("log_format", ["json", "console"])
def test_trace_is_logged_without_local_variables(log_format: LogFormat) -> None:
    out = io.StringIO()
    configure("info", log_format, out)
    secret = "hunter" + "2"
    try:
        failing(secret)
    except ValueError as error:
        get_logger().warning("sampler failing", exc_info=error)

    assert "test_logs.py" in out.getvalue()
    assert secret not in out.getvalue()


def test_json_trace_is_one_line() -> None:
    out = io.StringIO()
    configure("info", "json", out)
    get_logger().warning("sampler failing", exc_info=ValueError(FORGED))

    assert out.getvalue().count("\n") == 1
    assert "forged" in json.loads(out.getvalue())["exception"]
