"""When samplers run, and what becomes of one that fails, hangs or heals."""

import asyncio
import itertools
import threading
import time

import pytest
import structlog

from inferwatch.errors import NoData, ParseError, SourceError
from inferwatch.exposition import Format
from inferwatch.model import Family, Kind
from inferwatch.runtime.scheduler import RECHECK_SECONDS
from inferwatch.runtime.unit import State, Unit
from inferwatch.spec import Context, Instance, PartialData, SamplerSpec
from support_runtime import VALUE, Bench, FakeSampler, run_virtually


def test_unit_runs_at_once_and_then_on_its_grid() -> None:
    async def main() -> list[float]:
        bench = Bench()
        await bench.scheduler.replace([bench.unit(1.0)])
        await asyncio.sleep(21)
        await bench.scheduler.close()
        return bench.samplers["test"].started

    assert run_virtually(main) == pytest.approx([1000, 1005, 1010, 1015, 1020], abs=1e-3)


def test_units_have_different_phases() -> None:
    async def main() -> set[float]:
        bench = Bench()
        await bench.scheduler.replace([bench.unit(1.0, name=name) for name in ("a", "b", "c", "d", "e")])
        await asyncio.sleep(60)
        await bench.scheduler.close()
        return {round(sampler.started[3] % 5, 2) for sampler in bench.samplers.values()}

    assert run_virtually(main) == {0.0, 1.0, 2.0, 3.0, 4.0}


def test_failures_back_off_to_the_limit_and_success_returns_to_the_grid() -> None:
    async def main() -> list[float]:
        bench = Bench()
        failures = [SourceError("broken")] * 8
        await bench.scheduler.replace([bench.unit(*failures, 1.0)])
        await asyncio.sleep(1400)
        await bench.scheduler.close()
        started = bench.samplers["test"].started
        return [round(after - before) for before, after in itertools.pairwise(started)]

    gaps = run_virtually(main)

    assert gaps[:7] == [5, 10, 20, 40, 80, 160, 300]
    assert set(gaps[9:]) == {5}


def test_log_and_event_come_once_when_it_breaks_and_once_when_it_heals() -> None:
    async def main() -> list[str]:
        bench = Bench()
        broken = SourceError("/proc/x: Input/output error", reason="io")
        await bench.scheduler.replace([bench.unit(1.0, broken, broken, broken, 1.0, 1.0)])
        await asyncio.sleep(120)
        await bench.scheduler.close()
        return bench.kinds()

    with structlog.testing.capture_logs() as logs:
        kinds = run_virtually(main)

    assert kinds == ["sampler_failing", "sampler_recovered"]
    assert [(entry["event"], entry["log_level"]) for entry in logs] == [
        ("sampler failing", "warning"),
        ("sampler recovered", "info"),
    ]
    assert logs[0]["reason"] == "io"
    assert "/proc/x" in logs[0]["error"]


def test_absent_source_is_unavailable_and_looked_for_again_slowly() -> None:
    async def main() -> tuple[list[float], State, int]:
        bench = Bench()
        unit = bench.unit(NoData("/proc/schedstat: No such file or directory"))
        await bench.scheduler.replace([unit])
        await asyncio.sleep(2 * RECHECK_SECONDS + 20)
        state, failures = unit.state, unit.failures.total()
        await bench.scheduler.close()
        return bench.samplers["test"].started, state, failures

    with structlog.testing.capture_logs() as logs:
        started, state, failures = run_virtually(main)

    assert state is State.UNAVAILABLE
    assert failures == 0
    assert started == pytest.approx([1000, 1000 + RECHECK_SECONDS, 1000 + 2 * RECHECK_SECONDS], abs=6)
    assert [entry["log_level"] for entry in logs] == ["info"]


def test_unmet_requirement_keeps_the_sampler_from_being_made() -> None:
    async def main() -> tuple[State, dict[str, str]]:
        bench = Bench()
        made: list[Context] = []

        def create(context: Context) -> FakeSampler:
            made.append(context)
            return FakeSampler(context, [1.0])

        spec = SamplerSpec(
            "test", "agent", "A test.", "nowhere", (VALUE,), create, requires=(lambda _fs: "no resctrl here",)
        )
        unit = bench.unit(spec=spec)
        await bench.scheduler.run_once(unit)
        assert not made
        return unit.state, dict(unit.problems)

    assert asyncio.run(main()) == (State.UNAVAILABLE, {"no_data": "no resctrl here"})


def test_partial_data_is_published_and_its_reasons_counted() -> None:
    async def main() -> tuple[State, bytes, int]:
        bench = Bench()
        unit = bench.unit(PartialData([VALUE(3, "seen")], {"permission_denied": "/proc/1/io: Permission denied"}))
        await bench.scheduler.replace([unit])
        await asyncio.sleep(11)
        page = bench.store.page(Format.TEXT, gzip=False)
        state, count = unit.state, unit.failures["permission_denied"]
        await bench.scheduler.close()
        return state, page, count

    with structlog.testing.capture_logs() as logs:
        state, page, count = run_virtually(main)

    assert state is State.PARTIAL
    assert b'inferwatch_test_value{name="seen"} 3\n' in page
    assert count == 3
    assert len(logs) == 1


def test_a_second_reason_is_logged_a_known_one_is_not() -> None:
    async def main() -> None:
        bench = Bench()
        one, two = PartialData([], {"a": "first"}), PartialData([], {"a": "first", "b": "second"})
        await bench.scheduler.replace([bench.unit(one, one, two, two, one, one)])
        await asyncio.sleep(31)
        await bench.scheduler.close()

    with structlog.testing.capture_logs() as logs:
        run_virtually(main)

    assert [entry["reason"] for entry in logs] == ["a", "a,b"]


def test_run_beyond_its_deadline_fails_and_its_ticks_count_as_skipped() -> None:
    async def slow(_context: Context) -> float:
        await asyncio.sleep(60)
        return 1.0

    async def main() -> tuple[State, int, dict[str, int]]:
        bench = Bench()
        unit = bench.unit(slow, 1.0, timeout=12.0)
        await bench.scheduler.replace([unit])
        await asyncio.sleep(13)
        state = unit.state
        await bench.scheduler.close()
        return state, unit.skipped, dict(unit.failures)

    assert run_virtually(main) == (State.FAILING, 2, {"timeout": 1})


def test_slow_unit_delays_no_other() -> None:
    async def slow(_context: Context) -> float:
        await asyncio.sleep(3600)
        return 1.0

    async def main() -> list[float]:
        bench = Bench()
        hung = [bench.unit(slow, name=f"hung{number}") for number in range(5)]
        await bench.scheduler.replace([*hung, bench.unit(1.0, name="zfine")])
        await asyncio.sleep(26)
        await bench.scheduler.close()
        started = bench.samplers["zfine"].started
        return [round(after - before, 3) for before, after in itertools.pairwise(started[1:])]

    assert run_virtually(main) == [5.0, 5.0, 5.0, 5.0]


def test_sampler_that_swallows_its_cancellation_is_stuck_and_not_started_again() -> None:
    async def stubborn(_context: Context) -> float:
        end = asyncio.get_running_loop().time() + 100
        while asyncio.get_running_loop().time() < end:
            try:
                await asyncio.sleep(10)
            except asyncio.CancelledError:
                continue
        return 1.0

    async def main() -> tuple[State, int, State]:
        bench = Bench()
        unit = bench.unit(stubborn, 2.0)
        await bench.scheduler.replace([unit])
        await asyncio.sleep(50)
        during, runs = unit.state, unit.runs
        await asyncio.sleep(80)
        after = unit.state
        assert unit.skipped >= 10
        await bench.scheduler.close()
        return during, runs, after

    assert run_virtually(main) == (State.STUCK, 1, State.OK)


async def test_thread_that_does_not_return_is_one_thread_after_100_cycles() -> None:
    release = threading.Event()

    async def hang(context: Context) -> float:
        return await context.run_blocking(lambda: (release.wait(30), 1.0)[1])

    bench = Bench()
    unit = bench.unit(hang, interval=0.01, timeout=0.01)
    fine = bench.unit(1.0, name="fine", interval=0.01)
    before = threading.active_count()
    await bench.scheduler.replace([unit, fine])
    while unit.skipped < 100:  # cycles that would have started a thread each
        await asyncio.sleep(0.01)

    assert threading.active_count() <= before + 1
    assert (unit.state, fine.state) == (State.STUCK, State.OK)

    release.set()
    while unit.failures_in_row:
        await asyncio.sleep(0.01)
    await bench.scheduler.close()
    bench.pool.close()


async def test_close_returns_soon_also_with_a_hung_thread() -> None:
    release = threading.Event()

    async def hang(context: Context) -> float:
        return await context.run_blocking(lambda: (release.wait(30), 1.0)[1])

    bench = Bench()
    await bench.scheduler.replace([bench.unit(hang), bench.unit(1.0, name="fine")])
    await asyncio.sleep(0)
    began = time.monotonic()
    await bench.scheduler.close()

    assert time.monotonic() - began < 2
    release.set()
    bench.pool.close()


def test_unexpected_exception_fails_the_sampler_and_is_logged_with_its_trace() -> None:
    async def main() -> State:
        bench = Bench()
        unit = bench.unit(ZeroDivisionError("division by zero"))
        await bench.scheduler.replace([unit])
        await asyncio.sleep(11)
        state = unit.state
        await bench.scheduler.close()
        return state

    with structlog.testing.capture_logs() as logs:
        state = run_virtually(main)

    assert state is State.FAILING
    assert isinstance(logs[0]["exc_info"], ZeroDivisionError)
    assert len(logs) == 1


def test_family_that_is_not_declared_is_refused() -> None:
    stray = Family("inferwatch_stray", "Not declared.", Kind.GAUGE)

    async def main() -> tuple[State, dict[str, str]]:
        bench = Bench()
        unit = bench.unit(PartialData([stray(1)], {}))
        await bench.scheduler.run_once(unit)
        return unit.state, dict(unit.problems)

    state, problems = asyncio.run(main())

    assert state is State.FAILING
    assert "inferwatch_stray" in problems["parse"]


def test_stale_data_leaves_the_page_after_three_intervals() -> None:
    async def main() -> list[bool]:
        bench = Bench()
        await bench.scheduler.replace([bench.unit(1.0, ParseError("strange"))])
        seen = []
        for _ in range(4):
            await asyncio.sleep(4.9)
            seen.append(b"inferwatch_test_value" in bench.store.page(Format.TEXT, gzip=False))
        await bench.scheduler.close()
        return seen

    assert run_virtually(main) == [True, True, True, False]


def test_data_that_became_absent_leaves_the_page_at_once() -> None:
    async def main() -> bytes:
        bench = Bench()
        await bench.scheduler.replace([bench.unit(1.0, NoData("gone"))])
        await asyncio.sleep(6)
        page = bench.store.page(Format.TEXT, gzip=False)
        await bench.scheduler.close()
        return page

    assert run_virtually(main) == b""


def test_reload_keeps_unchanged_units_and_stops_the_others() -> None:
    async def main() -> tuple[int, int, list[str]]:
        bench = Bench()
        spec = bench.unit(1.0, name="kept").spec
        first = [bench.unit(name="kept", spec=spec), bench.unit(1.0, name="gone")]
        await bench.scheduler.replace(first)
        await asyncio.sleep(6)
        gone = bench.samplers["gone"]
        await bench.scheduler.replace([bench.unit(name="kept", spec=spec), bench.unit(1.0, name="new")])
        await asyncio.sleep(6)
        runs = first[0].runs
        labels = [unit.label for unit in bench.scheduler.units]
        await bench.scheduler.close()
        return runs, gone.closed, labels

    runs, closed, labels = run_virtually(main)

    assert runs == 3
    assert closed == 1
    assert labels == ["kept", "new"]


def test_changed_settings_of_one_instance_restart_only_that_instance() -> None:
    async def main() -> list[int]:
        bench = Bench()
        spec = bench.unit(1.0).spec

        def units(second: str) -> list[Unit]:
            return [
                bench.unit(spec=spec, instance=Instance("a", settings="same")),
                bench.unit(spec=spec, instance=Instance("b", settings=second)),
            ]

        await bench.scheduler.replace(units("old"))
        await asyncio.sleep(11)
        await bench.scheduler.replace(units("new"))
        await asyncio.sleep(0)
        await asyncio.sleep(0.1)
        runs = [unit.runs for unit in bench.scheduler.units]
        await bench.scheduler.close()
        return runs

    assert run_virtually(main) == [3, 1]


def test_first_round_is_done_when_every_unit_has_run() -> None:
    async def slow(_context: Context) -> float:
        await asyncio.sleep(3)
        return 1.0

    async def main() -> tuple[bool, bool]:
        bench = Bench()
        await bench.scheduler.replace([bench.unit(1.0, name="quick"), bench.unit(slow, name="slow")])
        await asyncio.sleep(1)
        before = bench.scheduler.first_round_done.is_set()
        await asyncio.sleep(3)
        after = bench.scheduler.first_round_done.is_set()
        await bench.scheduler.close()
        return before, after

    assert run_virtually(main) == (False, True)
