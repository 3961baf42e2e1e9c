"""Sample CPU time per NUMA node and mode, load, interrupts and process counts, from /proc/stat and its neighbours."""

import os
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Final

from inferwatch.errors import ParseError, SourceError
from inferwatch.model import Family, Kind, Sample
from inferwatch.samplers._support.parts import Parts
from inferwatch.sources.hostfs import read_bytes
from inferwatch.sources.monotonic import GroupTotals, WrappingTotals
from inferwatch.sources.procfs.loadavg import parse_loadavg
from inferwatch.sources.procfs.softirqs import parse_softirqs
from inferwatch.sources.procfs.stat import COLUMNS, Stat, parse_stat
from inferwatch.sources.sysfs.node import NOT_READ
from inferwatch.sources.topology import read_topology
from inferwatch.spec import Context, SamplerSpec

MODES: Final = COLUMNS[:8]  # guest and guest_nice are inside user and nice
ALL_CPUS: Final = -1  # stands for the sum line where a kernel has no cpuN lines

CPU_SECONDS: Final = Family(
    "inferwatch_cpu_seconds_total",
    "Time that the CPUs of a NUMA node spent in a mode since boot, guests inside user and nice, from /proc/stat.",
    Kind.COUNTER,
    "seconds",
    ("numa_node", "mode"),
)
CPU_ONLINE: Final = Family(
    "inferwatch_cpu_online", "Number of online CPUs of a NUMA node, from /proc/stat.", Kind.GAUGE, "", ("numa_node",)
)
LOAD_AVERAGE: Final = Family(
    "inferwatch_load_average",
    "Damped mean number of threads that run, are ready to run or sleep uninterruptibly, over 1, 5 or 15 minutes,"
    " from /proc/loadavg.",
    Kind.GAUGE,
    "",
    ("minutes",),
)
CONTEXT_SWITCHES: Final = Family(
    "inferwatch_context_switches_total", "Context switches since boot, from ctxt in /proc/stat.", Kind.COUNTER
)
INTERRUPTS: Final = Family(
    "inferwatch_interrupts_total", "Interrupts served since boot, from intr in /proc/stat.", Kind.COUNTER
)
SOFTIRQS: Final = Family(
    "inferwatch_softirqs_total",
    "Soft interrupts of a kind that ran since boot, on all CPUs, from /proc/softirqs.",
    Kind.COUNTER,
    "",
    ("kind",),
)
RUNNING: Final = Family(
    "inferwatch_processes_running",
    "Number of threads that run or are ready to run, from procs_running in /proc/stat.",
    Kind.GAUGE,
)
BLOCKED: Final = Family(
    "inferwatch_processes_blocked",
    "Number of threads that wait for I/O, from procs_blocked in /proc/stat.",
    Kind.GAUGE,
)
FORKS: Final = Family(
    "inferwatch_forks_total", "Processes and threads created since boot, from processes in /proc/stat.", Kind.COUNTER
)
BOOT_TIME: Final = Family(
    "inferwatch_boot_time_seconds",
    "When the host booted, in seconds since 1970, from btime in /proc/stat.",
    Kind.GAUGE,
    "seconds",
)


class CpuSampler:
    """Reads /proc/stat, /proc/loadavg and /proc/softirqs, and the NUMA topology when it meets a new CPU."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._user_hz = os.sysconf("SC_CLK_TCK")
        self._topology = NOT_READ
        self._cpu_totals = GroupTotals()
        self._softirq_totals = WrappingTotals()

    async def sample(self) -> Sequence[Sample]:
        """Read once."""
        return await self._context.run_blocking(self._read)

    async def close(self) -> None:
        """Hold nothing."""

    def _read(self) -> Sequence[Sample]:
        parts = Parts()
        parts.add(partial(self._stat, parts))
        parts.add(self._load)
        parts.add(self._softirqs)
        return parts.result()

    def _stat(self, parts: Parts) -> Iterator[Sample]:
        stat = parse_stat(read_bytes(self._context.hostfs.proc("stat")), self._user_hz)
        cpus = stat.cpus or {ALL_CPUS: stat.cpu_seconds}
        self._learn_topology(cpus, parts)
        self._cpu_totals.update(cpus, self._topology.label)
        for node, seconds in sorted(self._cpu_totals.totals.items()):
            yield from (CPU_SECONDS(round(value, 6), node, mode) for mode, value in zip(MODES, seconds, strict=False))
            if stat.cpus:
                yield CPU_ONLINE(sum(self._topology.label(cpu) == node for cpu in stat.cpus), node)
        yield from _scalars(stat)

    def _learn_topology(self, cpus: Mapping[int, object], parts: Parts) -> None:
        """Read the nodes' lists again when a CPU appears that is in none of them."""
        if self._topology.covers(cpus):
            return
        try:
            self._topology = read_topology(self._context.hostfs)
        except (ParseError, SourceError) as error:
            parts.report(error)

    def _load(self) -> Iterator[Sample]:
        load = parse_loadavg(read_bytes(self._context.hostfs.proc("loadavg")))
        yield LOAD_AVERAGE(load.load1, "1")
        yield LOAD_AVERAGE(load.load5, "5")
        yield LOAD_AVERAGE(load.load15, "15")

    def _softirqs(self) -> Iterator[Sample]:
        softirqs = parse_softirqs(read_bytes(self._context.hostfs.proc("softirqs")))
        for kind, runs in self._softirq_totals.update(softirqs.runs).items():
            yield SOFTIRQS(runs, kind.lower())


def _scalars(stat: Stat) -> Iterator[Sample]:
    """Make samples of what /proc/stat has of these; a field that it does not have is absent."""
    pairs = (
        (CONTEXT_SWITCHES, stat.context_switches),
        (INTERRUPTS, stat.interrupts),
        (FORKS, stat.forks),
        (RUNNING, stat.running),
        (BLOCKED, stat.blocked),
        (BOOT_TIME, stat.boot_time_seconds),
    )
    return (family(value) for family, value in pairs if value is not None)


SAMPLER: Final = SamplerSpec(
    name="cpu",
    dimension="cpu",
    summary="Where CPU time goes, per NUMA node and mode; load, interrupts, context switches and process counts.",
    source="/proc/stat, /proc/loadavg, /proc/softirqs, /sys/devices/system/node",
    families=(
        CPU_SECONDS,
        CPU_ONLINE,
        LOAD_AVERAGE,
        CONTEXT_SWITCHES,
        INTERRUPTS,
        SOFTIRQS,
        RUNNING,
        BLOCKED,
        FORKS,
        BOOT_TIME,
    ),
    create=CpuSampler,
)
