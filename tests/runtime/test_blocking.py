"""Threads for blocking reads."""

import asyncio
import os
import threading
from pathlib import Path

import pytest

from inferwatch.errors import SourceError
from inferwatch.runtime.blocking import IDLE_LIMIT, BlockingPool, Lane
from inferwatch.sources.hostfs import read_bytes


async def test_result_and_exception_come_back() -> None:
    pool = BlockingPool()
    lane = Lane(pool)

    assert await lane(divmod, 7, 3) == (2, 1)
    with pytest.raises(ZeroDivisionError):
        await lane(divmod, 7, 0)
    pool.close()


async def test_hung_fifo_occupies_one_thread_and_refuses_a_second_read(tmp_path: Path) -> None:
    fifo = tmp_path / "meminfo"
    os.mkfifo(fifo)
    pool = BlockingPool()
    lane = Lane(pool)
    threads = threading.active_count()
    first = asyncio.ensure_future(lane(read_bytes, fifo))
    await asyncio.sleep(0)
    first.cancel()

    for _ in range(100):
        with pytest.raises(SourceError) as caught:
            await lane(read_bytes, fifo)
        assert caught.value.reason == "stuck"
    assert threading.active_count() == threads + 1
    busy = lane.busy
    assert busy is not None

    writer = await asyncio.to_thread(os.open, fifo, os.O_WRONLY)
    os.close(writer)

    assert await busy == b""
    assert await lane(int, "7") == 7
    pool.close()


async def test_idle_threads_are_used_again_and_few_are_kept() -> None:
    pool = BlockingPool()
    gate = threading.Event()
    before = threading.active_count()
    jobs = [asyncio.ensure_future(Lane(pool)(gate.wait, 10)) for _ in range(12)]
    await asyncio.sleep(0)
    assert threading.active_count() == before + 12
    gate.set()
    await asyncio.gather(*jobs)
    for _ in range(1000):
        if threading.active_count() <= before + IDLE_LIMIT:
            break
        await asyncio.sleep(0.005)

    assert threading.active_count() <= before + IDLE_LIMIT

    for _ in range(50):
        await Lane(pool)(int, "1")

    assert threading.active_count() <= before + IDLE_LIMIT + 1
    pool.close()


def test_result_after_the_loop_has_ended_is_dropped_in_silence() -> None:
    pool = BlockingPool()
    release = threading.Event()
    done = threading.Event()

    def job() -> None:
        release.wait(10)
        done.set()

    async def main() -> None:
        task = asyncio.ensure_future(Lane(pool)(job))
        await asyncio.sleep(0)
        task.cancel()

    asyncio.run(main())
    release.set()

    assert done.wait(5)
    pool.close()
