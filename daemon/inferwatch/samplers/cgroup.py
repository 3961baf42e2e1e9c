"""Sample each target's control group: memory, its limits and events, CPU quota and throttling, pressure, cpuset."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import Final

from inferwatch.model import Family, Kind, Sample
from inferwatch.samplers._support import cgroup_families as families
from inferwatch.samplers._support.troubles import Troubles
from inferwatch.sources.cgroup.cpu import read_cpu_seconds, read_throttling
from inferwatch.sources.cgroup.cpuset import read_cpuset
from inferwatch.sources.cgroup.files import GroupFiles
from inferwatch.sources.cgroup.memory import MemoryGroup, read_memory
from inferwatch.sources.cgroup.pressure import read_group_pressure
from inferwatch.sources.cgroup.tree import CgroupTree, Level
from inferwatch.sources.offsets import SteadyTotals
from inferwatch.spec import Context, SamplerSpec
from inferwatch.targets.model import CgroupPaths, Target

PRESSURE_RESOURCES: Final = ("cpu", "memory", "io")

Reading = tuple[Sample, object]  # the sample, and which directory counted it (None for a gauge)


class CgroupSampler:
    """Reads the files of the control group of each target's first process."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._tree = CgroupTree(context.hostfs)
        self._files = GroupFiles()
        self._totals = SteadyTotals()

    async def sample(self) -> Sequence[Sample]:
        """Read once."""
        return await self._context.run_blocking(self._read)

    async def close(self) -> None:
        """Hold nothing."""

    def _read(self) -> Sequence[Sample]:
        troubles = Troubles()
        self._files.begin(self._context.clock.monotonic_ns())
        samples: list[Sample] = []
        for target in self._context.targets.current().targets:
            if hidden := _hidden(target.cgroup):
                troubles.note_reason("no_data", f"target {target.name}: {hidden}")
            for part in (self._memory, self._cpu_use, self._throttling, self._pressure, self._cpuset):
                samples += self._part(part, target, troubles)
        return troubles.result(samples)

    def _part(
        self, part: Callable[[Target], Iterable[Reading]], target: Target, troubles: Troubles
    ) -> Iterator[Sample]:
        """Run one part and keep its counters from falling; a part that the host or group lacks is left out."""
        readings: Iterable[Reading] = troubles.attempt(partial(list, part(target))) or ()
        for sample, source in readings:
            if sample.family.kind is Kind.COUNTER and isinstance(sample.value, int | float):
                series = (sample.family.name, *sample.labels)
                yield sample.family(self._totals.update(series, source, sample.value), *sample.labels)
            else:
                yield sample

    def _memory(self, target: Target) -> Iterator[Reading]:
        group = read_memory(self._files, self._levels("memory", target))
        for family, value in _memory_values(group):
            if value is not None:
                yield family(value, target.name), group.directory
        for event, count in (group.events or {}).items():
            yield families.MEMORY_EVENTS(count, target.name, event), group.directory

    def _cpu_use(self, target: Target) -> Iterator[Reading]:
        directory, seconds = read_cpu_seconds(self._files, self._levels("cpuacct", target))
        yield families.CPU_SECONDS(seconds, target.name), directory

    def _throttling(self, target: Target) -> Iterator[Reading]:
        found = read_throttling(self._files, self._levels("cpu", target))
        yield families.PERIODS(found.periods, target.name), found.directory
        yield families.THROTTLED_PERIODS(found.throttled_periods, target.name), found.directory
        yield families.THROTTLED_SECONDS(found.throttled_seconds, target.name), found.directory
        if found.quota_cores is not None:
            yield families.QUOTA(found.quota_cores, target.name), None

    def _pressure(self, target: Target) -> Iterator[Reading]:
        levels = self._tree.levels("", target.cgroup.unified, {})
        for resource in PRESSURE_RESOURCES if levels else ():
            pressure = read_group_pressure(self._files, levels[0], resource)
            if pressure is None:
                continue
            shares = (("some", pressure.some_seconds), ("full", pressure.full_seconds))
            for share, seconds in shares:
                if seconds is not None:
                    yield families.PRESSURE(seconds, target.name, resource, share), levels[0].directory

    def _cpuset(self, target: Target) -> Iterator[Reading]:
        cpuset = read_cpuset(self._files, self._levels("cpuset", target))
        yield families.CPUSET_CPUS(len(cpuset.cpus), target.name), None
        yield families.CPUSET_NODES(len(cpuset.memory_nodes), target.name), None

    def _levels(self, controller: str, target: Target) -> Sequence[Level]:
        return self._tree.levels(controller, target.cgroup.unified, target.cgroup.controllers)


def _memory_values(group: MemoryGroup) -> Sequence[tuple[Family, int | None]]:
    return (
        (families.USAGE, group.usage_bytes),
        (families.WORKING_SET, group.working_set_bytes),
        (families.LIMIT, group.limit_bytes),
        (families.HIGH, group.high_bytes),
        (families.PEAK, group.peak_bytes),
        (families.SWAP, group.swap_bytes),
        (families.OOM_KILLS, group.oom_kills),
    )


def _hidden(paths: CgroupPaths) -> str:
    """Return why the group's files can't be found, empty when nothing speaks against it."""
    path = next((path for path in (paths.unified, *paths.controllers.values()) if path and ".." in path), None)
    if path is None:
        return ""
    return f"its cgroup {path} is outside the agent's cgroup namespace; run the agent in the host's (--cgroupns=host)"


SAMPLER: Final = SamplerSpec(
    name="cgroup",
    dimension="memory",
    summary="Whether the control group of a target holds it back: memory limit, CPU quota, pressure, cpuset.",
    source="cgroup v1, v2 or both: memory.*, cpu.*, cpuacct.usage, cpuset.*, *.pressure",
    families=families.FAMILIES,
    create=CgroupSampler,
)
