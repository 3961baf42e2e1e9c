"""What the agent says of itself."""

import asyncio
import os
import time

import psutil
import pytest

from inferwatch.errors import NoData, SourceError
from inferwatch.model import Event, Sample
from inferwatch.runtime.selfmetrics import FAMILIES, ReloadState, SelfMetrics
from inferwatch.spec import Instance, PartialData
from support_runtime import VALUE, Bench, run_virtually


def metrics_of(bench: Bench, *, reloaded: bool = True) -> SelfMetrics:
    return SelfMetrics(bench.scheduler, bench.store, bench.events, ReloadState(reloaded, 123.0))


def by_name(samples: list[Sample], name: str) -> dict[tuple[str, ...], float]:
    return {s.labels: float(s.value) for s in samples if s.family.name == name}  # type: ignore[arg-type] # no histograms


async def sample(bench: Bench) -> list[Sample]:
    return list(await metrics_of(bench).sample())


def test_state_of_each_sampler_is_told() -> None:
    async def main() -> list[Sample]:
        bench = Bench()
        await bench.scheduler.replace(
            [
                bench.unit(1.0, name="fine"),
                bench.unit(PartialData([VALUE(1, "x")], {"permission_denied": "no"}), name="half"),
                bench.unit(SourceError("broken", reason="io"), name="broken"),
                bench.unit(NoData("not here"), name="absent"),
            ]
        )
        await asyncio.sleep(9)
        samples = await sample(bench)
        await bench.scheduler.close()
        return samples

    samples = run_virtually(main)

    assert by_name(samples, "inferwatch_sampler_up") == {("fine",): 1, ("half",): 1, ("broken",): 0}
    assert by_name(samples, "inferwatch_sampler_available")[("absent",)] == 0
    assert by_name(samples, "inferwatch_sampler_problem_info") == {
        ("absent", "no_data"): 1,
        ("broken", "io"): 1,
        ("half", "permission_denied"): 1,
    }
    assert by_name(samples, "inferwatch_sampler_failures_total") == {
        ("broken", "io"): 2,
        ("half", "permission_denied"): 3,
    }
    assert by_name(samples, "inferwatch_sampler_last_success_timestamp_seconds").keys() == {("fine",), ("half",)}


def test_oldest_success_and_slowest_run_stand_for_several_instances() -> None:
    async def slow(_context: object) -> float:
        await asyncio.sleep(2)
        return 1.0

    async def main() -> list[Sample]:
        bench = Bench()
        spec = bench.unit(slow).spec
        await bench.scheduler.replace(
            [
                bench.unit(spec=spec, instance=Instance(key), interval=interval)
                for key, interval in (("a", 5), ("b", 60))
            ]
        )
        await asyncio.sleep(31)
        samples = await sample(bench)
        await bench.scheduler.close()
        return samples

    samples = run_virtually(main)

    assert by_name(samples, "inferwatch_sampler_instances") == {("test", "ok"): 2}
    assert by_name(samples, "inferwatch_sampler_last_success_timestamp_seconds") == {
        ("test",): pytest.approx(1.8e9 + 1000)
    }
    assert by_name(samples, "inferwatch_sampler_duration_seconds") == {("test",): pytest.approx(2, abs=0.01)}


async def test_own_cost_agrees_with_the_kernel() -> None:
    bench = Bench()
    samples = await sample(bench)
    rss = psutil.Process().memory_info().rss

    assert by_name(samples, "inferwatch_process_resident_memory_bytes")[()] == pytest.approx(rss, rel=0.1)
    assert by_name(samples, "inferwatch_process_cpu_seconds_total")[()] == pytest.approx(sum(os.times()[:2]), abs=0.2)
    assert by_name(samples, "inferwatch_process_start_time_seconds")[()] < time.time()


async def test_events_and_reload_are_told() -> None:
    bench = Bench()
    bench.events.put(Event(1, "reload"))
    bench.events.put(Event(2, "reload"))
    samples = list(await metrics_of(bench, reloaded=False).sample())

    assert by_name(samples, "inferwatch_events_total") == {("reload",): 2}
    assert by_name(samples, "inferwatch_config_last_reload_successful") == {(): 0}
    assert by_name(samples, "inferwatch_config_last_reload_success_timestamp_seconds") == {(): 123}


async def test_every_family_is_declared() -> None:
    assert {s.family for s in await sample(Bench())} <= set(FAMILIES)
