"""Add up what the threads of one process did, by thread name, from readings of each thread's own counts."""

from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Final

from inferwatch.sources.task_ledger import NOTHING, Counts, added, increase

MAX_NAMES_PER_PROCESS: Final = 128  # as in bpf/tasks.h


@dataclass(slots=True)
class ThreadIncreases:
    """Sums that only grow: a thread that ends leaves behind what it was seen to do.

    Args:
        names: Counts by thread name.
        unnamed: Counts of threads for whose name there was no place.
    """

    names: dict[str, Counts] = field(default_factory=dict)
    unnamed: Counts = NOTHING
    _last: dict[int, tuple[int, Counts] | None] = field(default_factory=dict)

    def forget_others(self, threads: Collection[int]) -> None:
        """Forget the threads that are not among these: they have ended."""
        self._last = {thread: self._last[thread] for thread in threads if thread in self._last}

    def skip(self, thread: int) -> None:
        """Note a thread that lives but is not read."""
        self._last.setdefault(thread, None)

    def take(self, thread: int, start_ticks: int, name: str, counts: Counts) -> bool:
        """Add what a thread did since it was read last; return whether its name had a place.

        A new thread is added with its whole past. One that was only skipped so far is not: its past is in the
        process's total already, in no name.
        """
        base = NOTHING
        if thread in self._last:
            last = self._last[thread]
            if last is None:
                base = counts
            elif last[0] == start_ticks:  # otherwise the thread id was given to a new thread
                base = last[1]
        self._last[thread] = (start_ticks, counts)
        grown = increase(counts, base)
        if name not in self.names and len(self.names) >= MAX_NAMES_PER_PROCESS:
            self.unnamed = added(self.unnamed, grown)
            return False
        self.names[name] = added(self.names.get(name, NOTHING), grown)
        return True

    def total(self) -> Counts:
        """Return the sum over all names and those without a place."""
        total = self.unnamed
        for counts in self.names.values():
            total = added(total, counts)
        return total
