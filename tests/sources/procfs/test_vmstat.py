import psutil
import pytest

from inferwatch.errors import ParseError
from inferwatch.sources.procfs.vmstat import parse_vmstat
from support import LIVE


def test_every_line_is_a_value() -> None:
    assert parse_vmstat(b"pgfault 6703683\noom_kill 0\n").values == {"pgfault": 6703683, "oom_kill": 0}


def test_counter_kept_per_zone_is_added_up() -> None:
    vmstat = parse_vmstat(b"allocstall_dma32 1\nallocstall_normal 20\nallocstall_movable 300\n")

    assert vmstat.over_zones("allocstall") == 321


def test_counter_kept_as_one_is_taken_as_it_is() -> None:
    assert parse_vmstat(b"pgscan_direct 5\n").over_zones("pgscan_direct") == 5


def test_throttle_counter_is_not_taken_for_a_zone() -> None:
    vmstat = parse_vmstat(b"pgscan_direct_normal 5\npgscan_direct_throttle 1000\n")

    assert vmstat.over_zones("pgscan_direct") == 5


def test_counter_that_the_kernel_lacks_is_none() -> None:
    assert parse_vmstat(b"pgfault 1\n").over_zones("pgscan_direct") is None


@pytest.mark.parametrize("data", [b"pgfault\n", b"pgfault x\n", b"pgfault 1 2\n", b" 1\n", b"\n", b"pg\xffault 1\n"])
def test_line_that_is_not_a_name_and_a_number_is_a_parse_error(data: bytes) -> None:
    with pytest.raises(ParseError, match=r"^/proc/vmstat: .*expected"):
        parse_vmstat(data)


def test_live_swap_counters_agree_with_psutil() -> None:
    before = parse_vmstat(LIVE.proc("vmstat").read_bytes()).values
    swap = psutil.swap_memory()
    after = parse_vmstat(LIVE.proc("vmstat").read_bytes()).values

    # psutil multiplies by 4096 whatever the page size is.
    assert before["pswpin"] <= swap.sin // 4096 <= after["pswpin"]
    assert before["pswpout"] <= swap.sout // 4096 <= after["pswpout"]
