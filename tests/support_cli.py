"""What the tests of the command line need: samplers that do as they are told, and a call of the program."""

import asyncio
import io
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import pytest
import structlog

from inferwatch.cli import main
from inferwatch.config import Config
from inferwatch.model import Family, Kind, Sample
from inferwatch.samplers import Discovery
from inferwatch.spec import Context, Instance, SamplerSpec

Run = Callable[[Context], Awaitable[Sequence[Sample]]]
VALUE = Family("inferwatch_test_value", "A value.", Kind.GAUGE, labels=("who",))
COMMANDS = ("run", "once", "listing", "targets", "doctor", "checkconfig")


@dataclass(frozen=True, slots=True)
class Called:
    """What a call of the program came to."""

    code: int
    out: str
    err: str


class Terminal(io.TextIOWrapper):
    """Standard output that says it is a terminal."""

    def __init__(self) -> None:
        self._bytes = io.BytesIO()
        super().__init__(self._bytes, encoding="utf-8", write_through=True)

    def isatty(self) -> bool:
        return True

    @property
    def text(self) -> str:
        return self._bytes.getvalue().decode()


class Fake:
    """A sampler that runs a function."""

    def __init__(self, context: Context, run: Run) -> None:
        self._context = context
        self._run = run

    async def sample(self) -> Sequence[Sample]:
        return await self._run(self._context)

    async def close(self) -> None:
        """Hold nothing."""


async def fine(context: Context) -> Sequence[Sample]:
    return [VALUE(1.5, context.instance or "only")]


async def hang_in_a_thread(context: Context) -> Sequence[Sample]:
    await context.run_blocking(time.sleep, 60)
    return []


async def hang(_context: Context) -> Sequence[Sample]:
    await asyncio.sleep(60)
    return []


def raising(error: Exception) -> Run:
    async def run(_context: Context) -> Sequence[Sample]:
        raise error

    return run


def fake(
    name: str,
    run: Run = fine,
    *,
    families: tuple[Family, ...] = (VALUE,),
    requires: tuple[Callable[[object], str | None], ...] = (),
    keys: Sequence[str] = ("",),
    needs_two_runs: bool = False,
    timeout_seconds: float = 0.3,
) -> SamplerSpec:
    def instances(_config: Config) -> Sequence[Instance]:
        return [Instance(key, timeout_seconds=timeout_seconds) for key in keys]

    return SamplerSpec(
        name, "cpu", f"What {name} tells.", "/proc", families, lambda context: Fake(context, run),
        requires=requires, instances=instances, idle_reason="nothing configured", needs_two_runs=needs_two_runs,
    )  # fmt: skip


@contextmanager
def samplers(
    monkeypatch: pytest.MonkeyPatch, *specs: SamplerSpec, problems: tuple[str, ...] = ()
) -> Iterator[Discovery]:
    """Let the commands find these samplers and no others."""
    found = Discovery({spec.name: spec for spec in specs}, problems)
    with monkeypatch.context() as patch:
        for command in COMMANDS:
            patch.setattr(f"inferwatch.cli.{command}.find_samplers", lambda: found)
        yield found


def call(capsys: pytest.CaptureFixture[str], *arguments: str) -> Called:
    """Call the program in this process."""
    before = structlog.get_config()
    try:
        with pytest.raises(SystemExit) as exit_:
            main(arguments)
    finally:
        structlog.configure(**before)
    captured = capsys.readouterr()
    code = exit_.value.code
    return Called(code if isinstance(code, int) else 0 if code is None else 1, captured.out, captured.err)
