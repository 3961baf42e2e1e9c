import os

import psutil
import pytest

from inferwatch.errors import ParseError
from inferwatch.sources.procfs.stat import COLUMNS, parse_stat
from support import HOSTS, LIVE

RECORDED = (HOSTS / "debian12-2cpu" / "proc" / "stat").read_bytes()


def test_ticks_become_seconds_by_the_given_user_hz() -> None:
    data = b"cpu  250 0 100 1000 0 0 0 0 0 0\ncpu0 250 0 100 1000 0 0 0 0 0 0\n"

    assert parse_stat(data, 100).cpus[0][:4] == (2.5, 0.0, 1.0, 10.0)
    assert parse_stat(data, 1000).cpus[0][:4] == (0.25, 0.0, 0.1, 1.0)


def test_cpu_lines_add_up_to_the_sum_line() -> None:
    stat = parse_stat(RECORDED, 100)

    for index, name in enumerate(COLUMNS):
        added = sum(seconds[index] for seconds in stat.cpus.values())
        assert added == pytest.approx(stat.cpu_seconds[index], abs=0.02 * len(stat.cpus)), name


def test_counters_beside_the_cpu_lines_are_read() -> None:
    stat = parse_stat(
        b"cpu 1 1 1 1\nintr 9000000 0 9\nctxt 7\nbtime 8\nprocesses 9\nprocs_running 2\nprocs_blocked 1\n", 1
    )

    assert (stat.interrupts, stat.context_switches, stat.boot_time_seconds) == (9_000_000, 7, 8)
    assert (stat.forks, stat.running, stat.blocked) == (9, 2, 1)


def test_columns_of_an_old_kernel_are_absent_not_zero() -> None:
    stat = parse_stat(b"cpu  1 2 3 4\ncpu0 1 2 3 4\n", 1)

    assert stat.cpus == {0: (1.0, 2.0, 3.0, 4.0)}
    assert stat.interrupts is None


def test_missing_cpu_lines_leave_the_sum() -> None:
    stat = parse_stat(b"cpu  1 2 3 4 5 6 7 8 9 10\nctxt 5\n", 1)

    assert stat.cpus == {}
    assert stat.cpu_seconds[:4] == (1.0, 2.0, 3.0, 4.0)


def test_columns_of_a_future_kernel_are_left_out() -> None:
    stat = parse_stat(b"cpu  1 2 3 4 5 6 7 8 9 10 11 12\n", 1)

    assert len(stat.cpu_seconds) == len(COLUMNS)


def test_offline_cpu_leaves_a_gap_in_the_numbers() -> None:
    stat = parse_stat(b"cpu  2 2 2 2\ncpu0 1 1 1 1\ncpu7 1 1 1 1\n", 1)

    assert sorted(stat.cpus) == [0, 7]


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"cpu  1 2 3\n", r"/proc/stat: cpu line has 3 columns, expected 4 to 10 \(b'cpu  1 2 3'\)"),
        (b"cpu  1 2 3 x\n", r"/proc/stat: time in .* is b'x', expected a number"),
        (b"cpu  1 2 3 -4\n", r"is b'-4', expected a number"),
        (b"cpu  1 2 3 1_0\n", r"is b'1_0', expected a number"),
        (b"cpu  1 2 3 4\ncpux 1 2 3 4\n", r"number of the CPU in .* is b'x'"),
        (b"cpu  1 2 3 4\ncpu0 1 2 3 4 5\n", r"cpu lines with 5 and 4 columns, expected as many in each"),
        (b"cpu  1 2 3 4\nctxt\n", r"value of ctxt is b'', expected a number"),
        (b"intr 5\n", r"no line 'cpu', expected the sum over all CPUs"),
    ],
)
def test_malformed_file_is_a_parse_error_that_names_it(data: bytes, message: str) -> None:
    with pytest.raises(ParseError, match=message):
        parse_stat(data, 100)


def test_live_times_agree_with_psutil() -> None:
    stat = parse_stat(LIVE.proc("stat").read_bytes(), os.sysconf("SC_CLK_TCK"))
    theirs = psutil.cpu_times()
    cpus = os.cpu_count() or 1

    # psutil leaves the kernel's columns as they are: guests are inside user there too.
    for index, name in enumerate(COLUMNS):
        assert stat.cpu_seconds[index] == pytest.approx(getattr(theirs, name), abs=1.0 * cpus), name


def test_live_boot_time_and_uptime_agree() -> None:
    stat = parse_stat(LIVE.proc("stat").read_bytes(), os.sysconf("SC_CLK_TCK"))
    uptime = float(LIVE.proc("uptime").read_text().split()[0])
    longest = max(sum(seconds[:8]) for seconds in stat.cpus.values())

    assert stat.boot_time_seconds == pytest.approx(psutil.boot_time(), abs=1.0)
    # Not equal: a suspended host's CPUs have less. A wrong unit would be off by ten times or more.
    assert 0.3 * uptime < longest < 1.05 * uptime + 2
