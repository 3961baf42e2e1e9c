import pytest

from inferwatch.errors import ParseError
from inferwatch.sources.procfs.schedstat import CpuSchedstat, parse_schedstat
from support import HOSTS

CPU_LINE = b"cpu0 498494191 0 3533438552 2553969831 3853684107 2465731542 2045936778163039 343796328169361 4767485306\n"
DOMAIN_15 = b"domain0 00000000,00000003 212499247 210112015 1861015 1860405436 536440 369895 32599 210079416\n"
DOMAIN_17 = b"domain0 MC 3 0 0 0 0 0 0 0 0 0 0 0\n"


@pytest.mark.parametrize(
    ("version", "domain"), [(b"15", DOMAIN_15), (b"16", DOMAIN_15), (b"17", DOMAIN_17)], ids=["15", "16", "17"]
)
def test_cpu_line_is_the_same_in_all_known_versions(version: bytes, domain: bytes) -> None:
    schedstat = parse_schedstat(b"version " + version + b"\ntimestamp 15819019232\n" + CPU_LINE + domain)

    assert schedstat.version == int(version)
    assert schedstat.cpus == {0: CpuSchedstat(2045936.778163039, 343796.328169361, 4767485306)}


def test_times_are_nanoseconds() -> None:
    cpu = parse_schedstat(b"version 15\ncpu0 0 0 0 0 0 0 2000000000 500000000 3\n").cpus[0]

    assert (cpu.running_seconds, cpu.wait_seconds, cpu.timeslices) == (2.0, 0.5, 3)


def test_running_time_of_the_fixture_fits_into_its_uptime() -> None:
    # The check that settled the unit for Prometheus' procfs (its pull request 191): no CPU runs longer than it is up.
    cpus = parse_schedstat((HOSTS / "two-nodes" / "proc" / "schedstat").read_bytes()).cpus

    assert len(cpus) == 6
    assert all(cpu.running_seconds <= 10_000 for cpu in cpus.values())


def test_fields_that_a_vendor_kernel_appends_are_left_out() -> None:
    cpu = parse_schedstat(b"version 15\ncpu3 0 0 0 0 0 0 1000000000 0 3 77 88\n").cpus[3]

    assert cpu == CpuSchedstat(1.0, 0.0, 3)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"version 14\n" + CPU_LINE, r"format version 14, expected one of \(15, 16, 17\)"),
        (b"version 18\n" + CPU_LINE, r"format version 18"),
        (b"timestamp 1\n", r"first line is b'timestamp 1', expected 'version N'"),
        (b"version 15\ncpu0 1 2 3 4 5 6\n", r"cpu line has 6 fields, expected 9 \(b'cpu0 1 2 3 4 5 6'\)"),
        (b"version 15\ncpu0 1 2 3 4 5 6 7 8 x\n", r"is b'x', expected a number"),
        (b"version 15\ncpu 1 2 3 4 5 6 7 8 9\n", r"number of the CPU"),
        (b"version 15\ntimestamp 5\n", r"no cpu line, expected one per online CPU"),
    ],
)
def test_malformed_file_is_a_parse_error_that_names_it(data: bytes, message: str) -> None:
    with pytest.raises(ParseError, match=rf"^/proc/schedstat: .*{message}"):
        parse_schedstat(data)
