"""Make records of sums over threads from what one reading found, such that nothing published ever falls.

Nine whole numbers are handed around as `Counts`, times in nanoseconds, so that nothing is lost to rounding.
"""

import operator
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final

from inferwatch.sources.task_totals import NameTotals, ProcessTotals, TaskSums, ThreadStates

# Places in `Counts`; the order is that of enum task_field in bpf/tasks.h.
RUNTIME, USER, SYSTEM, WAIT, TIMESLICES, VOLUNTARY, INVOLUNTARY, MINOR, MAJOR = range(9)
COUNTS: Final = 9
NANOSECONDS: Final = 1e9

Counts = Sequence[int]
NOTHING: Final[Counts] = (0,) * COUNTS


def increase(now: Counts, last: Counts) -> list[int]:
    """Return by how much each count has grown."""
    return [max(new - old, 0) for new, old in zip(now, last, strict=True)]


def added(one: Counts, other: Counts) -> list[int]:
    """Return the sums, count by count."""
    return list(map(operator.add, one, other))


def reaped_sums(
    user_ns: int, system_ns: int, faults: tuple[int, int], switches: tuple[int, int] | tuple[None, None]
) -> TaskSums:
    """Return what children did that were waited for; the kernel keeps neither wait nor timeslices of them.

    Args:
        user_ns: CPU time in user mode.
        system_ns: CPU time in the kernel.
        faults: Minor and major page faults.
        switches: Voluntary and involuntary context switches, None where the source does not tell.
    """
    return TaskSums(
        user_seconds=user_ns / NANOSECONDS,
        system_seconds=system_ns / NANOSECONDS,
        run_queue_wait_seconds=None,
        timeslices=None,
        voluntary_switches=switches[0],
        involuntary_switches=switches[1],
        minor_faults=faults[0],
        major_faults=faults[1],
    )


@dataclass(slots=True)
class CpuModes:
    """Divides CPU time into user and system such that neither falls: cputime_adjust() in kernel/sched/cputime.c.

    With tick accounting (CONFIG_TICK_CPU_ACCOUNTING, the usual one) utime and stime are samples; the precise sum is
    divided in their proportion. When the proportion changes, one of the parts could fall; it is kept, and the other
    gets the rest.
    """

    user: int = 0
    system: int = 0
    _counts: Counts = ()
    _record: TaskSums | None = None

    def divide(self, runtime: int, utime: int, stime: int) -> tuple[int, int]:
        """Return user and system time in nanoseconds."""
        if self.user + self.system < runtime:
            system = runtime * stime // (utime + stime) if stime else 0
            system = min(max(system, self.system), runtime - self.user)
            self.user, self.system = runtime - system, system
        return self.user, self.system

    def sums(self, counts: Counts, *, has_wait: bool) -> TaskSums:
        """Return the record of some counts; the same one as long as nothing happens, which is so for most threads."""
        if self._record and self._counts == counts and (self._record.timeslices is not None) == has_wait:
            return self._record
        self._counts, self._record = counts, self._make(counts, has_wait=has_wait)
        return self._record

    def _make(self, counts: Counts, *, has_wait: bool) -> TaskSums:
        user, system = self.divide(counts[RUNTIME], counts[USER], counts[SYSTEM])
        return TaskSums(
            user_seconds=user / NANOSECONDS,
            system_seconds=system / NANOSECONDS,
            run_queue_wait_seconds=counts[WAIT] / NANOSECONDS if has_wait else None,
            timeslices=counts[TIMESLICES] if has_wait else None,
            voluntary_switches=counts[VOLUNTARY],
            involuntary_switches=counts[INVOLUNTARY],
            minor_faults=counts[MINOR],
            major_faults=counts[MAJOR],
        )


@dataclass(slots=True)
class ProcessLedger:
    """What was published of one process, so that the next reading does not fall below it.

    A reading is not atomic: a thread that ends meanwhile can be missing in it, never twice in it. The names' sums never
    fall by themselves. What is in no name is kept at its highest, and the total is the sum of both; since each of them
    is at most what really happened, so is the total.
    """

    _unattributed: Counts = NOTHING
    _retired: Counts = NOTHING  # of names that gave up their place: in the total, in no name, and not unattributed
    _modes: dict[str | None, CpuModes] = field(default_factory=dict)
    _rest_modes: CpuModes = field(default_factory=CpuModes)

    def publish(
        self,
        start_ticks: int,
        total: Counts,
        names: Iterable[tuple[str, int, Counts]],
        states: ThreadStates,
        *,
        has_wait: bool,
        reaped: TaskSums | None = None,
    ) -> ProcessTotals:
        """Return the process's record.

        Args:
            start_ticks: See `ProcessTotals`.
            total: As read now: living threads and the dead ones' share.
            names: Name, living threads and counts, which never fall.
            states: Threads by state now.
            has_wait: Whether the kernel counts run-queue wait and timeslices.
            reaped: See `ProcessTotals`.
        """
        merged: dict[str, tuple[int, Counts]] = {}
        for name, threads, counts in names:
            before = merged.get(name)
            merged[name] = (before[0] + threads, added(before[1], counts)) if before else (threads, counts)
        named: Counts = self._retired
        for _, counts in merged.values():
            named = added(named, counts)
        rest = self._unattributed = list(map(max, self._unattributed, map(operator.sub, total, named)))
        return ProcessTotals(
            start_ticks=start_ticks,
            total=self._of(None).sums(added(named, rest), has_wait=has_wait),
            by_name={
                name: NameTotals(threads, self._of(name).sums(counts, has_wait=has_wait))
                for name, (threads, counts) in merged.items()
            },
            unattributed=self._rest_modes.sums(rest, has_wait=has_wait),
            states=states,
            reaped=reaped,
        )

    def retire(self, name: str, counts: Counts) -> None:
        """Take away a name whose threads have all ended; when it comes again its counts begin at zero."""
        self._retired = added(self._retired, counts)
        self._modes.pop(name, None)

    def _of(self, name: str | None) -> CpuModes:
        modes = self._modes.get(name)
        if modes is None:
            modes = self._modes[name] = CpuModes()
        return modes
