import os

import pytest

from inferwatch.errors import ParseError
from inferwatch.sources.procfs.loadavg import LoadAverage, parse_loadavg
from support import LIVE


def test_first_three_fields_are_the_averages() -> None:
    assert parse_loadavg(b"0.21 0.37 12.50 2/512 4242\n") == LoadAverage(0.21, 0.37, 12.5)


@pytest.mark.parametrize(
    "data", [b"0.21 0.37\n", b"nan 0.1 0.1 1/1 1\n", b"1e3 0.1 0.1\n", b"0,21 0.37 0.1\n", b"1 2 3\n"]
)
def test_anything_but_three_decimals_is_a_parse_error(data: bytes) -> None:
    with pytest.raises(ParseError, match=r"^/proc/loadavg: .*expected"):
        parse_loadavg(data)


def test_live_averages_agree_with_the_system_call() -> None:
    before = os.getloadavg()
    load = parse_loadavg(LIVE.proc("loadavg").read_bytes())
    after = os.getloadavg()

    assert (load.load1, load.load5, load.load15) in (pytest.approx(before, abs=0.011), pytest.approx(after, abs=0.011))
