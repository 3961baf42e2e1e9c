"""Count OOM kills by target and by what was short, and show a target's count for a while after it is gone."""

from collections import Counter
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from typing import Final

from inferwatch.model import Family, Kind, Sample
from inferwatch.samplers._support.oom_owners import MatchedBy

MOST_TARGETS: Final = 1000  # of which the count is kept after they are gone

TARGET_KILLS: Final = Family(
    "inferwatch_target_oom_kills_total",
    "Processes that the kernel killed for want of memory since the agent started: of the target (matched_by process),"
    " or in the target's cgroup and not known as its own (cgroup), from /dev/kmsg and the kernel's counters.",
    Kind.COUNTER,
    "",
    ("target", "matched_by"),
)
KILLS: Final = Family(
    "inferwatch_oom_kills_by_constraint_total",
    "Processes that the kernel killed for want of memory since the agent started, by what was short (host, cgroup,"
    " cpuset, memory_policy, unknown), from /dev/kmsg and the kernel's counters.",
    Kind.COUNTER,
    "",
    ("constraint",),
)


@dataclass(slots=True)
class _Count:
    kills: Counter[str] = field(default_factory=Counter)
    last_ns: int = 0


NONE: Final = _Count()


class OomCounts:
    """The counts since the agent started; a target that comes back goes on where it was.

    Args:
        keep_seconds: How long the count of a target that is gone is shown after its last kill.
    """

    def __init__(self, keep_seconds: float) -> None:
        self._keep_ns = round(keep_seconds * 1e9)
        self._targets: dict[str, _Count] = {}
        self._constraints: Counter[str] = Counter({"cgroup": 0, "host": 0})

    def add(self, constraint: str, kills: int) -> None:
        """Take in kills by what was short."""
        self._constraints[constraint] += kills

    def add_to_target(self, target: str, matched_by: MatchedBy, kills: int, now_ns: int) -> None:
        """Take in a target's kills."""
        count = self._targets.setdefault(target, _Count())
        count.kills[matched_by] += kills
        count.last_ns = now_ns

    def samples(self, present: Collection[str], now_ns: int) -> Iterator[Sample]:
        """Make the samples; targets that are there have theirs from the beginning, with 0."""
        self._drop_oldest(present)
        lately = {name for name, count in self._targets.items() if now_ns - count.last_ns <= self._keep_ns}
        for name in sorted(lately.union(present)):
            kills = self._targets.get(name, NONE).kills
            yield from (TARGET_KILLS(kills[matched_by], name, matched_by) for matched_by in MatchedBy)
        yield from (KILLS(kills, constraint) for constraint, kills in sorted(self._constraints.items()))

    def _drop_oldest(self, present: Collection[str]) -> None:
        """Keep the number of targets that are gone within bounds; the count of one that is there must not fall."""
        over = len(self._targets) - MOST_TARGETS
        if over > 0:
            gone = sorted(self._targets.keys() - set(present), key=lambda name: self._targets[name].last_ns)
            for name in gone[:over]:
                del self._targets[name]
