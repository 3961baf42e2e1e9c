"""Sample memory and allocations of each NUMA node, and where each target's memory and CPUs are."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Final

from pydantic import Field

from inferwatch.config import SamplerOptions
from inferwatch.errors import ParseError, SourceError
from inferwatch.model import Sample
from inferwatch.samplers._support import numa_families as families
from inferwatch.samplers._support.numa_affinity import NumaAffinities
from inferwatch.samplers._support.numa_cpu import NumaCpu
from inferwatch.samplers._support.numa_host import NumaHost
from inferwatch.samplers._support.numa_memory import BUDGET_SHARE, Bounds, NumaMemory
from inferwatch.samplers._support.numa_placement import Placement, is_aligned, remote_accesses, remote_bytes
from inferwatch.samplers._support.troubles import Troubles
from inferwatch.sources.sysfs.node import NOT_READ, NodeTopology
from inferwatch.sources.topology import read_topology
from inferwatch.spec import Context, SamplerSpec
from inferwatch.targets.model import ProcessId, Target

MOST_TARGETS: Final = 1000  # of which the CPU time by node is kept after they are gone
NOWHERE: Final[Mapping[int, float]] = MappingProxyType({})
TOPOLOGY_NS: Final = 30_000_000_000  # nodes and CPUs come and go by hotplug only


class NumaOptions(SamplerOptions):
    """Options of `[samplers.numa]`."""

    numa_maps_interval_seconds: float = Field(
        default=300.0,
        ge=1,
        le=86_400,
        description="Time between two reads of a process's numa_maps, which visits each of its pages; less while it is"
        " young.",
    )
    numa_maps_bytes: int = Field(
        default=8 << 20,
        ge=4096,
        le=1 << 28,
        description="Largest numa_maps that is read; a line takes some 80 bytes.",
    )
    threads_interval_seconds: float = Field(
        default=15.0,
        ge=0.1,
        le=86_400,
        description="Time between two looks at where the threads of the targets run.",
    )
    threads_limit: int = Field(
        default=256, ge=1, le=100_000, description="Most threads of a process that are looked at, the oldest."
    )


class NumaSampler:
    """Reads the nodes each time, the targets' threads and page tables at intervals of their own."""

    def __init__(self, context: Context) -> None:
        options: NumaOptions = context.options
        self._context = context
        self._topology = NOT_READ
        self._topology_ns: int | None = None
        self._host = NumaHost(context.hostfs, context.clock)
        budget = context.timeout_seconds * BUDGET_SHARE
        bounds = Bounds(options.numa_maps_interval_seconds, options.numa_maps_bytes, budget)
        self._memory = NumaMemory(context.hostfs, context.clock, bounds)
        self._cpu = NumaCpu(context.hostfs, options.threads_limit)
        self._affinities = NumaAffinities(context.hostfs)
        self._threads_ns: int | None = None
        self._lately: dict[ProcessId, Mapping[int, float]] = {}
        self._totals: dict[str, dict[int, float]] = {}

    async def sample(self) -> Sequence[Sample]:
        """Read once."""
        return await self._context.run_blocking(self._read)

    async def close(self) -> None:
        """Hold nothing."""

    def _read(self) -> Sequence[Sample]:
        troubles = Troubles()
        self._read_topology(troubles)
        targets = self._context.targets.current().targets
        processes = [process.id for target in targets for process in target.processes]
        samples = list(self._host.samples(self._topology, troubles))
        if self._topology.nodes:
            self._memory.refresh(processes, self._topology.nodes, troubles)
            self._look_at_threads(targets, troubles)
            for target in targets:
                samples += self._target(target, troubles)
        return troubles.result(samples)

    def _read_topology(self, troubles: Troubles) -> None:
        now = self._context.clock.monotonic_ns()
        if self._topology_ns is not None and now - self._topology_ns < TOPOLOGY_NS:
            return
        try:
            self._topology = read_topology(self._context.hostfs)
            self._topology_ns = now
        except (ParseError, SourceError) as error:
            troubles.note(error)

    def _look_at_threads(self, targets: Sequence[Target], troubles: Troubles) -> None:
        """Add up where threads ran since the last look."""
        options: NumaOptions = self._context.options
        now = self._context.clock.monotonic_ns()
        processes = {process.id for target in targets for process in target.processes}
        self._cpu.keep_only(processes)
        self._affinities.keep_only(processes)
        self._lately = {process: seconds for process, seconds in self._lately.items() if process in processes}
        if self._threads_ns is not None and now - self._threads_ns < options.threads_interval_seconds * 1e9:
            return
        self._threads_ns = now
        for target in targets:
            totals = self._totals.setdefault(target.name, dict.fromkeys(_nodes_with_cpus(self._topology), 0.0))
            for process in target.processes:
                seconds = self._cpu.read(process.id, self._topology, now, troubles)
                if seconds:  # one that slept is where it ran before
                    self._lately[process.id] = seconds
                for node, share in seconds.items():
                    totals[node] = totals.get(node, 0.0) + share
        names = {target.name for target in targets}
        for name in [name for name in self._totals if name not in names][: max(0, len(self._totals) - MOST_TARGETS)]:
            del self._totals[name]

    def _target(self, target: Target, troubles: Troubles) -> Iterator[Sample]:
        alive = [process.id for process in target.processes if not self._memory.is_gone(process.id)]
        now = self._context.clock.monotonic_ns()
        placements = [
            Placement(
                self._memory.nodes(process),
                self._affinities.read(process, now, troubles),
                self._lately.get(process, NOWHERE),
            )
            for process in alive
        ]
        yield from self._memory_samples(target.name, placements)
        yield from self._cpu_samples(target.name, placements)
        for node, seconds in sorted(self._totals.get(target.name, {}).items()):
            yield families.TARGET_CPU(seconds, target.name, str(node))

    def _memory_samples(self, target: str, placements: Sequence[Placement]) -> Iterator[Sample]:
        known = [placement.memory for placement in placements if placement.memory is not None]
        if known and len(known) == len(placements):  # the sum over a part would be wrong
            for node in self._topology.nodes:
                yield families.TARGET_MEMORY(sum(memory.get(node, 0) for memory in known), target, str(node))
        pairs = [pair for placement in placements if (pair := remote_bytes(placement, self._topology)) is not None]
        if every := sum(size for _, size in pairs):
            yield families.REMOTE(sum(remote for remote, _ in pairs) / every, target)
        shares = [share for placement in placements if (share := remote_accesses(placement)) is not None]
        if seconds := sum(spent for _, spent in shares):
            yield families.REMOTE_ACCESS(min(max(sum(remote for remote, _ in shares) / seconds, 0.0), 1.0), target)

    def _cpu_samples(self, target: str, placements: Sequence[Placement]) -> Iterator[Sample]:
        known = [placement.affinity for placement in placements if placement.affinity is not None]
        if not known:
            return
        cpus = _by_node({cpu for affinity in known for cpu in affinity.cpus}, self._topology)
        yield from (families.ALLOWED_CPUS(count, target, str(node)) for node, count in sorted(cpus.items()))
        if nodes := {node for affinity in known for node in affinity.memory_nodes}:
            yield families.ALLOWED_NODES(len(nodes), target)
        yield families.ALIGNED(int(all(is_aligned(affinity, self._topology) for affinity in known)), target)


def _nodes_with_cpus(topology: NodeTopology) -> Sequence[int]:
    return topology.nodes if len(topology.nodes) == 1 else sorted(set(topology.node_of_cpu.values()))


def _by_node(cpus: set[int], topology: NodeTopology) -> Mapping[int, int]:
    """Return how many online CPUs of each node are among these."""
    return Counter(topology.node_of_cpu[cpu] for cpu in cpus if cpu in topology.node_of_cpu)


SAMPLER: Final = SamplerSpec(
    name="numa",
    dimension="memory",
    summary="Whether memory is near the CPUs that use it: nodes, allocations, balancing, and each target's placement.",
    source="/sys/devices/system/node, /proc/vmstat, /proc/PID/{numa_maps,status,task/TID/stat}, transparent_hugepage",
    families=families.FAMILIES,
    create=NumaSampler,
    options=NumaOptions,
)
