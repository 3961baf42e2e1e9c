"""What children did that their parent has waited for, without what was counted while they lived.

When a process waits for a child, the kernel adds all that the child did to figures of the parent. Most of a child that
was seen alive as part of the target has been counted by then: that is a debt of the parent, and is taken off what
these figures grow by. A child that is never waited for (SIGCHLD ignored) leaves a debt that hides as much of other
children: what is told is then too little, never too much.
"""

from collections.abc import Sequence
from typing import Final

from inferwatch.samplers._support.thread_counters import FIELDS, Values

CPU: Final = (FIELDS.index("user_seconds"), FIELDS.index("system_seconds"))


class Debts:
    """What one process still owes, by field; CPU time as one, since its division into modes is an estimate."""

    __slots__ = ("_cpu", "_owed")

    def __init__(self) -> None:
        self._owed = [0.0] * len(FIELDS)
        self._cpu = 0.0

    def owe(self, counted: Values) -> None:
        """Note what was counted of a child that has gone."""
        self._cpu += sum(counted[place] or 0.0 for place in CPU)
        for place, value in enumerate(counted):
            self._owed[place] += value or 0.0

    def forgive(self, counted: Values) -> None:
        """Take back what was noted of a child that is there again."""
        self._cpu = max(self._cpu - sum(counted[place] or 0.0 for place in CPU), 0.0)
        self._owed = [max(owed - (value or 0.0), 0.0) for owed, value in zip(self._owed, counted, strict=True)]

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
        paid = min(total, self._cpu)
        self._cpu -= paid
        for place, value in zip(CPU, spent, strict=True):
            left[place] = value * (1 - paid / total) if total else 0.0
