"""Count OOM kills by target and by what was short, and show a target's count for a while after it is gone."""

from collections import Counter
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import Final

from inferwatch.model import Family, Kind, Sample

MOST_TARGETS: Final = 1000  # of which the count is kept after they are gone

TARGET_KILLS: Final = Family(
    "inferwatch_target_oom_kills_total",
    "Processes of a target that the kernel killed for want of memory since the agent started, from /dev/kmsg and the"
    " kernel's counters.",
    Kind.COUNTER,
    "",
    ("target",),
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
    kills: int = 0
    last_ns: int = 0


class OomCounts:
    """The counts since the agent started; a target that comes back goes on where it was.

    Args:
        keep_seconds: How long the count of a target that is gone is shown after its last kill.
    """

    def __init__(self, keep_seconds: float) -> None:
        self._keep_ns = round(keep_seconds * 1e9)
        self._targets: dict[str, _Count] = {}
        self._constraints: Counter[str] = Counter({"cgroup": 0, "host": 0})

    def add(self, target: str, constraint: str, kills: int, now_ns: int) -> None:
        """Take in kills; `target` is empty for those of no target."""
        self._constraints[constraint] += kills
        if not target:
            return
        count = self._targets.setdefault(target, _Count())
        count.kills += kills
        count.last_ns = now_ns
        if len(self._targets) > MOST_TARGETS:
            del self._targets[min(self._targets, key=lambda name: self._targets[name].last_ns)]

    def samples(self, present: Collection[str], now_ns: int) -> Iterator[Sample]:
        """Make the samples; targets that are there have one from the beginning, with 0."""
        gone = {name for name, count in self._targets.items() if now_ns - count.last_ns <= self._keep_ns}
        for name in sorted(gone.union(present)):
            yield TARGET_KILLS(self._targets[name].kills if name in self._targets else 0, name)
        yield from (KILLS(kills, constraint) for constraint, kills in sorted(self._constraints.items()))
