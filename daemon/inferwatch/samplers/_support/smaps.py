"""Read smaps_rollup of many processes, each at a slow interval and within a budget of time."""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

from inferwatch.errors import InferwatchError, NoData, ParseError, SourceError
from inferwatch.samplers._support.troubles import Troubles
from inferwatch.sources.hostfs import HostFs, read_bytes
from inferwatch.sources.procfs.smaps import SmapsRollup, parse_smaps_rollup
from inferwatch.spec import Clock
from inferwatch.targets.model import ProcessId


@dataclass(frozen=True, slots=True)
class _Entry:
    read_ns: int
    rollup: SmapsRollup | None
    problem: InferwatchError | None


class SmapsCache:
    """Keeps the newest rollup of each process.

    Args:
        hostfs: The host's file systems.
        clock: Time.
        interval_seconds: How long a rollup is good.
        budget_seconds: After how much time no further process is read in one run; the rest waits for the next run.
    """

    def __init__(self, hostfs: HostFs, clock: Clock, interval_seconds: float, budget_seconds: float) -> None:
        self._hostfs = hostfs
        self._clock = clock
        self._interval_ns = round(interval_seconds * 1e9)
        self._budget_ns = round(budget_seconds * 1e9)
        self._entries: dict[ProcessId, _Entry] = {}

    def refresh(self, processes: Collection[ProcessId], troubles: Troubles) -> None:
        """Read what is due, the oldest first, forget all other processes and tell the problems of those that stay."""
        begin = self._clock.monotonic_ns()
        kept = {process: self._entries[process] for process in processes if process in self._entries}
        self._entries = kept
        due = [process for process in processes if self._is_due(process, begin)]
        due.sort(key=lambda process: kept[process].read_ns if process in kept else 0)
        for process in due:
            if self._clock.monotonic_ns() - begin > self._budget_ns:
                break
            self._entries[process] = self._read(process, begin)
        for entry in self._entries.values():
            if entry.problem is not None:
                troubles.note(entry.problem)

    def rollups(self, processes: Iterable[ProcessId]) -> Sequence[SmapsRollup] | None:
        """Return the newest rollups of those that are alive; None when one is not known: a sum would be wrong."""
        entries = [self._entries.get(process) for process in processes]
        if any(entry is None or entry.problem is not None for entry in entries):
            return None
        return [entry.rollup for entry in entries if entry is not None and entry.rollup is not None]

    def _is_due(self, process: ProcessId, now_ns: int) -> bool:
        entry = self._entries.get(process)
        return entry is None or now_ns - entry.read_ns >= self._interval_ns

    def _read(self, process: ProcessId, now_ns: int) -> _Entry:
        try:
            data = read_bytes(self._hostfs.proc(str(process.pid), "smaps_rollup"))
            # opened, but its memory went while it was read: an empty file
            return _Entry(now_ns, parse_smaps_rollup(data) if data else None, None)
        except NoData:
            return _Entry(now_ns, None, None)
        except (ParseError, SourceError) as error:
            return _Entry(now_ns, None, error)
