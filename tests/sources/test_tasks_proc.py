"""The fallback over constructed trees; against the kernel's numbers it is tested beside the iterator."""

import errno
import os
from pathlib import Path

import pytest

from inferwatch.errors import ParseError, SourceError
from inferwatch.sources.hostfs import HostFs
from inferwatch.sources.tasks_proc import TaskFiles
from inferwatch.sources.thread_increases import ThreadIncreases
from support_tasks import LIVE, USER_HZ, worker

PID = 4242


def stat(thread: int, comm: str, ticks: int, *, state: str = "S", start: int = 100, faults: int = 0) -> str:
    return f"{thread} ({comm}) {state} 1 1 1 0 -1 0 {faults} 0 0 0 {ticks} 0 0 0 20 0 1 0 {start} 0 0\n"


class Tree:
    """A /proc that can be written."""

    def __init__(self, root: Path) -> None:
        self.hostfs = HostFs(procfs=root / "proc", sysfs=root / "sys", rootfs=root)

    def process(self, ticks: int = 0, *, start: int = 100, pid: int = PID) -> None:
        self._write(f"{pid}/stat", stat(pid, "main", ticks, start=start))
        (self.hostfs.procfs / f"{pid}/task").mkdir(exist_ok=True)

    def thread(  # noqa: PLR0913 - each argument is a figure of the thread, given by name
        self, thread: int, comm: str = "worker", *, seconds: float = 0, wait: float = 0, switches: int = 0,
        start: int = 100, state: str = "S", pid: int = PID,
    ) -> None:  # fmt: skip
        folder = f"{pid}/task/{thread}"
        self._write(f"{folder}/stat", stat(thread, comm, int(seconds * USER_HZ), start=start, state=state))
        self._write(f"{folder}/schedstat", f"{int(seconds * 1e9)} {int(wait * 1e9)} {switches}\n")
        self._write(
            f"{folder}/status", f"Name:\t{comm}\nvoluntary_ctxt_switches:\t{switches}\nnonvoluntary_ctxt_switches:\t0\n"
        )

    def kill(self, thread: int) -> None:
        folder = self.hostfs.procfs / f"{PID}/task/{thread}"
        for file in folder.iterdir():
            file.unlink()
        folder.rmdir()

    def _write(self, name: str, text: str) -> None:
        path = self.hostfs.procfs / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    return Tree(tmp_path)


@pytest.fixture
def files(tree: Tree) -> TaskFiles:
    files = TaskFiles(tree.hostfs, max_threads=100)
    files.set_targets([PID])
    return files


def test_dead_thread_stays_in_its_name_and_its_rest_in_no_name(tree: Tree, files: TaskFiles) -> None:
    tree.process(ticks=3 * USER_HZ)
    tree.thread(1, "worker-1", seconds=2, wait=0.5, switches=10)
    tree.thread(2, "worker-2", seconds=1, wait=0.25, switches=5)
    files.read()
    tree.kill(2)
    tree.process(ticks=4 * USER_HZ)

    totals = files.read().processes[PID]

    assert totals.by_name["worker-#"].threads == 1
    assert totals.by_name["worker-#"].sums.user_seconds == 3.0
    assert totals.by_name["worker-#"].sums.run_queue_wait_seconds == 0.75
    assert totals.unattributed.user_seconds == 1.0
    assert totals.total.user_seconds == 4.0
    assert totals.total.voluntary_switches == 15


def test_thread_id_that_is_used_again_begins_with_its_whole_past(tree: Tree, files: TaskFiles) -> None:
    tree.process()
    tree.thread(1, seconds=2, start=100)
    files.read()
    tree.thread(1, seconds=1, start=200)

    assert files.read().processes[PID].by_name["worker"].sums.user_seconds == 3.0


def test_threads_over_the_limit_are_counted_and_nothing_falls(tree: Tree) -> None:
    tree.process(ticks=20 * USER_HZ)
    for thread in range(1, 21):
        tree.thread(thread, seconds=1, switches=1)
    files = TaskFiles(tree.hostfs, max_threads=15)
    files.set_targets([PID])
    first = files.read()
    for thread in range(1, 11):
        tree.kill(thread)

    second = files.read()

    assert (first.omitted.threads, second.omitted.threads) == (5, 0)
    assert first.processes[PID].by_name["worker"].sums.user_seconds == 15.0
    assert first.processes[PID].unattributed.user_seconds == 5.0
    assert second.processes[PID].by_name["worker"].sums.user_seconds == 15.0
    assert second.processes[PID].unattributed.user_seconds == 5.0
    assert second.processes[PID].total.user_seconds == 20.0


def test_limit_is_divided_among_the_processes(tree: Tree) -> None:
    for pid, threads in ((1000, 50), (2000, 3), (3000, 50)):
        tree.process(pid=pid)
        for thread in range(pid, pid + threads):
            tree.thread(thread, pid=pid)
    files = TaskFiles(tree.hostfs, max_threads=30)
    files.set_targets([1000, 2000, 3000])

    found = files.read()

    assert {pid: totals.states.threads for pid, totals in found.processes.items()} == {1000: 13, 2000: 3, 3000: 14}
    assert found.omitted.threads == 37 + 36


def test_nothing_is_left_out_below_the_limit_whichever_process_has_the_threads(tree: Tree) -> None:
    for pid, threads in ((1000, 25), *((2000 + number, 1) for number in range(5))):
        tree.process(pid=pid)
        for thread in range(pid, pid + threads):
            tree.thread(thread, pid=pid)
    files = TaskFiles(tree.hostfs, max_threads=30)
    files.set_targets([1000, *range(2000, 2005)])

    found = files.read()

    assert found.omitted.threads == 0
    assert found.processes[1000].states.threads == 25


def test_names_over_the_limit_are_counted() -> None:
    increases = ThreadIncreases()
    placed = [increases.take(thread, 1, chr(1000 + thread), (1,) * 9) for thread in range(130)]

    assert placed.count(True) == 128
    assert increases.total() == [130] * 9


def test_process_that_ended_is_left_out_in_silence(files: TaskFiles) -> None:
    found = files.read()

    assert found.processes == {}
    assert found.omitted.denied == 0


def test_pid_that_was_given_to_another_process_is_not_the_target(tree: Tree, files: TaskFiles) -> None:
    tree.process(start=100)
    files.read()
    tree.process(start=200)

    assert files.read().processes == {}


@pytest.mark.parametrize("number", [errno.ENOENT, errno.ESRCH])
@pytest.mark.parametrize("file", ["stat", "schedstat", "status"])
def test_thread_that_ends_between_listing_and_reading_is_left_out(
    tree: Tree, files: TaskFiles, monkeypatch: pytest.MonkeyPatch, file: str, number: int
) -> None:
    tree.process()
    tree.thread(1)
    tree.thread(2)
    fail(monkeypatch, f"task/2/{file}", number)

    found = files.read()

    assert found.processes[PID].states.threads == 1
    assert found.omitted.denied == 0


@pytest.mark.parametrize(("place", "left"), [("task/2/status", 1), (f"{PID}/stat", 0)])
def test_what_may_not_be_read_is_counted(
    tree: Tree, files: TaskFiles, monkeypatch: pytest.MonkeyPatch, place: str, left: int
) -> None:
    tree.process()
    tree.thread(1)
    tree.thread(2)
    fail(monkeypatch, place, errno.EACCES)

    found = files.read()

    assert found.omitted.denied == 1
    assert sum(totals.states.threads for totals in found.processes.values()) == left


def test_failing_disk_is_an_error(tree: Tree, files: TaskFiles, monkeypatch: pytest.MonkeyPatch) -> None:
    tree.process()
    tree.thread(1)
    fail(monkeypatch, "task/1/stat", errno.EIO)

    with pytest.raises(SourceError, match="task/1/stat: Input/output error"):
        files.read()


def test_malformed_file_is_a_parse_error(tree: Tree, files: TaskFiles) -> None:
    tree.process()
    tree.thread(1)
    (tree.hostfs.procfs / f"{PID}/task/1/schedstat").write_text("x\n", encoding="ascii")

    with pytest.raises(ParseError, match="schedstat: 1 fields, expected 3"):
        files.read()


def test_kernel_without_sched_info_gives_cpu_time_and_no_wait(tree: Tree, files: TaskFiles) -> None:
    tree.process(ticks=USER_HZ)
    tree.thread(1, seconds=1)
    (tree.hostfs.procfs / f"{PID}/task/1/schedstat").write_text("0 0 0\n", encoding="ascii")

    totals = files.read().processes[PID]

    assert totals.by_name["worker"].sums.user_seconds == 1.0
    assert totals.total.run_queue_wait_seconds is None
    assert totals.total.timeslices is None


def test_states_are_told_apart(tree: Tree, files: TaskFiles) -> None:
    tree.process()
    for thread, state in enumerate("RSDTtZXIP", start=1):
        tree.thread(thread, state=state)
    states = files.read().processes[PID].states

    assert (states.running, states.sleeping, states.disk_sleep, states.stopped, states.zombie, states.other) == (
        1, 1, 1, 2, 2, 2,
    )  # fmt: skip


def test_twenty_thousand_threads_are_listed_and_two_thousand_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tree = Tree(tmp_path)
    tree.process()
    tree.thread(1)
    for thread in range(2, 20_001):
        (tree.hostfs.procfs / f"{PID}/task/{thread}").symlink_to("1")
    files = TaskFiles(tree.hostfs)
    files.set_targets([PID])
    opened: list[str] = []
    real = os.open

    def counting(path: str, flags: int) -> int:
        opened.append(path)
        return real(path, flags)

    monkeypatch.setattr(os, "open", counting)

    found = files.read()

    assert found.processes[PID].states.threads == 2000
    assert found.omitted.threads == 18_000
    assert len(opened) == 3 * 2000 + 1


def test_own_process_agrees_with_the_kernel() -> None:
    with worker("name('main thread')\nburn(0.3)\ntell('ready')\nwait()") as one:
        one.freeze()
        files = TaskFiles(LIVE)
        files.set_targets([one.pid])
        totals = files.read().processes[one.pid]

        assert totals.total.user_seconds + totals.total.system_seconds == pytest.approx(
            one.cpu_seconds(), abs=2 / USER_HZ
        )
    assert totals.by_name.keys() == {"main thread"}
    files.close()


def fail(monkeypatch: pytest.MonkeyPatch, end: str, number: int) -> None:
    """Make opening one file fail; a file's mode does not stop root."""
    real = os.open

    def opening(path: str, flags: int) -> int:
        if path.endswith(end):
            raise OSError(number, os.strerror(number))
        return real(path, flags)

    monkeypatch.setattr(os, "open", opening)
