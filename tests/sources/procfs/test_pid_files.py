"""The memory, limits, affinity and placement of one process; all parsers take any bytes."""

import mmap
import os
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path

import psutil
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from inferwatch.errors import ParseError
from inferwatch.sources.procfs.limits import OpenFilesLimit, parse_open_files_limit
from inferwatch.sources.procfs.numa_maps import parse_numa_maps
from inferwatch.sources.procfs.pid_affinity import parse_pid_affinity
from inferwatch.sources.procfs.pid_memory import PidMemory, parse_pid_memory
from inferwatch.sources.procfs.smaps import SmapsRollup, parse_smaps_rollup
from inferwatch.sources.procfs.statm import Statm, parse_statm
from inferwatch.sources.procfs.thread_cpu import ThreadCpu, parse_thread_cpu
from inferwatch.sources.sysfs.choice import parse_choice
from inferwatch.sources.sysfs.node_meminfo import parse_node_meminfo
from inferwatch.sources.sysfs.numastat import parse_numastat
from strategies import mutated, mutated_tokens
from support import HOSTS

RECORDED = HOSTS / "process-6.18" / "proc" / "4242"
NODE = HOSTS / "numa-two-socket" / "sys" / "devices" / "system" / "node" / "node0"
THP = HOSTS / "numa-two-socket" / "sys" / "kernel" / "mm" / "transparent_hugepage" / "enabled"
MIB = 1 << 20
Parser = Callable[[bytes], object]
PARSERS: dict[str, tuple[Parser, Path]] = {
    "pid_memory": (parse_pid_memory, RECORDED / "status"),
    "pid_affinity": (parse_pid_affinity, RECORDED / "status"),
    "statm": (partial(parse_statm, page_bytes=4096), RECORDED / "statm"),
    "smaps_rollup": (parse_smaps_rollup, RECORDED / "smaps_rollup"),
    "limits": (parse_open_files_limit, RECORDED / "limits"),
    "numa_maps": (partial(parse_numa_maps, page_bytes=4096), RECORDED / "numa_maps"),
    "thread_cpu": (partial(parse_thread_cpu, user_hz=100), RECORDED / "stat"),
    "node_meminfo": (partial(parse_node_meminfo, node=0), NODE / "meminfo"),
    "numastat": (partial(parse_numastat, node=0), NODE / "numastat"),
    "choice": (partial(parse_choice, file="enabled"), THP),
}
QUICK = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])


@pytest.mark.parametrize("name", PARSERS)
@given(data=st.data())
@QUICK
def test_any_bytes_raise_nothing_but_a_parse_error(name: str, data: st.DataObject) -> None:
    parser, path = PARSERS[name]
    original = path.read_bytes()

    with suppress(ParseError):
        parser(data.draw(st.binary(max_size=300) | mutated(original) | mutated_tokens(original)))


@pytest.mark.parametrize("name", sorted(PARSERS.keys() - {"numa_maps"}))
def test_empty_file_is_a_parse_error(name: str) -> None:
    with pytest.raises(ParseError, match=r"expected|no line"):
        PARSERS[name][0](b"")


def test_recorded_process_is_told_alike_by_all_files() -> None:
    memory = parse_pid_memory((RECORDED / "status").read_bytes())
    rollup = parse_smaps_rollup((RECORDED / "smaps_rollup").read_bytes())
    statm = parse_statm((RECORDED / "statm").read_bytes(), 4096)
    nodes = parse_numa_maps((RECORDED / "numa_maps").read_bytes(), 4096)

    assert memory is not None
    assert memory.anonymous_bytes == rollup.anonymous_bytes == statm.anonymous_bytes
    assert memory.resident_bytes == rollup.resident_bytes == statm.resident_bytes
    assert memory.shared_bytes == rollup.proportional_shared_bytes == 3 * MIB
    assert nodes == {0: pytest.approx(rollup.resident_bytes, rel=0.01)}  # the zero page is counted here only
    assert rollup.private_bytes == (3384 + 10544) * 1024


def test_zombie_has_no_memory() -> None:
    assert parse_pid_memory(b"Name:\tx\nState:\tZ (zombie)\nThreads:\t1\n") is None


def test_status_of_a_kernel_before_4_5_lacks_the_sorts() -> None:
    assert parse_pid_memory(b"Name:\tx\nVmRSS:\t8 kB\nVmSwap:\t4 kB\n") == PidMemory(8192, swap_bytes=4096)


def test_rollup_of_a_kernel_before_5_3_lacks_the_sorts_of_pss() -> None:
    assert parse_smaps_rollup(b"head\nRss: 8 kB\nPss: 4 kB\n") == SmapsRollup(8192, 4096)


def test_statm_anonymous_memory_is_resident_less_shared() -> None:
    assert parse_statm(b"100 50 20 1 0 30 0\n", 4096) == Statm(50 * 4096, 20 * 4096)
    assert parse_statm(b"100 50 60 1 0 30 0\n", 4096).anonymous_bytes == 0


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        (
            b"Max open files            1024                 1048576              files     \n",
            OpenFilesLimit(1024, 1048576),
        ),
        (
            b"Max open files            unlimited            unlimited            files     \n",
            OpenFilesLimit(None, None),
        ),
    ],
)
def test_limit_of_open_files(line: bytes, expected: OpenFilesLimit) -> None:
    assert parse_open_files_limit(b"Limit   Soft Limit  Hard Limit  Units\n" + line) == expected


def test_huge_pages_of_the_pool_count_by_their_own_size() -> None:
    maps = (HOSTS / "numa-two-socket" / "proc" / "500" / "numa_maps").read_bytes()

    assert parse_numa_maps(maps, 4096) == {0: 800 * 4096, 1: 200 * 4096 + 2 * MIB}


def test_policy_with_a_blank_in_its_name_is_no_obstacle() -> None:
    assert parse_numa_maps(b"7f00 weighted interleave:0,2 anon=4 N0=3 N2=1 kernelpagesize_kB=4\n", 4096) == {
        0: 3 * 4096,
        2: 4096,
    }


def test_line_without_page_size_is_in_small_pages() -> None:
    assert parse_numa_maps(b"7f00 default anon=1 N0=1\n", 65536) == {0: 65536}


@pytest.mark.parametrize("comm", ["x", "a) b) (c\n", "(sd-pam)", ") 1 2 3"])
def test_thread_is_split_at_the_last_parenthesis(comm: str) -> None:
    rest = ["S", *["0"] * 10, "150", "50", *["0"] * 6, "777", *["0"] * 16, "5", "0"]

    assert parse_thread_cpu(f"42 ({comm}) {' '.join(rest)}\n".encode(), 100) == ThreadCpu(2.0, 777, 5)


def test_affinity_without_cpusets_has_no_memory_nodes() -> None:
    affinity = parse_pid_affinity(b"Name:\tx\nCpus_allowed_list:\t0-1,4\n")

    assert (affinity.cpus, affinity.memory_nodes) == ((0, 1, 4), ())


def test_own_files_agree_with_psutil() -> None:
    own = Path("/proc/self")
    with mmap.mmap(-1, 4 * MIB) as shared:
        shared.write(bytes(4 * MIB))
        rollup = parse_smaps_rollup((own / "smaps_rollup").read_bytes())
        memory = parse_pid_memory((own / "status").read_bytes())
        theirs = psutil.Process().memory_full_info()

    assert memory is not None
    assert memory.resident_bytes == pytest.approx(theirs.rss, rel=0.02)
    assert rollup.proportional_bytes == pytest.approx(theirs.pss, rel=0.02)
    assert rollup.private_bytes == pytest.approx(theirs.uss, rel=0.02)
    assert memory.shared_bytes == pytest.approx(4 * MIB, abs=MIB)
    assert (
        parse_open_files_limit((own / "limits").read_bytes()).soft == psutil.Process().rlimit(psutil.RLIMIT_NOFILE)[0]
    )


def test_own_affinity_and_cpu_are_the_kernels() -> None:
    affinity = parse_pid_affinity(Path("/proc/thread-self/status").read_bytes())
    thread = parse_thread_cpu(Path("/proc/thread-self/stat").read_bytes(), os.sysconf("SC_CLK_TCK"))

    assert set(affinity.cpus) == os.sched_getaffinity(0)
    assert thread.cpu in affinity.cpus
