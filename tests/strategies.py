"""Hypothesis strategies: damaged forms of real files."""

from typing import TypeVar

from hypothesis import strategies as st

T = TypeVar("T")

# Bytes that number parsers and line splitters are known to fall over.
NASTY = [b"", b"-", b"-1", b"+1", b"1_0", b"nan", b"inf", b"1e999", b"0x1f", b"9" * 5000, b"\x00", b"\xff\xfe", b"\n\n"]
NASTY += [b"\r", b"\x1c", b"\x85", "\N{ARABIC-INDIC DIGIT FIVE}".encode(), "\N{SUPERSCRIPT TWO}".encode(), b":", b"="]


@st.composite
def mutated(draw: st.DrawFn, original: bytes) -> bytes:
    """Damage a file in one to four places: cut it, drop, repeat or swap a piece, or put something nasty in."""
    data = original
    for _ in range(draw(st.integers(1, 4))):
        start = draw(st.integers(0, len(data)))
        end = draw(st.integers(start, min(len(data), start + 64)))
        change = draw(st.sampled_from(["cut", "drop", "repeat", "replace"]))
        if change == "cut":
            data = data[:start]
        elif change == "drop":
            data = data[:start] + data[end:]
        elif change == "repeat":
            data = data[:end] + data[start:]
        else:
            data = data[:start] + draw(st.sampled_from(NASTY) | st.binary(max_size=16)) + data[end:]
    return data


@st.composite
def mutated_tokens(draw: st.DrawFn, original: bytes) -> bytes:
    """Replace whole words of a file, which reaches deeper than damage at random places."""
    lines = original.split(b"\n")
    for _ in range(draw(st.integers(1, 4))):
        index = draw(st.integers(0, len(lines) - 1))
        words = lines[index].split(b" ")
        words[draw(st.integers(0, len(words) - 1))] = draw(st.sampled_from(NASTY) | st.binary(max_size=12))
        lines[index] = b" ".join(words)
    return b"\n".join(lines)
