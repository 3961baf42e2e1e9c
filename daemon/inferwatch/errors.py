"""The errors that the layers agree on; whoever raises one says what was found, what was expected and what to do."""


class InferwatchError(Exception):
    """Base of every error that the agent raises on purpose."""


class NoData(InferwatchError):  # noqa: N818 - it reports an absence, which is not an error of anybody
    """The host, kernel or engine does not have this: an absence, not a failure."""


class SourceError(InferwatchError):
    """Something that should be readable could not be read (permission, I/O, network, time limit).

    Args:
        message: What was tried and what happened.
        reason: The value of the label `reason` of `inferwatch_sampler_failures_total`, one word of a closed set.
    """

    def __init__(self, message: str, *, reason: str = "source") -> None:
        super().__init__(message)
        self.reason = reason


class ParseError(InferwatchError):
    """Something was read but is not of the expected form."""


class ConfigError(InferwatchError):
    """The configuration can't be used; `problems` has one line per mistake.

    Args:
        problems: One complete sentence per mistake, each naming the option.
    """

    def __init__(self, problems: list[str]) -> None:
        super().__init__("\n".join(problems))
        self.problems = problems
