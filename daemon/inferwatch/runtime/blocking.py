"""Threads for blocking reads: at most one per (sampler, instance), also when one never returns."""

import asyncio
import threading
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Final, ParamSpec, TypeVar

from inferwatch.errors import SourceError

P = ParamSpec("P")
T = TypeVar("T")
IDLE_LIMIT: Final = 4


class _Worker(threading.Thread):
    """A daemon thread that runs one job after the other; a daemon, so that a hung read can't keep the agent alive."""

    def __init__(self, pool: "BlockingPool") -> None:
        super().__init__(name="inferwatch-blocking", daemon=True)
        self._pool = pool
        self._wake = threading.Event()
        self._job: Callable[[], None] | None = None

    def give(self, job: Callable[[], None] | None) -> None:
        self._job = job
        self._wake.set()

    def run(self) -> None:
        while True:
            self._wake.wait()
            self._wake.clear()
            job, self._job = self._job, None
            if job is None:
                return
            job()
            if not self._pool.take_back(self):
                return


class BlockingPool:
    """Idle threads to lend. It needs no limit of its own: each instance has one job at a time (see `Lane`)."""

    def __init__(self) -> None:
        self._idle: deque[_Worker] = deque()
        self._lock = threading.Lock()
        self._closed = False

    def submit(self, job: Callable[[], None]) -> None:
        """Run a job in an idle thread, or in a new one."""
        with self._lock:
            worker = self._idle.pop() if self._idle else None
        if worker is None:
            worker = _Worker(self)
            worker.start()
        worker.give(job)

    def take_back(self, worker: _Worker) -> bool:
        """Return whether the pool keeps an idle worker; one that it does not keep ends."""
        with self._lock:
            keep = not self._closed and len(self._idle) < IDLE_LIMIT
            if keep:
                self._idle.append(worker)
            return keep

    def close(self) -> None:
        """End the idle threads; a busy one ends after its job."""
        with self._lock:
            self._closed = True
            idle, self._idle = self._idle, deque()
        for worker in idle:
            worker.give(None)


class Lane:
    """The one thread's worth of blocking work of a (sampler, instance); it is the context's `run_blocking`."""

    def __init__(self, pool: BlockingPool) -> None:
        self._pool = pool
        self._running: asyncio.Future[Any] | None = None

    @property
    def busy(self) -> asyncio.Future[Any] | None:
        """Return a future that ends with the job in the thread, None when there is none."""
        return self._running if self._running is not None and not self._running.done() else None

    async def __call__(self, function: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
        """Run a function in the thread.

        Raises:
            SourceError: reason `stuck`, when the last one has not returned yet.
        """
        if self.busy is not None:
            raise SourceError("an earlier blocking read has not returned", reason="stuck")
        loop = asyncio.get_running_loop()
        future: asyncio.Future[T] = loop.create_future()
        self._running = future

        def job() -> None:
            try:
                result = function(*args, **kwargs)
            except (SystemExit, KeyboardInterrupt) as error:  # asyncio would end the whole agent with them
                _post(loop, future, None, RuntimeError(f"a blocking read raised {type(error).__name__}"))
            except BaseException as error:  # noqa: BLE001 - it is handed to the caller, whatever it is
                _post(loop, future, None, error)
            else:
                _post(loop, future, result, None)

        try:
            self._pool.submit(job)
        except RuntimeError as error:  # no thread could be started: a limit on processes
            self._running = None
            raise SourceError(f"can't start a thread to read in: {error}", reason="io") from error
        return await asyncio.shield(future)


def _post(
    loop: asyncio.AbstractEventLoop, future: asyncio.Future[T], result: T | None, error: BaseException | None
) -> None:
    def settle() -> None:
        if future.done():
            return
        if error is None:
            future.set_result(result)  # type: ignore[arg-type] # None is only given together with an error
        else:
            future.set_exception(error)
            future.exception()  # read, so that a result nobody waits for any more is not reported as a loss

    with suppress(RuntimeError):  # the loop has been closed meanwhile: nobody waits
        loop.call_soon_threadsafe(settle)
