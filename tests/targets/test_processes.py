"""What is read of a host's processes, and how often."""

from collections import Counter
from pathlib import Path

import pytest

from inferwatch.targets.processes import PROCESS_LIMIT
from inferwatch.targets.reader import FIRST_BYTES, ProcReader
from support import FakeClock
from support_procfs import OLD, UPTIME_SECONDS, FakeProc, names

MANY = 5_000
ROUNDS = 13  # of five seconds: a minute and one


@pytest.fixture
def proc(tmp_path: Path) -> FakeProc:
    return FakeProc(tmp_path / "host")


def count_reads(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """Return the counts of file reads, by file."""
    reads: Counter[str] = Counter()
    real = ProcReader.read

    def read(self: ProcReader, pid: int | str, name: str, limit: int) -> bytes:
        reads[f"{pid}/{name}"] += 1
        return real(self, pid, name, limit)

    monkeypatch.setattr(ProcReader, "read", read)
    return reads


def few_files(proc: FakeProc, pid: int) -> None:
    """Add a process that has only what is read of it."""
    home = proc.proc / str(pid)
    home.mkdir()
    (home / "cmdline").write_bytes(b"sleep\0%d\0" % pid)
    (home / "comm").write_bytes(b"sleep\n")
    (home / "stat").write_text(f"{pid} (sleep) S 1 1 1 0 -1 4194304 {'0 ' * 12}{OLD} 0 0\n")


def test_of_five_thousand_processes_a_tenth_is_read_in_a_round_and_each_once_a_minute(
    proc: FakeProc, monkeypatch: pytest.MonkeyPatch
) -> None:
    for pid in range(10_000, 10_000 + MANY):
        few_files(proc, pid)
    proc.add(100, ["vllm", "serve", "m"])
    clock = FakeClock()
    tracker = proc.tracker(clock=clock)
    assert names(tracker.refresh())

    reads = count_reads(monkeypatch)
    most = 0
    for _ in range(ROUNDS):
        clock.advance(5)
        before = reads.total()
        assert len(tracker.refresh().targets) == 1
        most = max(most, reads.total() - before)
    assert most < MANY / 5
    assert all(reads[f"{pid}/comm"] in {1, 2} for pid in range(10_000, 10_000 + MANY))
    assert sum(count for name, count in reads.items() if name.endswith("/cmdline")) < MANY / 2


def test_another_program_under_the_same_name_is_noticed_within_a_tenth_of_the_age(proc: FakeProc) -> None:
    clock = FakeClock()
    tracker = proc.tracker(clock=clock)
    proc.add(100, ["python3", "launch.py"], start=(UPTIME_SECONDS - 600) * 100)
    proc.add(200, ["python3", "launch.py"], start=1)
    tracker.refresh()
    for pid, start in ((100, (UPTIME_SECONDS - 600) * 100), (200, 1)):
        proc.add(pid, ["python3", "-m", "vllm.entrypoints.openai.api_server"], start=start)
    seen = []
    for _ in range(72):
        clock.advance(5)
        seen.append(len(tracker.refresh().targets))

    assert seen[24] >= 1
    assert seen[-1] == 2


def test_a_pid_used_again_is_read_at_once_though_nothing_of_it_was_due(proc: FakeProc) -> None:
    clock = FakeClock()
    tracker = proc.tracker(clock=clock)
    proc.add(100, ["sleep", "9"])
    for _ in range(3):
        clock.advance(5)
        assert names(tracker.refresh()) == []
    proc.remove(100)
    proc.add(100, ["vllm", "serve", "m"], start=OLD + 5)
    clock.advance(0.001)
    assert len(tracker.refresh().targets) == 1

    proc.remove(100)
    proc.add(100, ["sleep", "9"], start=OLD + 9)
    clock.advance(0.001)
    assert tracker.refresh().targets == ()


def test_what_is_over_the_limit_is_counted_in_each_round_and_read_when_there_is_room(
    proc: FakeProc, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert PROCESS_LIMIT >= MANY
    monkeypatch.setattr("inferwatch.targets.processes.PROCESS_LIMIT", 4)
    for pid in (100, 200):
        proc.add(pid, ["sleep", "9"])
    proc.add(1000, ["vllm", "serve", "m"])
    tracker = proc.tracker()
    for _ in range(2):
        table = tracker.refresh()
        assert (table.targets, table.left_out["processes"]) == ((), 1)

    proc.remove(200)
    table = tracker.refresh()
    assert (len(table.targets), table.left_out["processes"]) == (1, 0)


@pytest.mark.parametrize("size", [0, 1, FIRST_BYTES - 1, FIRST_BYTES, FIRST_BYTES + 1, 3 * FIRST_BYTES])
def test_files_are_read_to_their_end_or_the_limit(proc: FakeProc, size: int) -> None:
    (proc.proc / "1/cmdline").write_bytes(b"x" * size)
    reader = ProcReader(proc.proc)

    assert len(reader.read(1, "cmdline", 64 << 10)) == size
    assert len(reader.read(1, "cmdline", 5000)) == min(size, 5000)


def test_this_machines_own_command_line_is_read_whole() -> None:
    reader = ProcReader(Path("/proc"))

    assert reader.read("self", "cmdline", 64 << 10) == Path("/proc/self/cmdline").read_bytes()
    assert (
        reader.read("self", "status", 64 << 10).splitlines()[0]
        == Path("/proc/self/status").read_bytes().splitlines()[0]
    )
