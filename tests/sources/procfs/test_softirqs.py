import pytest

from inferwatch.errors import ParseError
from inferwatch.sources.procfs.softirqs import parse_softirqs
from support import LIVE

HEADER = b"                    CPU0       CPU1       \n"


def test_runs_are_added_up_over_cpus() -> None:
    softirqs = parse_softirqs(HEADER + b"      NET_RX:      32832      56996\n         RCU:          0          1\n")

    assert softirqs.runs == {"NET_RX": 89828, "RCU": 1}


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"      NET_RX:      32832\n", r"expected the names of the CPUs"),
        (HEADER, r"no row below the header"),
        (HEADER + b"  NET_RX: 1\n", r"NET_RX has 1 columns, expected 2, one per CPU"),
        (HEADER + b"  NET_RX: 1 x\n", r"runs of NET_RX is b'x', expected a number"),
        (HEADER + b"  : 1 2\n", r"name in .* is b'', expected a word"),
    ],
)
def test_malformed_file_is_a_parse_error_that_names_it(data: bytes, message: str) -> None:
    with pytest.raises(ParseError, match=rf"^/proc/softirqs: .*{message}"):
        parse_softirqs(data)


def test_live_runs_agree_with_the_sums_in_proc_stat() -> None:
    before = parse_softirqs(LIVE.proc("softirqs").read_bytes())
    line = next(line for line in LIVE.proc("stat").read_bytes().splitlines() if line.startswith(b"softirq"))
    after = parse_softirqs(LIVE.proc("softirqs").read_bytes())
    sums = [int(field) for field in line.split()[2:]]

    assert len(sums) == len(before.runs)
    for low, middle, high in zip(before.runs.values(), sums, after.runs.values(), strict=True):
        assert low % 2**32 <= middle <= high % 2**32 or high >= 2**32
