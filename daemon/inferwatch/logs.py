"""Logging: structlog, console on a terminal and JSON otherwise, to standard error."""

import logging
import os
import sys
import traceback
from contextlib import suppress
from pathlib import Path
from typing import Literal, TextIO, cast

# structlog.dev imports rich wherever it finds it, for tracebacks that we do not want: 3 MB of a daemon's memory
_rich = sys.modules.get("rich")
sys.modules["rich"] = None  # type: ignore[assignment] # the documented way to make an import fail
try:
    import structlog
finally:
    del sys.modules["rich"]
    if _rich is not None:
        sys.modules["rich"] = _rich

LogFormat = Literal["auto", "console", "json"]
Logger = structlog.typing.FilteringBoundLogger


class _Sink:
    """Writes, and goes on when it can't: a full disk or a log collector that went away must not stop a sampler."""

    def __init__(self, out: TextIO) -> None:
        self._out = out

    def write(self, text: str) -> int:
        with suppress(OSError, ValueError):
            return self._out.write(text)
        return 0

    def flush(self) -> None:
        with suppress(OSError, ValueError):
            self._out.flush()


def configure(level: str, log_format: LogFormat, stream: TextIO | None = None) -> None:
    """Set the process's logging; may be called again, for example after a reload.

    Events are constant text and data stands in keys. Values that come from outside (a process name, a line of a scraped
    page) are escaped by the renderers, so that nobody can forge a line.

    Args:
        level: Least severity: debug, info, warning or error.
        log_format: `auto` looks whether the stream is a terminal.
        stream: Where to write; standard error when not given (standard output belongs to `once` and its kin).
    """
    out = stream or sys.stderr or Path(os.devnull).open("w", encoding="utf-8")  # noqa: SIM115 - open as long as the log
    console = log_format == "console" or (log_format == "auto" and out.isatty())
    shared: list[structlog.typing.Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.processors.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
    ]
    if console:
        # plain tracebacks: rich's print local variables, and those may hold a token
        renderer: structlog.typing.Processor = structlog.dev.ConsoleRenderer(
            colors=out.isatty(), exception_formatter=_trace
        )
        shared.append(_escape_values)
    else:
        shared.append(structlog.processors.format_exc_info)
        renderer = structlog.processors.JSONRenderer()
    structlog.configure(
        processors=[*shared, renderer],
        wrapper_class=structlog.make_filtering_bound_logger(getattr(logging, level.upper())),
        logger_factory=structlog.PrintLoggerFactory(cast("TextIO", _Sink(out))),
        cache_logger_on_first_use=False,
    )
    # aiohttp and asyncio log through the standard library; what they have to say is a fault of a peer, not news
    logging.basicConfig(level=logging.CRITICAL, stream=out, force=True)


def get_logger(**context: object) -> Logger:
    """Return a logger that adds `context` to each of its events."""
    logger: Logger = structlog.get_logger(**context)
    return logger


def _trace(stream: TextIO, exc_info: structlog.typing.ExcInfo) -> None:
    """Write a traceback without local variables, and without what its message may hold of control characters."""
    text = "".join(traceback.format_exception(*exc_info))
    stream.write("\n" + "\n".join(map(_printable, text.splitlines())))


def _printable(text: str) -> str:
    return text if text.isprintable() else "".join(char if char.isprintable() else repr(char)[1:-1] for char in text)


def _escape_values(_logger: object, _method: str, event: structlog.typing.EventDict) -> structlog.typing.EventDict:
    """Escape control characters: the console renderer writes text as it is, and a newline would forge a line."""
    for key, value in event.items():
        if isinstance(value, str):
            event[key] = _printable(value)
    return event
