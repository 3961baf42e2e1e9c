"""Keep what went wrong while many processes are read, so that one denied file is told once and hides nothing."""

from collections.abc import Callable, Sequence
from typing import TypeVar

from inferwatch.errors import InferwatchError, NoData, ParseError, SourceError
from inferwatch.model import Sample
from inferwatch.spec import PartialData

T = TypeVar("T")


class Troubles:
    """The problems of one run: per reason its first sentence and how many there were."""

    __slots__ = ("_counts", "_first")

    def __init__(self) -> None:
        self._first: dict[str, str] = {}
        self._counts: dict[str, int] = {}

    def attempt(self, read: Callable[[], T]) -> T | None:
        """Return what a function reads; None when it is absent (a process that ended meanwhile is no problem)."""
        try:
            return read()
        except NoData:
            return None
        except (ParseError, SourceError) as error:
            self.note(error)
            return None

    def note(self, problem: InferwatchError) -> None:
        """Keep a problem."""
        self.note_reason(problem.reason if isinstance(problem, SourceError) else "parse", str(problem))

    def note_reason(self, reason: str, sentence: str) -> None:
        """Keep a problem that is told as a reason and a sentence."""
        self._first.setdefault(reason, sentence)
        self._counts[reason] = self._counts.get(reason, 0) + 1

    def result(self, samples: Sequence[Sample]) -> Sequence[Sample]:
        """Return the samples of a run without problems.

        Raises:
            PartialData: When there were problems.
        """
        if not self._first:
            return samples
        raise PartialData(samples, {reason: self._sentence(reason) for reason in self._first})

    def _sentence(self, reason: str) -> str:
        more = self._counts[reason] - 1
        return f"{self._first[reason]} (and {more} more)" if more else self._first[reason]
