"""Sample how long threads waited for a CPU, per NUMA node, from the host-wide /proc/schedstat."""

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Final

from inferwatch.errors import NoData, ParseError, SourceError
from inferwatch.model import Family, Kind, Sample
from inferwatch.samplers._support.parts import Parts
from inferwatch.sources.hostfs import HostFs, read_bytes
from inferwatch.sources.monotonic import GroupTotals
from inferwatch.sources.procfs.schedstat import CpuSchedstat, parse_schedstat
from inferwatch.sources.sysfs.node import NOT_READ
from inferwatch.sources.topology import read_topology
from inferwatch.spec import Context, SamplerSpec

SYSCTL: Final = ("sys", "kernel", "sched_schedstats")
MISSING: Final = (
    "this kernel has no /proc/schedstat (CONFIG_SCHEDSTATS is off); see the sampler threads for targets' wait"
)
ENABLE: Final = "try sysctl kernel.sched_schedstats=1 (or boot with schedstats=enable)"

WAIT_SECONDS: Final = Family(
    "inferwatch_cpu_run_queue_wait_seconds_total",
    "Time that threads were ready to run and waited for a CPU of a NUMA node, all threads added up, since boot,"
    " from /proc/schedstat.",
    Kind.COUNTER,
    "seconds",
    ("numa_node",),
)
RUNNING_SECONDS: Final = Family(
    "inferwatch_cpu_running_seconds_total",
    "Time that threads ran on the CPUs of a NUMA node since boot, from /proc/schedstat.",
    Kind.COUNTER,
    "seconds",
    ("numa_node",),
)
TIMESLICES: Final = Family(
    "inferwatch_cpu_timeslices_total",
    "How often a thread was put on a CPU of a NUMA node since boot, from /proc/schedstat.",
    Kind.COUNTER,
    "",
    ("numa_node",),
)


def missing_schedstat(hostfs: HostFs) -> str | None:
    """Return why the sampler can't run, None when it can; any error but an absence is left for the run to report."""
    try:
        hostfs.proc("schedstat").stat()
    except (FileNotFoundError, NotADirectoryError):
        return MISSING
    except OSError:
        return None
    return None


class SchedstatSampler:
    """Reads /proc/schedstat, and the NUMA topology when it meets a new CPU."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._topology = NOT_READ
        self._totals = GroupTotals()

    async def sample(self) -> Sequence[Sample]:
        """Read once."""
        return await self._context.run_blocking(self._read)

    async def close(self) -> None:
        """Hold nothing."""

    def _read(self) -> Sequence[Sample]:
        parts = Parts()
        parts.add(partial(self._schedstat, parts))
        return parts.result()

    def _schedstat(self, parts: Parts) -> Iterator[Sample]:
        cpus = parse_schedstat(read_bytes(self._context.hostfs.proc("schedstat"))).cpus
        counted = self._check_counted(cpus, parts)
        if not self._topology.covers(cpus):
            try:
                self._topology = read_topology(self._context.hostfs)
            except (ParseError, SourceError) as error:
                parts.report(error)
        readings = {number: (cpu.wait_seconds, cpu.running_seconds, cpu.timeslices) for number, cpu in cpus.items()}
        self._totals.update(readings, self._topology.label)
        for node, (wait, running, timeslices) in sorted(self._totals.totals.items()):
            if counted:
                yield WAIT_SECONDS(wait, node)
            yield RUNNING_SECONDS(running, node)
            yield TIMESLICES(timeslices, node)

    def _check_counted(self, cpus: Mapping[int, CpuSchedstat], parts: Parts) -> bool:
        """Return whether wait is counted: zeros of a kernel that doesn't count must not be read as "no wait".

        Mainline counts whenever CONFIG_SCHEDSTATS is compiled in, whatever the sysctl says. A wait of exactly 0 ns on
        all CPUs since boot is not credible even on an idle host: waking a thread takes time. So zero is believed only
        where the sysctl says that statistics are on, or where it doesn't exist (before 4.6 there was no way to turn
        them off).

        Raises:
            NoData: When nothing at all is counted.
        """
        if any(cpu.wait_seconds for cpu in cpus.values()):
            return True
        if not any(cpu.running_seconds or cpu.timeslices for cpu in cpus.values()):
            raise NoData(f"/proc/schedstat: all cpu lines are zero, so this kernel does not count; {ENABLE}")
        if self._sysctl() == b"0":
            parts.report(
                NoData(f"/proc/schedstat: wait is zero on all CPUs and kernel.sched_schedstats is 0; {ENABLE}")
            )
            return False
        return True

    def _sysctl(self) -> bytes | None:
        """Return the value of kernel.sched_schedstats, None where it does not exist or can't be read."""
        try:
            return read_bytes(self._context.hostfs.proc(*SYSCTL)).strip()
        except (NoData, SourceError):
            return None


SAMPLER: Final = SamplerSpec(
    name="schedstat",
    dimension="cpu",
    summary="How long threads waited in the run queues of each NUMA node, host-wide.",
    source="/proc/schedstat, /proc/sys/kernel/sched_schedstats, /sys/devices/system/node",
    families=(WAIT_SECONDS, RUNNING_SECONDS, TIMESLICES),
    create=SchedstatSampler,
    requires=(missing_schedstat,),
)
