"""Keep totals monotonic over counters that come and go, step back or wrap."""

from collections.abc import Callable, Mapping, Sequence
from typing import Final

WRAP: Final = 1 << 32
# A fall by less than this is jitter. /proc/stat's idle and iowait are computed at the read (get_cpu_idle_time_us()) and
# do step back a little; node_exporter chose 3 s for the same purpose (its pull request 2067).
JITTER_SECONDS: Final = 3.0


class GroupTotals:
    """Totals per group of the members' counters, for members that come and go (CPUs that are hotplugged).

    The first sight of a member adds its whole value, so that the totals begin as the kernel's own sums. From then on
    its increases are added. A member that is missing adds nothing, and what it counted stays in. A small fall adds
    nothing until the counter has made up for it; a larger one, or any fall of a member that had been missing, is a new
    beginning: it adds nothing, later increases count from there.

    Args:
        jitter: Largest fall that is not a new beginning.
    """

    __slots__ = ("_jitter", "_last", "_present", "_totals")

    def __init__(self, jitter: float = JITTER_SECONDS) -> None:
        self._jitter = jitter
        self._last: dict[int, list[float]] = {}
        self._present: frozenset[int] = frozenset()
        self._totals: dict[str, list[float]] = {}

    def update(self, readings: Mapping[int, Sequence[float]], group: Callable[[int], str]) -> None:
        """Take in one reading of all present members; every one has the same number of counters in the same order."""
        for member, values in readings.items():
            totals = self._totals.setdefault(group(member), [0.0] * len(values))
            last = self._last.get(member)
            if last is None:
                self._last[member] = list(values)
                for index, value in enumerate(values):
                    totals[index] += value
                continue
            jitter = self._jitter if member in self._present else 0.0
            for index, value in enumerate(values):
                increase = value - last[index]
                if increase > 0:
                    totals[index] += increase
                if increase > 0 or -increase > jitter:
                    last[index] = value
        self._present = frozenset(readings)

    @property
    def totals(self) -> Mapping[str, Sequence[float]]:
        """Return the totals by group, also of groups that have no member now."""
        return self._totals


class WrappingTotals:
    """Totals by name of sums whose members are unsigned 32-bit numbers.

    When one member wraps, the sum falls by 2**32. Published as it is, a fall from 10 to 9 times 2**32 would be read as
    a counter that began anew and has already counted 9 times 2**32.
    """

    __slots__ = ("_last", "_totals")

    def __init__(self) -> None:
        self._last: dict[str, int] = {}
        self._totals: dict[str, int] = {}

    def update(self, sums: Mapping[str, int]) -> Mapping[str, int]:
        """Take in one reading and return the totals; the first sight of a name adds its whole value."""
        for name, value in sums.items():
            if name not in self._last:
                self._totals[name] = value
            elif (increase := (value - self._last[name]) % WRAP) < WRAP // 2:  # larger: it fell for another reason
                self._totals[name] += increase
            self._last[name] = value
        return self._totals
