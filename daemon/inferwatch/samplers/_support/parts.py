"""Put a run together from parts that may fail one by one, so that one bad file never hides the others."""

from collections.abc import Callable, Iterable, Sequence

from inferwatch.errors import InferwatchError, NoData, ParseError, SourceError
from inferwatch.model import Sample
from inferwatch.spec import PartialData


class Parts:
    """The samples and the problems of one run."""

    __slots__ = ("_problems", "_samples")

    def __init__(self) -> None:
        self._samples: list[Sample] = []
        self._problems: list[InferwatchError] = []

    def add(self, part: Callable[[], Iterable[Sample]], *, optional: bool = False) -> None:
        """Run one part and keep its samples, or what is wrong with it.

        Args:
            part: Reads, parses and returns samples.
            optional: Whether its absence is so usual that it is not worth a word (it is still a problem when the
                file is there but can't be read or parsed).
        """
        try:
            self._samples += list(part())
        except NoData as error:
            if not optional:
                self._problems.append(error)
        except (ParseError, SourceError) as error:
            self._problems.append(error)

    def report(self, problem: InferwatchError) -> None:
        """Keep a problem that cost no part."""
        self._problems.append(problem)

    def result(self) -> Sequence[Sample]:
        """Return the samples of a run without problems.

        Raises:
            NoData: When nothing could be had and all of it is absent.
            ParseError: When nothing could be had and this is the first problem that is not an absence.
            SourceError: The same.
            PartialData: When some of it could be had.
        """
        if not self._problems:
            return self._samples
        if not self._samples:
            raise next((problem for problem in self._problems if not isinstance(problem, NoData)), self._problems[0])
        sentences: dict[str, list[str]] = {}
        for problem in self._problems:
            sentences.setdefault(_reason(problem), []).append(str(problem))
        raise PartialData(self._samples, {reason: "; ".join(texts) for reason, texts in sentences.items()})


def _reason(problem: InferwatchError) -> str:
    """Return the value of the label `reason`."""
    if isinstance(problem, SourceError):
        return problem.reason
    return "no_data" if isinstance(problem, NoData) else "parse"
