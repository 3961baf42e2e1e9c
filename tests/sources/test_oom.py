from contextlib import suppress

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from inferwatch.errors import ParseError
from inferwatch.sources.kmsg import parse_kmsg_record
from inferwatch.sources.oom import OomKill, OomLog
from strategies import mutated
from support import HOSTS

RECORDED = (HOSTS.parent / "kmsg" / "oom-cgroup-6.18").read_bytes().splitlines(keepends=True)
TAIL = b"total-vm:100kB, anon-rss:8kB, file-rss:4kB, shmem-rss:0kB, UID:0 pgtables:4kB oom_score_adj:-5"


def kills(*lines: bytes) -> list[OomKill]:
    log = OomLog()
    return [kill for line in lines if (kill := log.feed(line)) is not None]


def test_recorded_kill_in_a_cgroup_is_one_kill() -> None:
    (kill,) = kills(*(parse_kmsg_record(record).text for record in RECORDED))

    assert (kill.comm, kill.constraint, kill.cgroup, kill.limit_cgroup) == (
        "python3",
        "cgroup",
        "/iw-probe",
        "/iw-probe",
    )
    assert 28 << 20 < kill.facts["anonymous_bytes"] <= 32 << 20
    assert kill.facts["oom_score_adj"] == 0


def test_host_wide_kill_has_no_limit() -> None:
    context = (
        b"oom-kill:constraint=CONSTRAINT_NONE,nodemask=(null),cpuset=docker-1.scope,mems_allowed=0-1,3,global_oom,"
        b"task_memcg=/system.slice/x,y.service,task=vllm,pid=12,uid=1000"
    )
    (kill,) = kills(context, b"Out of memory: Killed process 12 (vllm) " + TAIL)

    assert (kill.constraint, kill.cgroup, kill.limit_cgroup) == ("host", "/system.slice/x,y.service", None)


def test_kill_without_its_context_still_counts() -> None:
    (kill,) = kills(b"Memory cgroup out of memory: Killed process 12 (a) b) " + TAIL)

    assert (kill.pid, kill.comm, kill.constraint, kill.cgroup) == (12, "a) b", "cgroup", None)
    assert kill.facts == {
        "virtual_bytes": 102400,
        "anonymous_bytes": 8192,
        "file_bytes": 4096,
        "shared_bytes": 0,
        "page_table_bytes": 4096,
        "uid": 0,
        "oom_score_adj": -5,
    }


def test_kernel_before_4_20_tells_the_score() -> None:
    (kill,) = kills(
        b"Memory cgroup out of memory: Kill process 12 (python) score 987 or sacrifice child",
        b"Killed process 12 (python) total-vm:100kB, anon-rss:8kB, file-rss:4kB, shmem-rss:0kB",
    )

    assert kill.facts["oom_score"] == 987


@pytest.mark.parametrize(
    "line",
    [
        b"oom_reaper: reaped process 12 (python3), now anon-rss:0kB, file-rss:0kB, shmem-rss:0kB",
        b"python3 invoked oom-killer: gfp_mask=0xcc0(GFP_KERNEL), order=0, oom_score_adj=0",
        b"Killed process x (y) total-vm:1kB",
        b"Killed process 12 (y)",
    ],
)
def test_other_line_is_no_kill(line: bytes) -> None:
    assert kills(line) == []


def test_contexts_without_a_kill_do_not_pile_up() -> None:
    log = OomLog()
    for pid in range(1000):
        log.feed(
            b"oom-kill:constraint=CONSTRAINT_NONE,nodemask=(null),cpuset=/,mems_allowed=0,global_oom,"
            b"task_memcg=/,task=x,pid=%d,uid=0" % pid
        )

    assert len(log._contexts) <= 64


def test_record_is_unescaped_and_properties_are_left_out() -> None:
    record = parse_kmsg_record(b"12,8,99,c;a\\x0ab \\x5cx41\n SUBSYSTEM=pci\n DEVICE=+pci:0\n")

    assert (record.facility, record.sequence, record.text) == (1, 8, b"a\nb \\x41")


@given(data=st.binary(max_size=200) | st.sampled_from(RECORDED).flatmap(mutated))
@settings(max_examples=300, deadline=None)
def test_any_bytes_raise_nothing_but_a_parse_error(data: bytes) -> None:
    with suppress(ParseError):
        OomLog().feed(parse_kmsg_record(data).text)
    OomLog().feed(data)
