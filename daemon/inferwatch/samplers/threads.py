"""Sample what the threads of every target did, and whether they had to wait for a CPU.

One read of a BPF task iterator gives all threads of the node; where it can't be used, the files of each thread do.
"""

from collections.abc import Iterable, Sequence
from dataclasses import asdict
from typing import Final, Literal, Protocol

from pydantic import Field

from inferwatch.config import SamplerOptions
from inferwatch.errors import InferwatchError
from inferwatch.model import Sample
from inferwatch.samplers._support import thread_families as families
from inferwatch.samplers._support.thread_counters import state_samples, total_of
from inferwatch.samplers._support.thread_groups import Groups
from inferwatch.samplers._support.thread_names import OTHER
from inferwatch.sources.bpf.tasks import TaskIterator
from inferwatch.sources.task_totals import TaskTotals
from inferwatch.sources.tasks_proc import TaskFiles
from inferwatch.spec import Context, PartialData, SamplerSpec
from inferwatch.targets.model import TargetTable

RETRY_NS: Final = 600 * 1_000_000_000
FALLBACK: Final = "bpf_unavailable"


class ThreadsOptions(SamplerOptions):
    """Options of `[samplers.threads]`."""

    source: Literal["auto", "bpf", "procfs"] = Field(
        default="auto",
        description="Where the figures come from: a BPF task iterator, each thread's files, or the first that works.",
    )
    thread_name_limit: int = Field(
        default=50,
        ge=0,
        le=1000,
        description="Most thread names of one target that are told apart; the rest is `other`.",
    )
    procfs_thread_limit: int = Field(
        default=2000, ge=1, le=100_000, description="Most threads of one reading when their files are read."
    )


class _Source(Protocol):
    def set_targets(self, pids: Iterable[int]) -> None: ...
    def read(self) -> TaskTotals: ...
    def close(self) -> None: ...


class ThreadsSampler:
    """Holds the loaded BPF program, or what the files gave last."""

    def __init__(self, context: Context) -> None:
        options: ThreadsOptions = context.options
        self._context = context
        self._options = options
        self._groups = Groups(options.thread_name_limit)
        self._source: _Source | None = None
        self._name = ""
        self._made = 0  # sources so far
        self._fallback_reason = ""
        self._retry_ns = 0

    async def sample(self) -> Sequence[Sample]:
        """Read once."""
        table = self._context.targets.current()
        samples = await self._context.run_blocking(self._read, table)
        if self._fallback_reason:
            raise PartialData(samples, {FALLBACK: self._fallback_reason})
        return samples

    async def close(self) -> None:
        """Take the program out of the kernel."""
        source, self._source = self._source, None
        if source is not None:
            await self._context.run_blocking(source.close)

    def _read(self, table: TargetTable) -> list[Sample]:
        totals = self._totals(table)
        samples = list(self._groups.take(table, totals.processes, self._made))
        if totals.other is not None:
            samples += total_of(totals.other.sums, OTHER, OTHER)
            samples += state_samples(totals.other.states, OTHER, OTHER)
        samples.append(families.SOURCE(1, self._name))
        samples += [families.OMITTED(count, what) for what, count in asdict(totals.omitted).items()]
        return samples

    def _totals(self, table: TargetTable) -> TaskTotals:
        pids = [process.id.pid for target in table.targets for process in target.processes]
        source = self._open()
        source.set_targets(pids)
        try:
            return source.read()
        except InferwatchError as error:
            if self._name != "bpf" or self._options.source == "bpf":
                raise
            source.close()
            source = self._fall_back(error)
            source.set_targets(pids)
            return source.read()

    def _open(self) -> _Source:
        """Return the source in use; one that could not be had is tried again every ten minutes."""
        now = self._context.clock.monotonic_ns()
        if self._source is not None and not (self._fallback_reason and now >= self._retry_ns):
            return self._source
        if self._options.source == "procfs":
            return self._use("procfs", TaskFiles(self._context.hostfs, self._options.procfs_thread_limit))
        try:
            iterator = TaskIterator()
        except InferwatchError as error:
            if self._options.source == "bpf":
                raise
            return self._fall_back(error)
        self._fallback_reason = ""
        return self._use("bpf", iterator)

    def _fall_back(self, error: Exception) -> _Source:
        self._fallback_reason = f"the files of each thread are read instead of the BPF task iterator: {error}"
        self._retry_ns = self._context.clock.monotonic_ns() + RETRY_NS
        if self._name == "procfs" and self._source is not None:
            return self._source
        return self._use("procfs", TaskFiles(self._context.hostfs, self._options.procfs_thread_limit))

    def _use(self, name: str, source: _Source) -> _Source:
        self._name, self._source = name, source
        self._made += 1
        return source


SAMPLER: Final = SamplerSpec(
    name="threads",
    dimension="cpu",
    summary="What the threads of each target did: CPU time, waiting for a CPU, context switches, page faults.",
    source="the kernel's task list by a BPF iterator, or /proc/PID/task/TID/{stat,status,schedstat}",
    families=families.FAMILIES,
    create=ThreadsSampler,
    options=ThreadsOptions,
)
