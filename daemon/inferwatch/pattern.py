"""A user's regular expressions, run by RE2: the time they take grows with the text's length and no faster.

Python's `re` tries one alternative after the other and holds the interpreter lock meanwhile: a command line, which
anybody on the host can write, is enough to stop the agent with `x.*y.*z`.
"""

from typing import Final

TEXT_LIMIT: Final = 4096
PATTERN_LIMIT: Final = 500
MEMORY_LIMIT: Final = 1 << 20  # of one compiled pattern


class Pattern:
    """A compiled pattern.

    Args:
        text: The pattern, in RE2's syntax: `re`'s without look-around and back-references.

    Raises:
        ValueError: When it is malformed, too large, or uses what is not supported.
    """

    def __init__(self, text: str) -> None:
        import re2  # type: ignore[import-untyped, unused-ignore]  # noqa: PLC0415 - 4 MB that only a user's rules need

        if len(text) > PATTERN_LIMIT:
            msg = f"the regular expression has {len(text)} characters, {PATTERN_LIMIT} at most are expected"
            raise ValueError(msg)
        options = re2.Options()
        options.log_errors = False
        options.max_mem = MEMORY_LIMIT
        try:
            self._compiled = re2.compile(text, options=options)
        except re2.error as error:
            reason = error.args[0].decode("utf-8", "replace") if isinstance(error.args[0], bytes) else str(error)
            msg = f"{text!r} is not a regular expression of RE2 (no look-around, no back-references): {reason}"
            raise ValueError(msg) from error

    def search(self, text: str) -> bool:
        """Return whether the pattern matches anywhere in the first `TEXT_LIMIT` characters."""
        encodable = text[:TEXT_LIMIT].encode("utf-8", "replace").decode("utf-8")  # a lone surrogate is not
        return self._compiled.search(encodable) is not None
