"""Read the host's side of NUMA: memory and allocations of each node, balancing, transparent huge pages."""

from collections import Counter
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Final

from inferwatch.errors import NoData
from inferwatch.model import Sample
from inferwatch.samplers._support import numa_families as families
from inferwatch.samplers._support.troubles import Troubles
from inferwatch.sources.hostfs import HostFs, read_bytes
from inferwatch.sources.procfs.fields import unsigned
from inferwatch.sources.procfs.vmstat import parse_vmstat
from inferwatch.sources.sysfs.choice import parse_choice
from inferwatch.sources.sysfs.node import NodeTopology
from inferwatch.sources.sysfs.node_meminfo import parse_node_meminfo
from inferwatch.sources.sysfs.numastat import NumaStat, parse_numastat
from inferwatch.sources.topology import NODES
from inferwatch.spec import Clock

OUTCOMES: Final = NumaStat.__slots__
HUGE_PAGES: Final = ("kernel", "mm", "transparent_hugepage")
SETTINGS_NS: Final = 30_000_000_000


class NumaHost:
    """Reads the host's files.

    Args:
        hostfs: The host's file systems.
        clock: Time; settings are read every 30 seconds.
    """

    def __init__(self, hostfs: HostFs, clock: Clock) -> None:
        self._hostfs = hostfs
        self._clock = clock
        self._remote_faults = 0
        self._settings: Sequence[Sample] = ()
        self._settings_ns: int | None = None

    def samples(self, topology: NodeTopology, troubles: Troubles) -> Sequence[Sample]:
        """Read all of it; what the host lacks is left out."""
        cpus = Counter(topology.node_of_cpu.values())
        samples: list[Sample] = []
        for node in topology.nodes:
            samples += troubles.attempt(partial(list, self._memory(node))) or ()
            samples += troubles.attempt(partial(list, self._allocations(node))) or ()
            if topology.node_of_cpu:
                samples.append(families.NODE_CPUS(cpus[node], str(node)))
        samples += troubles.attempt(partial(list, self._vmstat())) or ()
        samples += self._rarely(troubles)
        return samples

    def _rarely(self, troubles: Troubles) -> Sequence[Sample]:
        """Return the samples of settings; one that is not there or can't be read is tried each time."""
        now = self._clock.monotonic_ns()
        if self._settings_ns is None or now - self._settings_ns >= SETTINGS_NS:
            found: list[list[Sample] | None] = [
                troubles.attempt(partial(list, part())) for part in (self._balancing, self._huge_pages)
            ]
            self._settings = [sample for samples in found for sample in samples or ()]
            self._settings_ns = None if None in found else now
        return self._settings

    def _memory(self, node: int) -> Iterator[Sample]:
        info = parse_node_meminfo(read_bytes(self._hostfs.sys(*NODES, f"node{node}", "meminfo")), node)
        label = str(node)
        yield families.TOTAL(info.total_bytes, label)
        yield families.FREE(info.free_bytes, label)
        file = None if info.file_bytes is None else max(0, info.file_bytes - (info.shared_bytes or 0))
        kinds = (
            ("anonymous", info.anonymous_bytes),
            ("file", file),
            ("shared", info.shared_bytes),
            ("slab", info.slab_bytes),
        )
        yield from (families.USED(value, label, kind) for kind, value in kinds if value is not None)

    def _allocations(self, node: int) -> Iterator[Sample]:
        stat = parse_numastat(read_bytes(self._hostfs.sys(*NODES, f"node{node}", "numastat")), node)
        yield from (families.ALLOCATIONS(getattr(stat, outcome), str(node), outcome) for outcome in OUTCOMES)

    def _vmstat(self) -> Iterator[Sample]:
        counters = parse_vmstat(read_bytes(self._hostfs.proc("vmstat"))).values
        if (migrated := counters.get("numa_pages_migrated")) is not None:
            yield families.MIGRATED(migrated)
        faults, local = counters.get("numa_hint_faults"), counters.get("numa_hint_faults_local")
        if faults is not None and local is not None:
            # the two are not read at the same instant; a fall would look like a reset
            self._remote_faults = max(self._remote_faults, faults - local)
            yield families.HINT_FAULTS(local, "local")
            yield families.HINT_FAULTS(self._remote_faults, "remote")

    def _balancing(self) -> Iterator[Sample]:
        data = read_bytes(self._hostfs.proc("sys", "kernel", "numa_balancing"))
        mode = unsigned(data.strip(), "/proc/sys/kernel/numa_balancing")  # 2 is memory tiering, since 5.18
        yield families.BALANCING(int(mode != 0))

    def _huge_pages(self) -> Iterator[Sample]:
        enabled = self._choice("enabled")
        try:
            defrag = self._choice("defrag")
        except NoData:
            defrag = ""
        yield families.HUGE_PAGES(1, enabled, defrag)

    def _choice(self, name: str) -> str:
        path = self._hostfs.sys(*HUGE_PAGES, name)
        return parse_choice(read_bytes(path), str(path))
