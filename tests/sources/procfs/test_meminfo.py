import psutil
import pytest

from inferwatch.errors import ParseError
from inferwatch.sources.procfs.meminfo import MemInfo, parse_meminfo
from support import HOSTS, LIVE


def test_kilobytes_are_kibibytes() -> None:
    assert parse_meminfo(b"MemTotal:       24684096 kB\n") == MemInfo(total_bytes=24684096 * 1024)


def test_huge_pages_are_counts() -> None:
    info = parse_meminfo(b"MemTotal: 8 kB\nHugePages_Total:     512\nHugePages_Rsvd:       7\nHugepagesize:  2048 kB\n")

    assert (info.huge_pages_total, info.huge_pages_reserved, info.huge_pages_free) == (512, 7, None)
    assert info.huge_page_size_bytes == 2 << 20


def test_recorded_file_has_every_field() -> None:
    info = parse_meminfo((HOSTS / "debian12-2cpu" / "proc" / "meminfo").read_bytes())

    assert all(getattr(info, field) is not None for field in MemInfo.__slots__)


def test_field_of_a_newer_kernel_is_absent_not_zero() -> None:
    assert parse_meminfo(b"MemTotal: 8 kB\nMemFree: 4 kB\n").available_bytes is None


@pytest.mark.parametrize("line", [b"Vendor: lots of it\n", b"no colon\n", b"Balloon: 1 MB\n", b"\xff\xfe: 1 kB\n"])
def test_unknown_line_is_passed_over(line: bytes) -> None:
    assert parse_meminfo(line + b"MemTotal: 8 kB\n") == MemInfo(total_bytes=8192)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"MemFree: 8 kB\n", r"no line 'MemTotal:', expected one"),
        (b"MemTotal: 8 MB\n", r"MemTotal is b' 8 MB', expected a number and 'kB'"),
        (b"MemTotal: 8\n", r"MemTotal is b' 8', expected a number and 'kB'"),
        (b"MemTotal: -8 kB\n", r"MemTotal is b'-8', expected a number"),
        (b"MemTotal: 8 kB\nHugePages_Total: 1 kB\n", r"HugePages_Total is b'1 kB', expected a number"),
    ],
)
def test_malformed_known_line_is_a_parse_error_that_names_it(data: bytes, message: str) -> None:
    with pytest.raises(ParseError, match=rf"^/proc/meminfo: {message}"):
        parse_meminfo(data)


def test_live_sizes_agree_with_psutil() -> None:
    info = parse_meminfo(LIVE.proc("meminfo").read_bytes())
    theirs, swap = psutil.virtual_memory(), psutil.swap_memory()

    assert info.total_bytes == theirs.total
    assert info.swap_total_bytes == swap.total
    assert info.available_bytes == pytest.approx(theirs.available, rel=0.05)
    assert info.free_bytes == pytest.approx(theirs.free, rel=0.05)
