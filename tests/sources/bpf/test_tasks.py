"""The iterator on the real kernel, against numbers that come from elsewhere."""

import contextlib
import os
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict
from itertools import pairwise
from pathlib import Path

import pytest

from inferwatch.errors import NoData
from inferwatch.sources.bpf.tasks import TaskIterator
from inferwatch.sources.task_totals import ProcessTotals, TaskSums
from inferwatch.sources.tasks_proc import TaskFiles
from support_tasks import CHURN, FORKS, LIVE, PING_PONG, SPIN, THREADS, USER_HZ, Worker, worker

pytestmark = pytest.mark.real("ebpf")

PERCENT = 0.01


@pytest.fixture
def tasks() -> Iterator[TaskIterator]:
    with contextlib.closing(TaskIterator()) as iterator:
        yield iterator


def read(tasks: TaskIterator | TaskFiles, *workers: Worker) -> list[ProcessTotals]:
    tasks.set_targets([one.pid for one in workers])
    found = tasks.read().processes
    return [found[one.pid] for one in workers]


def cpu(sums: TaskSums) -> float:
    return sums.user_seconds + sums.system_seconds


def switches(sums: TaskSums) -> int:
    return (sums.voluntary_switches or 0) + (sums.involuntary_switches or 0)


def figures(one: ProcessTotals) -> dict[tuple[str, str], float]:
    """Return everything that must never fall, by part of the process and field."""
    parts = {"total": one.total, "unattributed": one.unattributed}
    parts |= {f"name {name}": named.sums for name, named in one.by_name.items()}
    return {(part, field): figure for part, sums in parts.items() for field, figure in asdict(sums).items()}


def fallen(readings: list[ProcessTotals]) -> list[tuple[str, str]]:
    """Return what fell, or vanished, from one reading to the next."""
    pairs = pairwise(map(figures, readings))
    return [key for old, new in pairs for key, figure in old.items() if new.get(key, -1) < figure]


def test_iterator_and_proc_files_give_the_same_numbers(tasks: TaskIterator) -> None:
    with worker(THREADS) as threads:
        threads.freeze()
        time.sleep(0.3)  # the last to stop leaves its CPU a moment after it has stopped
        [mine], [files] = read(tasks, threads), read(TaskFiles(LIVE), threads)

    assert mine.start_ticks == files.start_ticks
    assert mine.states == files.states
    assert {name: named.threads for name, named in mine.by_name.items()} == {
        name: named.threads for name, named in files.by_name.items()
    }
    assert {name: counts(named.sums) for name, named in mine.by_name.items()} == {
        name: counts(named.sums) for name, named in files.by_name.items()
    }
    assert cpu(mine.total) == pytest.approx(cpu(files.total), abs=2 / USER_HZ)
    assert mine.total.user_seconds == pytest.approx(files.total.user_seconds, abs=2 / USER_HZ)


def counts(sums: TaskSums) -> tuple[float | None, ...]:
    """Return what both sources take from the same places."""
    return (
        round(cpu(sums), 9),  # whole nanoseconds; with fewer digits a 5 at the end is rounded either way
        sums.run_queue_wait_seconds,
        sums.timeslices,
        sums.voluntary_switches,
        sums.involuntary_switches,
        sums.minor_faults,
        sums.major_faults,
    )


def test_threads_are_summed_by_name_with_digits_as_one_sign(tasks: TaskIterator) -> None:
    with worker(THREADS) as threads:
        [totals] = read(tasks, threads)

    assert sorted(named.threads for named in totals.by_name.values()) == [1, 2, 3]
    assert totals.by_name["worker-#"].threads == 3
    assert totals.by_name["idle (a) b"].threads == 2
    assert cpu(totals.by_name["worker-#"].sums) == pytest.approx(0.45, rel=0.1)
    assert cpu(totals.by_name["idle (a) b"].sums) < 0.02
    assert totals.states.sleeping + totals.states.running == totals.states.threads == 6


def test_new_target_begins_with_its_whole_past_as_proc_does(tasks: TaskIterator) -> None:
    with worker(THREADS) as threads:
        threads.freeze()
        [totals] = read(tasks, threads)
        stat = threads.stat()
        expected = threads.cpu_seconds()

    assert cpu(totals.total) == pytest.approx(expected, abs=2 / USER_HZ)
    assert totals.total.minor_faults == stat.minor_faults
    assert totals.start_ticks == stat.start_ticks


def test_target_that_becomes_one_again_begins_anew(tasks: TaskIterator) -> None:
    with worker(THREADS) as threads:
        threads.freeze()
        [before] = read(tasks, threads)
        read(tasks)
        [after] = read(tasks, threads)

    assert counts(after.total) == counts(before.total)
    assert counts(after.by_name["worker-#"].sums) == counts(before.by_name["worker-#"].sums)


@pytest.mark.parametrize("source", [TaskIterator, lambda: TaskFiles(LIVE)], ids=["iterator", "files"])
def test_short_lived_threads_are_in_the_total_and_no_sum_falls(source: Callable[[], TaskIterator | TaskFiles]) -> None:
    with contextlib.closing(source()) as tasks, worker(CHURN, "2") as churn:
        readings = []
        while True:
            readings.append(read(tasks, churn)[0])
            if len(readings) == 20:
                seconds, *counted = churn.line()
                voluntary, involuntary, faults = map(int, counted)
                break
            time.sleep(0.12)
        [last] = read(tasks, churn)
        expected = churn.cpu_seconds()

    # /proc/PID/stat tells whole ticks: of what takes a second, two of them are more than a hundredth
    assert cpu(last.total) == pytest.approx(expected, rel=PERCENT, abs=2 / USER_HZ)
    assert last.total.minor_faults == pytest.approx(faults, rel=PERCENT)
    if isinstance(tasks, TaskIterator):  # the files are in ticks, too, and don't keep the switches of dead threads
        assert cpu(last.total) == pytest.approx(float(seconds), rel=PERCENT)
        assert switches(last.total) == pytest.approx(voluntary + involuntary, rel=PERCENT)
    assert cpu(last.unattributed) > expected / 2
    assert fallen([*readings, last]) == []


def test_parts_add_up_to_the_total(tasks: TaskIterator) -> None:
    with worker(CHURN, "0.5") as churn:
        read(tasks, churn)
        churn.line()
        [totals] = read(tasks, churn)
    parts = [totals.unattributed, *(named.sums for named in totals.by_name.values())]

    assert sum(map(cpu, parts)) == pytest.approx(cpu(totals.total))
    assert sum(part.voluntary_switches or 0 for part in parts) == totals.total.voluntary_switches
    assert sum(part.timeslices or 0 for part in parts) == totals.total.timeslices


def test_ping_pong_has_one_switch_a_round_trip_and_process(tasks: TaskIterator) -> None:
    times = 20_000
    with worker(PING_PONG, str(times)) as game:
        [before] = read(tasks, game)
        game.go_on()
        game.line()
        [after] = read(tasks, game)

    assert switches(after.total) - switches(before.total) == pytest.approx(times, rel=PERCENT)


def test_processes_on_one_cpu_wait_for_the_share_that_they_do_not_run(tasks: TaskIterator) -> None:
    # N processes on M CPUs wait (N - M) / N of the time. M is 1 on a quiet machine; what others take of that CPU is not
    # the processes' to run, so M is read from /proc/PID/stat.
    # The clock, the iterator and /proc are read one after the other: on a busy machine time passes in between, so an
    # attempt that this spoilt is made again.
    number = 3
    shares = []
    with contextlib.ExitStack() as stack:
        last_cpu = str(max(os.sched_getaffinity(0)))
        spinners = [stack.enter_context(worker(SPIN, last_cpu)) for _ in range(number)]
        for _ in range(4):
            began, ran_before, waited_before = look(tasks, spinners)
            time.sleep(2.5)
            ended, ran_after, waited_after = look(tasks, spinners)
            cpus = (ran_after - ran_before) / (ended - began)
            shares.append(((waited_after - waited_before) / (number * (ended - began)), (number - cpus) / number))
            if shares[-1][0] == pytest.approx(shares[-1][1], rel=0.05):
                break

    assert shares[-1][0] == pytest.approx(shares[-1][1], rel=0.05), shares


def look(tasks: TaskIterator, workers: list[Worker]) -> tuple[float, float, float]:
    """Return the time, and what the workers ran and waited so far."""
    now, found, ran = time.monotonic(), read(tasks, *workers), sum(one.cpu_seconds() for one in workers)
    return now, ran, sum(process.total.run_queue_wait_seconds or 0 for process in found)


def test_rest_of_the_node_grows_by_what_a_process_that_is_no_target_does(tasks: TaskIterator) -> None:
    before = tasks.read().other
    with worker("tell('ready')\nwait()\nburn(0.5)\ntell('done')\nwait()") as busy:
        busy.go_on()
        busy.line()
        after = tasks.read().other
    last = tasks.read().other

    assert before
    assert after
    assert last
    assert cpu(after.sums) - cpu(before.sums) >= 0.5
    assert cpu(last.sums) >= cpu(after.sums)


def test_process_that_ended_is_dropped(tasks: TaskIterator) -> None:
    with worker(THREADS) as threads:
        read(tasks, threads)
        threads.end()

        assert tasks.read().processes == {}
    assert tasks._names.items() == []
    assert tasks._processes.items() == []
    assert tasks._targets.items() == []


def test_pid_that_was_given_to_another_process_is_not_the_target(tasks: TaskIterator) -> None:
    last_pid = Path("/proc/sys/kernel/ns_last_pid")
    with worker(THREADS) as old:
        read(tasks, old)
        old.end()
    for _ in range(50):
        last_pid.write_text(f"{old.pid - 1}\n", encoding="ascii")
        with worker("tell('ready')\nwait()") as new:
            if new.pid == old.pid:
                assert tasks.read().processes == {}
                assert read(tasks, new)[0].start_ticks == new.stat().start_ticks
                return
    pytest.fail("the pid could not be had again")


def test_thread_states_are_those_of_proc(tasks: TaskIterator) -> None:
    zombie = "child = os.fork()\nif not child: os._exit(0)\ntime.sleep(0.1)\ntell('ready')\nwait()"
    with (
        worker(SPIN, str(min(os.sched_getaffinity(0)))) as running,
        worker(zombie) as parent,
        worker(THREADS) as stopped,
    ):
        children = Path(f"/proc/{parent.pid}/task/{parent.pid}/children").read_text(encoding="ascii")
        stopped.freeze()
        tasks.set_targets([running.pid, int(children), stopped.pid])
        found = tasks.read().processes

        assert found[running.pid].states.running == 1
        assert found[int(children)].states.zombie == 1
        assert found[stopped.pid].states.stopped == found[stopped.pid].states.threads == 6


MANY_NAMES = """
done = threading.Barrier(141)
def rest(text):
    name(text)
    done.wait()
    time.sleep(1e6)
for index in range(140): start(rest, "n" + chr(97 + index // 20) + chr(97 + index % 20))
done.wait()
tell("ready")
wait()
"""


def test_threads_over_the_limit_of_names_are_counted_and_stay_in_the_total(tasks: TaskIterator) -> None:
    with worker(MANY_NAMES) as threads:
        threads.freeze()
        tasks.set_targets([threads.pid])
        reading = tasks.read()
        [files] = read(TaskFiles(LIVE), threads)
    totals = reading.processes[threads.pid]

    assert len(totals.by_name) == 128
    assert reading.omitted.names == 141 - 128
    assert totals.total.timeslices == files.total.timeslices
    assert totals.unattributed.timeslices


def test_targets_over_the_limit_are_counted(tasks: TaskIterator) -> None:
    tasks.set_targets(range(1 << 30, (1 << 30) + 1030))

    assert tasks.read().omitted.processes == 1030 - 1024


def test_own_pid_namespace_is_no_data(tasks: TaskIterator, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "getpid", lambda: 1)

    with pytest.raises(NoData, match=r"pid namespace of its own \(pid 1 here, \d+ on the host\).*hostPID"):
        tasks.read()


def test_children_that_were_waited_for_are_told_by_both_sources(tasks: TaskIterator) -> None:
    with worker(FORKS) as parent:
        [before] = read(tasks, parent)
        parent.go_on()
        _, seconds, switched, faults = map(float, parent.line())
        [mine], [files] = read(tasks, parent), read(TaskFiles(LIVE), parent)

    assert before.reaped
    assert cpu(before.reaped) == 0
    assert mine.reaped
    assert files.reaped
    assert cpu(mine.reaped) == pytest.approx(seconds, abs=1e-5)
    assert switches(mine.reaped) == switched
    assert mine.reaped.minor_faults == files.reaped.minor_faults == faults
    assert cpu(files.reaped) == pytest.approx(seconds, abs=2 / USER_HZ)
    assert files.reaped.voluntary_switches is None
    assert mine.reaped.run_queue_wait_seconds is None


RENAMES = """
tell("ready")
words = ["".join(chr(97 + (index // 26 ** place) % 26) for place in range(3)) for index in range(400)]
for begin in range(0, 400, 50):
    stop = threading.Event()
    def hold(text):
        name(text)
        burn(0.001)
        stop.wait()
    threads = [threading.Thread(target=hold, args=(text,)) for text in words[begin:begin + 50]]
    for thread in threads: thread.start()
    tell("batch")
    wait()
    stop.set()
    for thread in threads: thread.join()
    tell("joined")
    wait()
def last():
    name("late_comer")
    burn(0.05)
    tell("late")
    time.sleep(1e6)
start(last)
wait()
"""


@pytest.mark.parametrize("source", [TaskIterator, lambda: TaskFiles(LIVE)], ids=["iterator", "files"])
def test_names_whose_threads_have_ended_give_their_places_to_new_ones(
    source: Callable[[], TaskIterator | TaskFiles],
) -> None:
    readings = []
    with contextlib.closing(source()) as tasks, worker(RENAMES) as parent:
        for _ in range(16):
            assert parent.line()[0] in {"batch", "joined"}
            readings.append(read(tasks, parent)[0])
            parent.go_on()
        parent.line()
        [last] = read(tasks, parent)
        expected = parent.cpu_seconds()

    assert cpu(last.by_name["late_comer"].sums) == pytest.approx(0.05, abs=0.03)
    assert len(last.by_name) <= 128
    assert cpu(last.total) == pytest.approx(expected, abs=3 / USER_HZ)
    totals = [cpu(one.total) for one in [*readings, last]]
    assert totals == sorted(totals)
    rests = [cpu(one.unattributed) for one in [*readings, last]]
    assert rests[-1] < expected / 2  # what was in the names that are gone did not go there
