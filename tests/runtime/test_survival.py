"""What foreign code, a full disk or a limit on processes does to the agent: nothing that lasts."""

import asyncio
import io
import threading
from collections.abc import Sequence

import pytest
import structlog

from inferwatch import logs
from inferwatch.errors import SourceError
from inferwatch.exposition import Format
from inferwatch.model import Sample
from inferwatch.runtime.blocking import BlockingPool, Lane
from inferwatch.runtime.unit import State
from inferwatch.spec import Context, PartialData, SamplerSpec
from support_runtime import VALUE, Bench, FakeSampler, run_virtually


class Broken(io.StringIO):
    def write(self, _text: str) -> int:
        raise BrokenPipeError

    def flush(self) -> None:
        raise BrokenPipeError


def test_log_that_can_not_be_written_stops_no_sampler() -> None:
    async def main() -> tuple[int, State]:
        logs.configure("info", "json", Broken())
        bench = Bench()
        unit = bench.unit(1.0, SourceError("broken"), 1.0, SourceError("broken"), 1.0)
        await bench.scheduler.replace([unit])
        await asyncio.sleep(120)
        await bench.scheduler.close()
        return unit.runs, unit.state

    try:
        runs, state = run_virtually(main)
    finally:
        structlog.reset_defaults()

    assert runs > 10
    assert state is State.OK


@pytest.mark.parametrize("error", [SystemExit(3), KeyboardInterrupt(), BaseException("odd")])
def test_what_ends_a_program_only_fails_the_sampler(error: BaseException) -> None:
    async def main() -> tuple[State, State]:
        bench = Bench()
        unit, other = bench.unit(error, 1.0, name="foreign"), bench.unit(1.0, name="fine")
        await bench.scheduler.replace([unit, other])
        await asyncio.sleep(0.5)
        first = unit.state
        await asyncio.sleep(20)
        await bench.scheduler.close()
        return first, unit.state

    with structlog.testing.capture_logs():
        assert run_virtually(main) == (State.FAILING, State.OK)


@pytest.mark.parametrize("error", [SystemExit(4), KeyboardInterrupt()])
async def test_what_ends_a_program_in_a_thread_is_an_error_of_its_caller(error: BaseException) -> None:
    def job() -> None:
        raise error

    pool = BlockingPool()
    lane = Lane(pool)

    with pytest.raises(RuntimeError, match=type(error).__name__):
        await lane(job)
    assert await lane(int, "7") == 7
    pool.close()


@pytest.mark.parametrize("error", [SystemExit(5), AttributeError("no close"), RuntimeError("odd")])
def test_sampler_that_can_not_be_closed_does_not_keep_a_reload_from_its_work(error: BaseException) -> None:
    class Stubborn(FakeSampler):
        async def close(self) -> None:
            raise error

    async def main() -> bytes:
        bench = Bench()
        spec = SamplerSpec("bad", "agent", "A test.", "nowhere", (VALUE,), lambda context: Stubborn(context, [1.0]))
        await bench.scheduler.replace([bench.unit(spec=spec, name="bad")])
        await asyncio.sleep(1)
        await bench.scheduler.replace([bench.unit(2.0, name="new")])
        await asyncio.sleep(1)
        page = bench.store.page(Format.TEXT, gzip=False)
        await bench.scheduler.close()
        return page

    assert b'inferwatch_test_value{name="only"} 2\n' in run_virtually(main)


async def test_thread_that_can_not_be_started_is_no_thread_that_hangs(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    pool = BlockingPool()
    lane = Lane(pool)
    with monkeypatch.context() as patch:
        patch.setattr(threading.Thread, "start", refuse)
        with pytest.raises(SourceError, match="can't start"):
            await lane(int, "1")

    assert lane.busy is None
    assert await lane(int, "7") == 7
    pool.close()


@pytest.mark.parametrize(
    "strange",
    [[3], [Sample(VALUE, ("too", "many"), 1.0)], [Sample(VALUE, (3,), 1.0)]],  # type: ignore[arg-type] # wrong on purpose
)
def test_result_that_is_no_sample_fails_the_sampler_and_is_counted(strange: Sequence[Sample]) -> None:
    async def main() -> tuple[State, int, int]:
        bench = Bench()
        unit = bench.unit(PartialData(strange, {}))
        await bench.scheduler.replace([unit])
        await asyncio.sleep(1)
        await bench.scheduler.close()
        return unit.state, unit.failures.total(), unit.failures_in_row

    with structlog.testing.capture_logs():
        assert run_virtually(main) == (State.FAILING, 1, 1)


async def test_stuck_sampler_that_has_something_to_tell_goes_on_telling_it() -> None:
    release = threading.Event()

    async def gives_up(context: Context) -> float:
        try:
            async with asyncio.timeout(0.005):
                await context.run_blocking(release.wait, 30)
        except (TimeoutError, SourceError) as error:
            raise PartialData([VALUE(0, "up")], {"stuck": "no answer"}) from error
        return 1.0

    bench = Bench()
    unit = bench.unit(gives_up, interval=0.02, timeout=0.02)
    await bench.scheduler.replace([unit])
    while unit.runs < 10:
        await asyncio.sleep(0.01)

    assert unit.state is State.STUCK
    assert b'inferwatch_test_value{name="up"} 0\n' in bench.store.page(Format.TEXT, gzip=False)

    release.set()
    while unit.problems:
        await asyncio.sleep(0.01)
    assert b'inferwatch_test_value{name="only"} 1\n' in bench.store.page(Format.TEXT, gzip=False)
    await bench.scheduler.close()
    bench.pool.close()


async def test_answer_that_was_there_before_a_late_loop_looked_is_no_timeout() -> None:
    async def quick(context: Context) -> float:
        return await context.run_blocking(float, "1")

    bench = Bench()
    unit = bench.unit(quick, timeout=0.05)
    running = asyncio.ensure_future(bench.scheduler.run_once(unit))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    threading.Event().wait(0.2)  # the loop stands still, as when a plugin blocks it; the thread has long answered

    assert (await running).state is State.OK
    bench.pool.close()
