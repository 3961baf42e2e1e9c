"""Sample OOM kills with the target, process and control group they hit, from the kernel's log and its counters."""

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Final

from pydantic import Field

from inferwatch.config import SamplerOptions
from inferwatch.errors import NoData, SourceError
from inferwatch.model import Event, Family, Kind, Sample
from inferwatch.samplers._support.oom_counters import OomCounters
from inferwatch.samplers._support.oom_counts import KILLS, TARGET_KILLS, OomCounts
from inferwatch.samplers._support.oom_ledger import HOST, OomLedger
from inferwatch.samplers._support.oom_owners import MatchedBy, OomOwners, Owner
from inferwatch.samplers._support.troubles import Troubles
from inferwatch.sources.hostfs import read_bytes
from inferwatch.sources.kmsg import KmsgReader, Open, open_kmsg
from inferwatch.sources.oom import OomKill, OomLog
from inferwatch.sources.procfs.fields import signed
from inferwatch.spec import Context, SamplerSpec
from inferwatch.targets.model import ProcessId, Target

INSTEAD: Final = "OOM kills are counted from /proc/vmstat and cgroups instead, without the process's name"

SCORES_NS: Final = 15_000_000_000

LOST: Final = Family(
    "inferwatch_kernel_log_records_lost_total",
    "Records of the kernel's log that were overwritten before the agent could read them, from /dev/kmsg.",
    Kind.COUNTER,
)


class OomOptions(SamplerOptions):
    """Options of `[samplers.oom]`."""

    keep_seconds: float = Field(
        default=600.0,
        ge=0,
        le=86_400,
        description="How long the count of a target that is gone is shown after its last OOM kill.",
    )


class OomSampler:
    """Follows /dev/kmsg and compares it with the counters, so that each kill counts once, whoever tells it."""

    def __init__(self, context: Context, open_log: Open = open_kmsg) -> None:
        self._context = context
        self._open = open_log
        self._reader: KmsgReader | None = None
        self._log = OomLog()
        self._owners = OomOwners()
        self._ledger = OomLedger()
        self._counters = OomCounters(context.hostfs)
        options: OomOptions = context.options
        self._counts = OomCounts(options.keep_seconds)
        self._scores: dict[ProcessId, int] = {}
        self._scores_ns = 0
        self._lost = 0

    async def sample(self) -> Sequence[Sample]:
        """Read once."""
        return await self._context.run_blocking(self._read)

    async def close(self) -> None:
        """Close the log."""
        self._close_log()

    def _read(self) -> Sequence[Sample]:
        troubles = Troubles()
        targets = self._context.targets.current().targets
        self._remember(targets, troubles)
        counted = self._counters.read(targets, troubles)
        kills = self._kills(troubles)
        if counted.host is None:
            if self._reader is None:
                raise NoData("this kernel does not count OOM kills (oom_kill in /proc/vmstat, since 4.13)")
            self._count_all(kills)
        else:
            self._ledger.counted(counted.host, counted.targets)
            for owner in self._count_all(kills):
                self._ledger.seen(owner)
            self._count_untold(self._ledger.settle())
        names = {target.name for target in targets}
        self._ledger.keep_only(names | counted.targets.keys())
        samples = list(self._counts.samples(names, self._context.clock.monotonic_ns()))
        if self._reader is not None:
            samples.append(LOST(self._lost))
        return troubles.result(samples)

    def _remember(self, targets: Sequence[Target], troubles: Troubles) -> None:
        now = self._context.clock.monotonic_ns()
        self._owners.forget_old(now)
        due = now - self._scores_ns >= SCORES_NS
        old, self._scores = self._scores, {}
        if due:
            self._scores_ns = now
        for target in targets:
            for process in target.processes:
                score = old.get(process.id)
                if due or score is None:
                    path = self._context.hostfs.proc(str(process.id.pid), "oom_score")
                    score = troubles.attempt(partial(_read_score, path))
                if score is not None:
                    self._scores[process.id] = score
            self._owners.remember(target, self._scores, now)

    def _kills(self, troubles: Troubles) -> Sequence[OomKill]:
        """Return the kills that the log tells of since the last run; without a log, none."""
        try:
            if self._reader is None:
                self._reader = self._open(self._context.hostfs.root("dev", "kmsg"))
            new = self._reader.read()
        except NoData as error:
            troubles.note_reason("no_data", f"{error}; {INSTEAD}")
            return ()
        except SourceError as error:
            self._close_log()
            troubles.note_reason(error.reason, f"{error}; {INSTEAD}")
            return ()
        self._lost += new.lost
        lines = (record.text for record in new.records if record.facility == 0)  # programs can write the others
        return [kill for line in lines if (kill := self._log.feed(line)) is not None]

    def _count_all(self, kills: Sequence[OomKill]) -> Sequence[str]:
        """Count and publish kills, and return the target of each."""
        owners = []
        for kill in kills:
            owner = self._owners.find(kill)
            name = owner.target if owner else HOST
            self._counts.add(kill.constraint, 1)
            if owner:
                self._counts.add_to_target(name, owner.matched_by, 1, self._context.clock.monotonic_ns())
            self._emit(name, _attributes(kill, owner))
            owners.append(name)
        return owners

    def _count_untold(self, found: Mapping[str, int]) -> None:
        """Count and publish kills that only counters tell of."""
        for target, kills in found.items():
            facts = {"source": "vmstat", "constraint": "unknown"}
            self._counts.add("unknown", kills)
            if target:
                facts |= {"source": "cgroup", "matched_by": str(MatchedBy.CGROUP)}
                self._counts.add_to_target(target, MatchedBy.CGROUP, kills, self._context.clock.monotonic_ns())
            for _ in range(kills):
                self._emit(target, facts)

    def _emit(self, target: str, attributes: Mapping[str, str]) -> None:
        self._context.emit(Event(self._context.clock.monotonic_ns(), "oom_kill", target, attributes))

    def _close_log(self) -> None:
        if self._reader is not None:
            self._reader.close()
            self._reader = None


def _read_score(path: Path) -> int:
    return signed(read_bytes(path).strip(), str(path))


def _attributes(kill: OomKill, owner: Owner | None) -> Mapping[str, str]:
    """Return an event's facts as text; what is not known is left out."""
    known = {
        "source": "kmsg",
        "process": kill.comm,
        "pid": kill.pid,
        "matched_by": owner.matched_by if owner else None,
        "role": (owner.role or None) if owner else None,
        "constraint": kill.constraint,
        "cgroup": kill.cgroup,
        "limit_cgroup": kill.limit_cgroup,
        "oom_score": owner.score if owner else None,  # as last seen by the agent; newer kernels do not log it
        **kill.facts,
    }
    return {name: str(fact) for name, fact in known.items() if fact is not None}


SAMPLER: Final = SamplerSpec(
    name="oom",
    dimension="memory",
    summary="Which processes the kernel killed for want of memory, and whose limit was reached.",
    source="/dev/kmsg, oom_kill in /proc/vmstat, memory.events (v2) or memory.oom_control (v1)",
    families=(TARGET_KILLS, KILLS, LOST),
    create=OomSampler,
    options=OomOptions,
)
