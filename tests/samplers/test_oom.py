import errno
import os
import socket
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from inferwatch.errors import NoData, SourceError
from inferwatch.model import Event, Sample
from inferwatch.samplers._support.oom_counts import MOST_TARGETS, OomCounts
from inferwatch.samplers._support.oom_owners import MatchedBy
from inferwatch.samplers.oom import SAMPLER, OomOptions, OomSampler
from inferwatch.sources.kmsg import KmsgReader
from inferwatch.targets.model import CgroupPaths
from support import FakeClock, make_context, tree, values
from support_targets import Targets, process, sample_anyway, target

TARGET_KILLS = "inferwatch_target_oom_kills_total"
KILLS = "inferwatch_oom_kills_by_constraint_total"
GROUP = CgroupPaths(None, {"memory": "/svc"})
CONTEXT = (
    "oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),cpuset=/,mems_allowed=0,oom_memcg=%s,task_memcg=%s,"
    "task=%s,pid=%d,uid=0"
)
KILLED = (
    "Memory cgroup out of memory: Killed process %d (%s) total-vm:100kB, anon-rss:80kB, file-rss:4kB, shmem-rss:0kB, "
    "UID:0 pgtables:4kB oom_score_adj:0"
)


def by_target(samples: list[Sample]) -> dict[str, float]:
    found: dict[str, float] = {}
    for (name, _), kills in values(samples, TARGET_KILLS).items():
        found[name] = found.get(name, 0) + kills
    return found


class Host:
    """A host whose log and counters the test writes."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.clock = FakeClock()
        self.events: list[Event] = []
        self.targets = Targets(target("svc", process(10), cgroup=GROUP))
        self.sequence = 0
        self.vmstat, self.group = 0, 0
        self.refuse: Exception | None = None
        near, far = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        far.setblocking(False)
        self._near, self._far = near, far
        self.hostfs = tree(
            root, {"proc/10/oom_score": b"777\n", "sys/fs/cgroup/memory/svc/memory.usage_in_bytes": b"1\n"}
        )
        self.count()
        self.sampler = OomSampler(
            make_context(
                self.hostfs,
                OomOptions(keep_seconds=600),
                targets=self.targets,
                clock=self.clock,
                emit=self.events.append,
            ),
            self.open,
        )

    def open(self, _path: Path) -> KmsgReader:
        if self.refuse is not None:
            raise self.refuse
        return KmsgReader(os.dup(self._far.fileno()))

    def count(self, vmstat: int = 0, group: int = 0) -> None:
        """Raise the counters."""
        self.vmstat += vmstat
        self.group += group
        tree(
            self.root,
            {
                "proc/vmstat": b"pgfault 1\noom_kill %d\n" % self.vmstat,
                "sys/fs/cgroup/memory/svc/memory.oom_control": b"oom_kill_disable 0\nunder_oom 0\noom_kill %d\n"
                % self.group,
            },
        )

    def log(self, *lines: str, priority: int = 3) -> None:
        for line in lines:
            self._near.send(f"{priority},{self.sequence},1,-;{line}\n".encode())
            self.sequence += 1

    def kill(self, pid: int = 10, comm: str = "python3", group: str = "/svc") -> None:
        """Do what the kernel does."""
        self.count(vmstat=1, group=int(group == "/svc"))
        self.log(CONTEXT % (group, group, comm, pid), KILLED % (pid, comm))

    async def run(self) -> tuple[list[Sample], dict[str, str]]:
        self.clock.advance(5)
        return await sample_anyway(self.sampler)

    async def total(self) -> dict[str, float]:
        """Return the kills by target, however they were found."""
        return by_target((await self.run())[0])

    def close(self) -> None:
        self._near.close()
        self._far.close()


@pytest.fixture
async def machine(tmp_path: Path) -> AsyncIterator[Host]:
    machine = Host(tmp_path)
    yield machine
    await machine.sampler.close()
    machine.close()


async def test_kill_is_counted_once_and_told_with_its_facts(machine: Host) -> None:
    assert await machine.total() == {"svc": 0}
    machine.kill()
    machine.targets.set()  # the killed process is gone from the table before its kill is read
    totals = [await machine.total() for _ in range(4)]

    assert totals == [{"svc": 1}] * 4
    (event,) = machine.events
    assert (event.kind, event.target) == ("oom_kill", "svc")
    assert dict(event.attributes) == {
        "source": "kmsg",
        "matched_by": "process",
        "process": "python3",
        "pid": "10",
        "role": "server",
        "constraint": "cgroup",
        "cgroup": "/svc",
        "limit_cgroup": "/svc",
        "oom_score": "777",
        "virtual_bytes": "102400",
        "anonymous_bytes": "81920",
        "file_bytes": "4096",
        "shared_bytes": "0",
        "page_table_bytes": "4096",
        "uid": "0",
        "oom_score_adj": "0",
    }


async def test_stranger_in_the_targets_group_is_told_apart_from_its_own_processes(machine: Host) -> None:
    await machine.run()
    machine.kill(pid=4711, comm="cc1plus")
    machine.kill(pid=10)
    machine.kill(pid=4712, comm="bash")
    samples = [(await machine.run())[0] for _ in range(3)][-1]

    assert values(samples, TARGET_KILLS) == {("svc", "process"): 1, ("svc", "cgroup"): 2}
    assert [event.attributes["matched_by"] for event in machine.events] == ["cgroup", "process", "cgroup"]
    assert [event.target for event in machine.events] == ["svc"] * 3
    assert ["role" in event.attributes for event in machine.events] == [False, True, False]


async def test_target_that_is_absent_for_a_round_neither_falls_nor_counts_twice(machine: Host) -> None:
    machine.refuse = NoData("/dev/kmsg: none")
    await machine.run()
    machine.count(vmstat=2, group=2)
    await machine.run()
    before = await machine.total()
    machine.targets.set()
    machine.count(vmstat=1, group=1)
    await machine.run()
    machine.targets.set(target("svc", process(10), cgroup=GROUP))
    totals = [await machine.total() for _ in range(3)]

    assert before == {"svc": 2}
    assert totals == [{"svc": 3}] * 3


def test_count_of_a_target_that_is_there_is_not_dropped_for_others() -> None:
    counts = OomCounts(keep_seconds=600)
    counts.add_to_target("here", MatchedBy.PROCESS, 3, 0)
    for number in range(MOST_TARGETS + 10):
        counts.add_to_target(f"gone{number}", MatchedBy.PROCESS, 1, 1 + number)
    samples = list(counts.samples(["here"], 10_000))

    assert values(samples, TARGET_KILLS)["here", "process"] == 3
    assert len(counts._targets) == MOST_TARGETS


async def test_kill_elsewhere_is_of_no_target(machine: Host) -> None:
    await machine.run()
    machine.kill(pid=4711, comm="stress", group="/other")
    samples, _ = await machine.run()

    assert by_target(samples) == {"svc": 0}
    assert values(samples, KILLS) == {("cgroup",): 1, ("host",): 0}
    assert machine.events[0].target == ""
    assert "matched_by" not in machine.events[0].attributes


async def test_same_pid_of_another_namespace_is_not_taken_for_the_targets(machine: Host) -> None:
    await machine.run()
    machine.kill(pid=10, comm="stress", group="/other")

    assert await machine.total() == {"svc": 0}


async def test_line_that_a_program_wrote_is_no_kill(machine: Host) -> None:
    await machine.run()
    machine.log(KILLED % (10, "python3"), priority=11)

    assert await machine.total() == {"svc": 0}
    assert machine.events == []


async def test_kill_that_was_overwritten_in_the_log_is_counted_by_the_counters(machine: Host) -> None:
    machine.log("one")
    await machine.run()
    machine.sequence += 100
    machine.count(vmstat=1, group=1)
    machine.log("two")
    await machine.run()
    samples, _ = await machine.run()

    assert values(samples, "inferwatch_kernel_log_records_lost_total") == {(): 100}
    assert by_target(samples) == {"svc": 1}
    assert machine.events[0].attributes["source"] == "cgroup"


async def test_without_the_log_the_counters_tell_and_the_reason_is_said(machine: Host) -> None:
    machine.refuse = SourceError("/dev/kmsg: denied; it needs CAP_SYSLOG", reason="permission_denied")
    await machine.run()
    machine.count(vmstat=2, group=1)
    machine.targets.set()
    await machine.run()
    samples, problems = await machine.run()
    for _ in range(3):
        again, _ = await machine.run()

    assert "counted from /proc/vmstat and cgroups instead" in problems["permission_denied"]
    assert by_target(samples) == by_target(again) == {"svc": 1}
    assert values(again, KILLS) == {("cgroup",): 0, ("host",): 0, ("unknown",): 2}
    assert sorted(event.target for event in machine.events) == ["", "svc"]


async def test_log_that_fails_is_opened_again_and_nothing_counts_twice(
    machine: Host, monkeypatch: pytest.MonkeyPatch
) -> None:
    await machine.run()

    def fail(_descriptor: int, _size: int) -> bytes:
        raise OSError(errno.EIO, "Input/output error")

    with monkeypatch.context() as patch:
        patch.setattr(os, "read", fail)
        _, problems = await machine.run()
    machine.kill()
    totals = [await machine.total() for _ in range(3)]

    assert list(problems) == ["io"]
    assert totals == [{"svc": 1}] * 3


async def test_count_goes_on_after_a_restart_and_goes_when_its_time_is_over(machine: Host) -> None:
    await machine.run()
    machine.kill()
    await machine.run()
    machine.targets.set(target("svc", process(20), cgroup=GROUP))
    machine.kill(pid=20)
    again = await machine.total()
    machine.targets.set()
    machine.clock.advance(700)

    assert again == {"svc": 2}
    assert await machine.total() == {}


async def test_two_targets_in_one_group_are_not_guessed_between(machine: Host) -> None:
    machine.targets.set(target("svc", process(10), cgroup=GROUP), target("twin", process(11), cgroup=GROUP))
    machine.refuse = NoData("/dev/kmsg: none")
    await machine.run()
    machine.count(vmstat=1, group=1)
    await machine.run()

    assert await machine.total() == {"svc": 0, "twin": 0}


async def test_kernel_that_tells_nothing_at_all_is_no_data(tmp_path: Path) -> None:
    hostfs = tree(tmp_path, {"proc/vmstat": b"pgfault 1\n"})

    with pytest.raises(NoData):
        await SAMPLER.create(make_context(hostfs, OomOptions())).sample()
