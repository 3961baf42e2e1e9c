"""Add up what the threads of one process did, by thread name, from readings of each thread's own counts."""

from collections.abc import Collection, Container
from dataclasses import dataclass, field
from typing import Final

from inferwatch.sources.task_ledger import NOTHING, Counts, added, increase

MAX_NAMES_PER_PROCESS: Final = 128  # as in bpf/tasks.h
CROWDED_NAMES: Final = 96  # from here on a name whose threads have all ended gives up its place


@dataclass(slots=True)
class ThreadIncreases:
    """Sums that only grow: a thread that ends leaves behind what it was seen to do.

    Args:
        names: Counts by thread name.
        unnamed: Counts of threads for whose name there was no place.
    """

    names: dict[str, Counts] = field(default_factory=dict)
    unnamed: Counts = NOTHING
    _retired: Counts = NOTHING
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

    def retire(self, living: Container[str]) -> list[tuple[str, Counts]]:
        """Take away the names that have no living thread, when places run short; return what they had."""
        if len(self.names) < CROWDED_NAMES:
            return []
        gone = [(name, counts) for name, counts in self.names.items() if name not in living]
        for name, counts in gone:
            del self.names[name]
            self._retired = added(self._retired, counts)
        return gone

    def total(self) -> Counts:
        """Return the sum over all names, those that are retired and those without a place."""
        total = added(self.unnamed, self._retired)
        for counts in self.names.values():
            total = added(total, counts)
        return total
