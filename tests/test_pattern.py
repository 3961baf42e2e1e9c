"""A user's regular expressions."""

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inferwatch.pattern import PATTERN_LIMIT, TEXT_LIMIT, Pattern


@pytest.mark.parametrize(
    ("source", "text", "expected"),
    [("a.c", "xabcx", True), ("^serve$", "server", False), (r"python .*serve\.py", "python -u /x/serve.py -p 1", True)],
)
def test_pattern_is_found_anywhere_in_the_text(source: str, text: str, expected: bool) -> None:  # noqa: FBT001 - a table
    assert Pattern(source).search(text) is expected


@pytest.mark.parametrize("source", ["(a+)+b", "(a|a)*b", "a.*a.*a.*a.*b", "x.*y.*z"])
def test_pattern_that_takes_re_for_ever_is_done_at_once(source: str) -> None:
    began = time.process_time()

    assert not Pattern(source).search("a" * TEXT_LIMIT)
    assert time.process_time() - began < 1  # with re: longer than anybody waits


@pytest.mark.parametrize(
    ("source", "complaint"),
    [("(", "missing"), ("(?=a)", "no look-around"), ("a" * (1 + PATTERN_LIMIT), "most"), ("a{100000}", "repetition")],
)
def test_pattern_that_can_not_be_used_is_a_clear_error(source: str, complaint: str) -> None:
    with pytest.raises(ValueError, match=complaint):
        Pattern(source)


@given(st.text(), st.text())
def test_no_text_and_no_pattern_raises_anything_else(source: str, text: str) -> None:
    try:
        pattern = Pattern(source)
    except ValueError:
        return
    pattern.search(text)


def test_lone_surrogate_in_the_text_is_no_error() -> None:
    assert Pattern("b").search("\ud800b")
