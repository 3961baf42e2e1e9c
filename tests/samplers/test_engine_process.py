import asyncio
from pathlib import Path

import pytest

from inferwatch.config import Config
from inferwatch.errors import SourceError
from inferwatch.samplers._support.engine_process import ENDED, STOPPING, EngineProcess
from inferwatch.samplers.engine import SAMPLER, EngineOptions
from inferwatch.spec import PartialData
from support import make_context, value
from support_engine import ENGINES
from support_http import always, answer, serving
from support_procfs import OLD, FakeProc, tcp_row

VLLM = ["python3", "/opt/bin/vllm", "serve", "m/x", "--port", "8000"]
LISTENS = {71: tcp_row("00000000", 8000, 71)}
REFUSED = SourceError("can't connect", reason="connect")
SLOW = SourceError("no complete answer", reason="timeout")


class Bench:
    """An engine's process on a procfs of files."""

    def __init__(self, root: Path, name: str = "vllm-8000") -> None:
        self.proc = FakeProc(root / "host")
        self.proc.add(100, VLLM, sockets=LISTENS)
        self.tracker = self.proc.tracker()
        self.tracker.refresh()
        self.process = EngineProcess(make_context(self.proc.hostfs, targets=self.tracker), name)


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path)


async def test_a_process_that_has_ended_is_no_fault_however_often_it_is_asked(bench: Bench) -> None:
    bench.process.answered()
    bench.proc.remove(100)
    assert await bench.process.excuse(REFUSED) == ENDED

    bench.tracker.refresh()
    assert await bench.process.excuse(REFUSED) == ENDED


async def test_one_that_never_answered_and_has_ended_is_none_either(bench: Bench) -> None:
    bench.proc.remove(100)

    assert await bench.process.excuse(REFUSED) == ENDED


@pytest.mark.parametrize("change", [{"state": "Z"}, {"start": OLD + 7}])
async def test_a_zombie_and_another_process_with_its_pid_are_the_same_as_gone(
    bench: Bench, change: dict[str, str]
) -> None:
    bench.process.answered()
    bench.proc.add(100, VLLM, **change)  # type: ignore[arg-type] # of one of two parameters

    assert await bench.process.excuse(REFUSED) == ENDED


async def test_one_that_is_alive_may_be_stopping_once_and_then_is_a_fault(bench: Bench) -> None:
    bench.process.answered()
    assert [await bench.process.excuse(REFUSED) for _ in range(3)] == [STOPPING, "", ""]

    bench.process.answered()
    assert await bench.process.excuse(REFUSED) == STOPPING


async def test_one_that_is_alive_and_slow_is_a_fault_at_once(bench: Bench) -> None:
    bench.process.answered()

    assert await bench.process.excuse(SLOW) == ""


async def test_one_that_was_started_again_and_refuses_is_a_fault(bench: Bench) -> None:
    bench.process.answered()
    bench.proc.remove(100)
    bench.proc.add(200, VLLM, start=OLD + 9, sockets=LISTENS)
    bench.tracker.refresh()

    assert [await bench.process.excuse(REFUSED) for _ in range(3)] == [ENDED, "", ""]


async def test_an_engine_of_another_host_is_always_a_fault(tmp_path: Path) -> None:
    process = Bench(tmp_path, "elsewhere").process
    process.answered()

    assert await process.excuse(REFUSED) == ""


async def test_the_scrape_of_an_engine_that_was_stopped_tells_so_and_that_it_is_down(bench: Bench) -> None:
    async with serving(always(answer((ENGINES / "vllm-0.32-mid.prom").read_bytes()))) as server:
        config = Config.model_validate({"engines": [{"url": server.url(), "target": "vllm-8000"}]})
        context = make_context(
            bench.proc.hostfs, EngineOptions(), config=config, instance="vllm-8000", targets=bench.tracker
        )
        sampler = SAMPLER.create(context)
        await sampler.sample()
    bench.proc.remove(100)
    async with asyncio.timeout(20):
        with pytest.raises(PartialData) as raised:
            await sampler.sample()
    await sampler.close()

    assert ENDED in raised.value.problems["no_data"]
    assert value(raised.value.samples, "inferwatch_engine_up", "vllm-8000", "vllm") == 0
