"""A loop with virtual time, and samplers that misbehave on request."""

import asyncio
import selectors
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import TypeVar

from inferwatch.config import Config, SamplerOptions
from inferwatch.model import Event, Family, Kind, Sample
from inferwatch.runtime.blocking import BlockingPool, Lane
from inferwatch.runtime.events import EventRing
from inferwatch.runtime.scheduler import Scheduler
from inferwatch.runtime.store import Store
from inferwatch.runtime.unit import Unit
from inferwatch.sources.hostfs import HostFs
from inferwatch.spec import Context, Instance, SamplerSpec

T = TypeVar("T")
VALUE = Family("inferwatch_test_value", "A value of a test.", Kind.GAUGE, labels=("name",))
LIMIT_SECONDS = 10_000.0


class VirtualLoop(asyncio.SelectorEventLoop):
    """A loop whose time jumps to the next timer as soon as there is nothing else to do; no threads, no real sockets."""

    def __init__(self) -> None:
        super().__init__(_JumpingSelector(self))
        self.now = 1000.0

    def time(self) -> float:
        return self.now


class _JumpingSelector(selectors.SelectSelector):
    def __init__(self, loop: VirtualLoop) -> None:
        super().__init__()
        self._loop = loop

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        ready = super().select(0)
        if not ready and timeout is None:
            raise AssertionError("everything waits for something that virtual time can't bring")
        if not ready and timeout is not None:
            self._loop.now += timeout
        return ready


def run_virtually(main: Callable[[], Awaitable[T]]) -> T:
    async def limited() -> T:
        async with asyncio.timeout(LIMIT_SECONDS):
            return await main()

    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        return runner.run(limited())


class LoopClock:
    """The loop's time as a Clock."""

    def monotonic_ns(self) -> int:
        return int(asyncio.get_running_loop().time() * 1e9)

    def unix_seconds(self) -> float:
        return 1.8e9 + asyncio.get_running_loop().time()


class FakeSampler:
    """Does in turn what `script` says: returns a value, raises, sleeps; the last entry is repeated."""

    def __init__(self, context: Context, script: Sequence[object]) -> None:
        self.context = context
        self.script = list(script)
        self.started: list[float] = []
        self.closed = 0

    async def sample(self) -> Sequence[Sample]:
        self.started.append(self.context.clock.monotonic_ns() / 1e9)
        step = self.script.pop(0) if len(self.script) > 1 else self.script[0]
        if callable(step):
            step = await step(self.context)
        if isinstance(step, BaseException):
            raise step
        assert isinstance(step, float)
        return [VALUE(step, self.context.instance or "only")]

    async def close(self) -> None:
        self.closed += 1


class Bench:
    """A scheduler with its store and ring on the loop's clock."""

    def __init__(self) -> None:
        self.clock = LoopClock()
        self.events = EventRing(100)
        self.store = Store(self.clock.monotonic_ns)
        self.scheduler = Scheduler(self.store, self.events, self.clock)
        self.pool = BlockingPool()
        self.samplers: dict[str, FakeSampler] = {}

    def unit(
        self,
        *script: object,
        name: str = "test",
        instance: Instance = Instance(),  # noqa: B008 - it is frozen
        interval: float = 5.0,
        timeout: float = 4.0,
        spec: SamplerSpec | None = None,
        lane: Lane | None = None,
    ) -> Unit:
        lane = lane or Lane(self.pool)

        def create(context: Context) -> FakeSampler:
            sampler = FakeSampler(context, script)
            self.samplers[name + context.instance] = sampler
            return sampler

        spec = spec or SamplerSpec(name, "agent", "A test.", "nowhere", (VALUE,), create)
        context = Context(
            config=Config(),
            options=SamplerOptions(),
            paths=Config().agent.paths,
            hostfs=HostFs(Path("/proc"), Path("/sys"), Path("/")),
            clock=self.clock,
            run_blocking=lane,
            emit=self.events.put,
            interval_seconds=interval,
            timeout_seconds=timeout,
            instance=instance.key,
        )
        return Unit(spec, instance, context, lane)

    def kinds(self) -> list[str]:
        return [event.kind for event in self.all_events()]

    def all_events(self) -> Sequence[Event]:
        return self.events.since()[1]
