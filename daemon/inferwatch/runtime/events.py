"""The one bounded ring of events; whoever needs them (verdicts, status page, annotations) reads from here."""

from collections import Counter, deque
from collections.abc import Mapping, Sequence

from inferwatch.model import Event


class EventRing:
    """The newest events of the agent, and how many there were of each kind.

    Args:
        limit: Number of events kept.
        kind_limit: Number of kinds counted apart; a further one counts as `other`.
    """

    def __init__(self, limit: int, kind_limit: int = 50) -> None:
        self._events: deque[tuple[int, Event]] = deque(maxlen=limit)
        self._kind_limit = kind_limit
        self._counts: Counter[str] = Counter()
        self._sequence = 0

    def put(self, event: Event) -> None:
        """Add an event; the oldest leaves when the ring is full."""
        self._sequence += 1
        self._events.append((self._sequence, event))
        known = event.kind in self._counts or len(self._counts) < self._kind_limit
        self._counts[event.kind if known else "other"] += 1

    def since(self, sequence: int = 0) -> tuple[int, Sequence[Event]]:
        """Return the events after `sequence`, oldest first, and the sequence number to ask with next time.

        A reader that came too late misses what has left the ring; it can tell by the counts.
        """
        return self._sequence, tuple(event for number, event in self._events if number > sequence)

    @property
    def counts(self) -> Mapping[str, int]:
        """Return the number of events since the start, by kind."""
        return self._counts
