"""Sample each target's memory by kind, its growth and the time until it runs out, its OOM score and its open files."""

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Final

from pydantic import Field, model_validator

from inferwatch.config import SamplerOptions
from inferwatch.model import Sample
from inferwatch.samplers._support.growth import GrowthTracker
from inferwatch.samplers._support.process_families import (
    EXHAUSTION,
    FAMILIES,
    GROWTH,
    HEADROOM,
    by_role,
    role_samples,
)
from inferwatch.samplers._support.process_reader import ProcessReader, ProcessReading
from inferwatch.samplers._support.process_rollup import proportional_samples
from inferwatch.samplers._support.smaps import SmapsCache
from inferwatch.samplers._support.troubles import Troubles
from inferwatch.sources.cgroup.files import GroupFiles
from inferwatch.sources.cgroup.memory import read_headroom
from inferwatch.sources.cgroup.tree import CgroupTree
from inferwatch.sources.hostfs import read_bytes
from inferwatch.sources.procfs.meminfo import parse_meminfo
from inferwatch.spec import Context, SamplerSpec
from inferwatch.targets.model import Target

SMAPS_SHARE: Final = 0.25  # of the run's time limit


class ProcessMemoryOptions(SamplerOptions):
    """Options of `[samplers.process_memory]`."""

    smaps_interval_seconds: float = Field(
        default=60.0,
        ge=1,
        le=86_400,
        description="Time between two reads of a process's smaps_rollup, which visits each of its pages.",
    )
    growth_window_seconds: float = Field(
        default=1800.0, ge=10, le=604_800, description="Length of the window over which growth is measured."
    )
    growth_minimum_seconds: float = Field(
        default=600.0, ge=1, le=604_800, description="How much of the window must have passed before growth is told."
    )

    @model_validator(mode="after")
    def _fits(self) -> "ProcessMemoryOptions":
        if self.growth_minimum_seconds > self.growth_window_seconds:
            msg = "growth_minimum_seconds is above growth_window_seconds, so that growth would never be told"
            raise ValueError(msg)
        return self


class ProcessMemorySampler:
    """Reads /proc/PID of each process of each target."""

    def __init__(self, context: Context) -> None:
        options: ProcessMemoryOptions = context.options
        self._context = context
        self._reader = ProcessReader(context.hostfs, context.clock)
        self._cgroups = CgroupTree(context.hostfs)
        self._files = GroupFiles()
        self._growth = GrowthTracker(options.growth_window_seconds, options.growth_minimum_seconds)
        self._smaps = SmapsCache(
            context.hostfs, context.clock, options.smaps_interval_seconds, context.timeout_seconds * SMAPS_SHARE
        )

    async def sample(self) -> Sequence[Sample]:
        """Read once."""
        return await self._context.run_blocking(self._read)

    async def close(self) -> None:
        """Hold nothing."""

    def _read(self) -> Sequence[Sample]:
        troubles = Troubles()
        targets = self._context.targets.current().targets
        processes = [process.id for target in targets for process in target.processes]
        self._reader.keep_only(processes)
        self._growth.keep_only(processes)
        self._files.begin(self._context.clock.monotonic_ns())
        available = troubles.attempt(self._available) if targets else None
        samples = [sample for target in targets for sample in self._target(target, available, troubles)]
        self._smaps.refresh(processes, troubles)
        for target in targets:
            samples += proportional_samples(target, self._smaps)
        return troubles.result(samples)

    def _target(self, target: Target, available: int | None, troubles: Troubles) -> Iterator[Sample]:
        readings = [
            reading for process in target.processes if (reading := self._reader.read(process, troubles)) is not None
        ]
        now = self._context.clock.monotonic_ns() / 1e9
        for reading in readings:
            if reading.memory.anonymous_bytes is not None:
                self._growth.add(
                    reading.process.id, now, reading.memory.anonymous_bytes + (reading.memory.swap_bytes or 0)
                )
        roles = by_role(readings)
        for role, group in roles.items():
            yield from role_samples(target.name, role, group)
        slopes = {role: slope for role, group in roles.items() if (slope := self._slope(group)) is not None}
        yield from (GROWTH(slope, target.name, role) for role, slope in slopes.items())
        if readings and (headroom := self._headroom(target, available, troubles)) is not None:
            yield HEADROOM(headroom, target.name)
            rising = {role: slope for role, slope in slopes.items() if slope > 0}
            # what all roles together take leaves the less for each
            yield from (EXHAUSTION(headroom / sum(rising.values()), target.name, role) for role in rising)

    def _slope(self, readings: Sequence[ProcessReading]) -> float | None:
        """Return the sum of the processes' slopes; None when none has one."""
        found = [slope for reading in readings if (slope := self._growth.slope(reading.process.id)) is not None]
        return sum(found) if found else None

    def _headroom(self, target: Target, available: int | None, troubles: Troubles) -> int | None:
        """Return the bytes left until the nearest limit: of a control group above the target, or of the host."""
        rooms = (troubles.attempt(partial(self._cgroup_room, target)), available)
        return min((room for room in rooms if room is not None), default=None)

    def _cgroup_room(self, target: Target) -> int | None:
        levels = self._cgroups.levels("memory", target.cgroup.unified, target.cgroup.controllers)
        return read_headroom(self._files, levels)

    def _available(self) -> int | None:
        return parse_meminfo(read_bytes(self._context.hostfs.proc("meminfo"))).available_bytes


SAMPLER: Final = SamplerSpec(
    name="process_memory",
    dimension="memory",
    summary="How much memory each target has, of which kind, whether it grows and when it runs out; its open files.",
    source="/proc/PID/{status,statm,smaps_rollup,fd,limits,oom_score,oom_score_adj}, /proc/meminfo, cgroups",
    families=FAMILIES,
    create=ProcessMemorySampler,
    options=ProcessMemoryOptions,
)
