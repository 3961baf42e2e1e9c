"""A cap on the values of open labels, so that no engine can fill the store with models or reasons."""

from collections.abc import Collection
from typing import Final

from inferwatch.engines.rules import OTHER

MAX_LENGTH: Final = 256
CALM_PAGES: Final = 60  # five minutes of the usual interval


class LabelLimit:
    """Which label values are admitted; the rest is `other`.

    Once a label had more values than fit, no new one is admitted: those that came first stay, whether or not they are
    on the page, and every other is `other`. That ends when `CALM_PAGES` pages in a row would have fitted; values that
    are on the last of them are kept, the others make room. Otherwise a page whose values change at each scrape would be
    let in and folded in turns, and make new series for ever; so it makes `limit` of them in `CALM_PAGES` scrapes.

    Args:
        limit: Most different values of one label.
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._admitted: dict[str, set[str]] = {}
        self._calm_pages: dict[str, int] = {}  # of the labels that are closed

    @property
    def is_closed(self) -> bool:
        """Return whether some label takes no new values."""
        return bool(self._calm_pages)

    def admit(self, label: str, value: str) -> str:
        """Return the value, or `other` when the label has enough values already."""
        admitted = self._admitted.setdefault(label, set())
        if value in admitted:
            return value
        if label in self._calm_pages or len(admitted) >= self._limit:
            self._calm_pages.setdefault(label, 0)
            return OTHER
        admitted.add(value)
        return value

    def turn_page(self, values: Collection[tuple[str, str]]) -> bool:
        """Look at all labels and values of a page; return whether a label takes new values from now on."""
        opened = False
        for label in tuple(self._calm_pages):
            present = {value for name, value in values if name == label}
            self._calm_pages[label] = self._calm_pages[label] + 1 if len(present) <= self._limit else 0
            if self._calm_pages[label] >= CALM_PAGES:
                del self._calm_pages[label]
                self._admitted[label] &= present
                opened = True
        return opened


def shortened(value: str) -> str:
    """Return a label value cut to a sane length."""
    return value[:MAX_LENGTH]
