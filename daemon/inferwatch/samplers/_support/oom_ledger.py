"""Compare the kernel's counters of OOM kills with the kills that its log told of, and find those that it did not."""

from collections.abc import Collection, Mapping
from typing import Final

HOST: Final = ""


class _Account:
    """How far a counter is ahead of what was seen."""

    __slots__ = ("before", "owed")

    def __init__(self) -> None:
        self.owed = 0
        self.before = 0

    def settle(self, covered: int = 0) -> int:
        """Return the difference that has lasted for two runs (negative when more was seen than counted) and drop it.

        Counters and log are not read at the same instant: what one has and the other has not yet is no difference.

        Args:
            covered: Part of what is owed that another account accounts for.
        """
        open_ = self.owed - covered
        lasting = 0
        if open_ > 0 and self.before > 0:
            lasting = min(open_, self.before)
        elif open_ < 0 and self.before < 0:
            lasting = max(open_, self.before)
        self.owed -= lasting
        self.before = open_ - lasting
        return lasting


class OomLedger:
    """One account for the host and one for each target whose control group is its own.

    Without the log nothing is ever seen, and every kill is found here, one run late.
    """

    def __init__(self) -> None:
        self._host = _Account()
        self._targets: dict[str, _Account] = {}

    def counted(self, host: int, targets: Mapping[str, int]) -> None:
        """Take in by how much the counters rose.

        Args:
            host: /proc/vmstat's counter.
            targets: The control groups' counters by target.
        """
        self._host.owed += host
        for target, count in targets.items():
            self._targets.setdefault(target, _Account()).owed += count

    def seen(self, target: str) -> None:
        """Take in a kill that the log told of; `target` is empty for one that is of no target."""
        self._host.owed -= 1
        if account := self._targets.get(target):
            account.owed -= 1

    def settle(self) -> Mapping[str, int]:
        """Return kills that the log did not tell of, by target; the empty one stands for those of no known target."""
        found: dict[str, int] = {}
        for target, account in self._targets.items():
            count = account.settle()
            if count > 0:
                found[target] = count
                self._host.owed -= count
        covered = sum(max(0, account.owed) for account in self._targets.values())
        if (count := self._host.settle(covered)) > 0:
            found[HOST] = count
        return found

    def keep_only(self, targets: Collection[str]) -> None:
        """Forget the accounts of all other targets, of which nothing is owed."""
        for target in [name for name, account in self._targets.items() if name not in targets and account.owed <= 0]:
            del self._targets[target]
