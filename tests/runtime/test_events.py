"""The ring of events."""

from inferwatch.model import Event
from inferwatch.runtime.events import EventRing


def test_reader_gets_each_event_once_in_order() -> None:
    ring = EventRing(10)
    ring.put(Event(1, "restart", "a"))
    ring.put(Event(2, "oom_kill", "b"))

    sequence, events = ring.since()
    ring.put(Event(3, "reload"))
    _, later = ring.since(sequence)

    assert [event.kind for event in events] == ["restart", "oom_kill"]
    assert [event.kind for event in later] == ["reload"]


def test_full_ring_drops_the_oldest_and_still_counts_it() -> None:
    ring = EventRing(3)
    for number in range(10):
        ring.put(Event(number, "stall"))

    assert [event.monotonic_ns for event in ring.since()[1]] == [7, 8, 9]
    assert ring.counts == {"stall": 10}


def test_kinds_without_end_do_not_grow_the_counts() -> None:
    ring = EventRing(3, kind_limit=2)
    for number in range(100):
        ring.put(Event(number, f"kind{number}"))

    assert ring.counts == {"kind0": 1, "kind1": 1, "other": 98}
