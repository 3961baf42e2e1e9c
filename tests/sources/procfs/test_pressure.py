import pytest

from inferwatch.errors import ParseError
from inferwatch.sources.procfs.pressure import Pressure, parse_pressure

SOME = b"some avg10=1.66 avg60=0.74 avg300=0.45 total=7232303\n"
FULL = b"full avg10=0.00 avg60=0.05 avg300=0.12 total=2325855\n"


def test_totals_are_microseconds() -> None:
    assert parse_pressure(SOME + FULL, "io") == Pressure(7.232303, 2.325855)


def test_cpu_without_full_has_none() -> None:
    assert parse_pressure(SOME, "cpu") == Pressure(7.232303, None)


def test_irq_has_only_full() -> None:
    assert parse_pressure(FULL, "irq") == Pressure(None, 2.325855)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"some avg10=1.66 avg60=0.74 avg300=0.45\n", r"no total= in b'some avg10"),
        (b"some avg10=1.66 total=-3\n", r"total is b'-3', expected a number"),
        (b"some total=1.5\n", r"total is b'1.5', expected a number"),
        (b"most total=1\n", r"expected a line 'some' or 'full'"),
    ],
)
def test_malformed_file_is_a_parse_error_that_names_it(data: bytes, message: str) -> None:
    with pytest.raises(ParseError, match=rf"^/proc/pressure/memory: .*{message}"):
        parse_pressure(data, "memory")
