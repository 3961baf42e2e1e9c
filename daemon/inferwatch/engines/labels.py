"""A cap on the values of open labels, so that no engine can fill the store with models or reasons."""

from typing import Final

from inferwatch.engines.rules import OTHER

MAX_LENGTH: Final = 256


class LabelLimit:
    """Which label values are admitted; the rest is `other`.

    Args:
        limit: Most different values of one label.
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._admitted: dict[str, set[str]] = {}
        self._overflowed: set[str] = set()

    def admit(self, label: str, value: str) -> str:
        """Return the value, cut to a sane length, or `other` when the label has enough values already."""
        value = value[:MAX_LENGTH]
        admitted = self._admitted.setdefault(label, set())
        if value in admitted:
            return value
        if len(admitted) >= self._limit:
            self._overflowed.add(label)
            return OTHER
        admitted.add(value)
        return value

    def has_room(self, label: str, in_use: int) -> bool:
        """Return whether values of a label were refused although so few are in use: the others are gone by now."""
        return label in self._overflowed and in_use < self._limit

    def clear(self) -> None:
        """Forget all values."""
        self._admitted.clear()
        self._overflowed.clear()
