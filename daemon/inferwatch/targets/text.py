"""Text that other people's processes choose, made fit for labels, matching and logs."""

from typing import Final

LABEL_LIMIT: Final = 128
REPLACEMENT: Final = "\N{REPLACEMENT CHARACTER}"


def clean(text: str, limit: int = LABEL_LIMIT) -> str:
    r"""Return the text with what can't be shown replaced: a line end by `\n`, the rest by U+FFFD.

    Args:
        text: Any text; what an undecodable byte became is replaced too.
        limit: Most characters taken of it.
    """
    text = text[:limit]
    if text.isprintable():
        return text
    shown = ("\\n" if char == "\n" else char if char.isprintable() else REPLACEMENT for char in text)
    return "".join(shown)[:limit]
