"""What children did that their parent has waited for, without what was counted while they lived.

When a process waits for a child, the kernel adds all that the child did to figures of the parent. Most of a child that
was seen alive as part of the target has been counted by then: that is a debt of the parent, and is taken off what
these figures grow by. A parent that goes as well passes on what it still owes. A child that is never waited for
(SIGCHLD ignored, or its parent went first) leaves a debt that hides as much of other children: what is told is then
too little, never too much.
"""

from collections.abc import Sequence
from typing import Final

from inferwatch.samplers._support.thread_counters import FIELDS, SYSTEM, USER, Values

CPU: Final = (USER, SYSTEM)


class Debts:
    """What one process still owes, by field; CPU time as one (in the first mode), since its division is an estimate."""

    __slots__ = ("_owed",)

    def __init__(self) -> None:
        self._owed = [0.0] * len(FIELDS)

    def owed(self) -> Values:
        """Return what is still owed."""
        return self._owed

    def owe(self, *counted: Values) -> None:
        """Note what was counted of a child that has gone."""
        self._owed = [sum(values) for values in zip(self._owed, *map(_owing, counted), strict=True)]

    def forgive(self, *counted: Values) -> None:
        """Take back what was noted of a child that is there again."""
        for values in map(_owing, counted):
            self._owed = [max(owed - value, 0.0) for owed, value in zip(self._owed, values, strict=True)]

    def pay(self, increase: Values) -> Values:
        """Return what is left of an increase."""
        left: list[float | None] = []
        for place, more in enumerate(increase):
            if more is None or place in CPU:
                left.append(more)
                continue
            paid = min(more, self._owed[place])
            self._owed[place] -= paid
            left.append(more - paid)
        self._pay_cpu(increase, left)
        return left

    def _pay_cpu(self, increase: Values, left: list[float | None]) -> None:
        spent: Sequence[float] = [increase[place] or 0.0 for place in CPU]
        total = sum(spent)
        paid = min(total, self._owed[USER])
        self._owed[USER] -= paid
        for place, value in zip(CPU, spent, strict=True):
            left[place] = value * (1 - paid / total) if total else 0.0


def _owing(counted: Values) -> list[float]:
    values = [value or 0.0 for value in counted]
    values[USER], values[SYSTEM] = values[USER] + values[SYSTEM], 0.0
    return values
