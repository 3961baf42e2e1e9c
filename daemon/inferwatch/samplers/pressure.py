"""Sample pressure stall information (PSI) of CPU, memory and I/O, from /proc/pressure."""

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Final

from inferwatch.model import Family, Kind, Sample
from inferwatch.samplers._support.parts import Parts
from inferwatch.sources.hostfs import HostFs, read_bytes
from inferwatch.sources.procfs.pressure import parse_pressure
from inferwatch.spec import Context, SamplerSpec

RESOURCES: Final = ("cpu", "memory", "io")
IRQ: Final = "irq"  # since 6.1, and only with CONFIG_IRQ_TIME_ACCOUNTING: its absence is usual
MISSING: Final = (
    "this kernel has no /proc/pressure: PSI came with 4.20 (CONFIG_PSI); where the distribution leaves it off"
    " (CONFIG_PSI_DEFAULT_DISABLED), boot with psi=1"
)

STALL_SECONDS: Final = Family(
    "inferwatch_pressure_stall_seconds_total",
    "Time in which some or all (full) non-idle threads waited for a resource since boot, from /proc/pressure.",
    Kind.COUNTER,
    "seconds",
    ("resource", "share"),
)


def missing_pressure(hostfs: HostFs) -> str | None:
    """Return why the sampler can't run, None when it can; any error but an absence is left for the run to report."""
    try:
        hostfs.proc("pressure").stat()
    except (FileNotFoundError, NotADirectoryError):
        return MISSING
    except OSError:
        return None
    return None


class PressureSampler:
    """Reads one file per resource."""

    def __init__(self, context: Context) -> None:
        self._context = context

    async def sample(self) -> Sequence[Sample]:
        """Read once."""
        return await self._context.run_blocking(self._read)

    async def close(self) -> None:
        """Hold nothing."""

    def _read(self) -> Sequence[Sample]:
        parts = Parts()
        for resource in RESOURCES:
            parts.add(partial(self._resource, resource))
        parts.add(partial(self._resource, IRQ), optional=True)
        return parts.result()

    def _resource(self, resource: str) -> Iterator[Sample]:
        pressure = parse_pressure(read_bytes(self._context.hostfs.proc("pressure", resource)), resource)
        if pressure.some_seconds is not None:
            yield STALL_SECONDS(pressure.some_seconds, resource, "some")
        # Host-wide, "all threads wait for a CPU" means nothing. Kernels from 5.13 print the line, with scheduling
        # latency in it at first and a constant zero since commit 890d550d7dba (5.19 and the stable series).
        if pressure.full_seconds is not None and resource != "cpu":
            yield STALL_SECONDS(pressure.full_seconds, resource, "full")


SAMPLER: Final = SamplerSpec(
    name="pressure",
    dimension="cpu",
    summary="How long threads stalled for want of CPU, memory or I/O.",
    source="/proc/pressure",
    families=(STALL_SECONDS,),
    create=PressureSampler,
    requires=(missing_pressure,),
)
