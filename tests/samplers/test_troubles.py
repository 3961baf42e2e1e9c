from functools import partial

import pytest

from inferwatch.errors import NoData, ParseError, SourceError
from inferwatch.samplers._support.troubles import Troubles
from inferwatch.spec import PartialData


def fail(error: Exception) -> int:
    raise error


def test_absence_is_no_trouble() -> None:
    troubles = Troubles()

    assert troubles.attempt(lambda: fail(NoData("gone"))) is None
    assert troubles.result([]) == []


def test_many_denied_files_are_one_sentence() -> None:
    troubles = Troubles()
    for pid in range(3):
        troubles.attempt(partial(fail, SourceError(f"/proc/{pid}/fd: denied", reason="permission_denied")))
    troubles.attempt(lambda: fail(ParseError("odd")))

    with pytest.raises(PartialData) as caught:
        troubles.result([])
    assert caught.value.problems == {"permission_denied": "/proc/0/fd: denied (and 2 more)", "parse": "odd"}
