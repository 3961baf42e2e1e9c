"""The sampler `threads`: sums by target and role, from either source."""

from collections.abc import Sequence
from dataclasses import replace

import pytest

from inferwatch.errors import NoData, SourceError
from inferwatch.samplers import threads
from inferwatch.samplers._support.thread_groups import Groups
from inferwatch.samplers.threads import FALLBACK, RETRY_NS, SAMPLER, ThreadsOptions, ThreadsSampler
from inferwatch.sources.task_totals import (
    NameTotals,
    Omitted,
    OtherTotals,
    ProcessTotals,
    TaskSums,
    TaskTotals,
    ThreadStates,
)
from inferwatch.spec import PartialData
from inferwatch.targets.model import FixedTargets, ProcessId, Target, TargetProcess, TargetTable
from support import LIVE, FakeClock, make_context, values
from support_tasks import FORKS, worker

NOTHING = TaskSums(0, 0, 0, 0, 0, 0, 0, 0)


def sums(seconds: float, **more: float | None) -> TaskSums:
    return replace(NOTHING, user_seconds=seconds, **more)  # type: ignore[arg-type] # the fields' types differ


def process(pid: int, role: str = "server", start: int = 1) -> TargetProcess:
    return TargetProcess(ProcessId(pid, start), 1, "python", role)


def totals(
    seconds: float, start: int = 1, names: dict[str, float] | None = None, **more: float | None
) -> ProcessTotals:
    by_name = {name: NameTotals(1, sums(value)) for name, value in (names or {}).items()}
    return ProcessTotals(start, sums(seconds, **more), by_name, NOTHING, ThreadStates(running=1, sleeping=2))


def table(*processes: TargetProcess, name: str = "svc") -> TargetTable:
    return TargetTable((Target(name, "vllm", "tiny", processes),))


CPU = "inferwatch_target_cpu_seconds_total"


def test_processes_of_one_role_are_added_up() -> None:
    found = list(
        Groups(10).take(
            table(process(1, "worker"), process(2, "worker"), process(3, "api_server")),
            {1: totals(1, voluntary_switches=5), 2: totals(2, voluntary_switches=6), 3: totals(4)},
        )
    )

    assert values(found, CPU)["svc", "worker", "user"] == 3
    assert values(found, CPU)["svc", "api_server", "user"] == 4
    assert values(found, "inferwatch_target_context_switches_total")["svc", "worker", "voluntary"] == 11
    assert values(found, "inferwatch_target_threads") == {("svc", "worker"): 6, ("svc", "api_server"): 3}
    assert values(found, "inferwatch_target_thread_states")["svc", "worker", "sleeping"] == 4


def test_sum_does_not_fall_when_a_process_ends_and_goes_on_with_the_next() -> None:
    groups = Groups(10)
    seen = []
    for processes, found in (
        ([process(1), process(2)], {1: totals(10), 2: totals(5)}),
        ([process(1)], {1: totals(11)}),
        ([process(1), process(3)], {1: totals(12), 3: totals(1)}),
    ):
        samples = list(groups.take(table(*processes), found))
        seen.append(values(samples, CPU)["svc", "server", "user"])

    assert seen == [15, 16, 18]


def test_pid_that_is_used_again_is_a_new_process() -> None:
    groups = Groups(10)
    list(groups.take(table(process(1, start=1)), {1: totals(10, start=1)}))

    samples = list(groups.take(table(process(1, start=2)), {1: totals(3, start=2)}))

    assert values(samples, CPU)["svc", "server", "user"] == 13


def test_reading_of_another_process_with_the_same_pid_is_not_taken() -> None:
    assert not values(list(Groups(10).take(table(process(1, start=1)), {1: totals(99, start=7)})), CPU)


def test_target_that_is_gone_takes_its_series_with_it_and_goes_on_when_it_returns() -> None:
    groups = Groups(10)
    list(groups.take(table(process(1)), {1: totals(10)}))

    assert list(groups.take(TargetTable(), {})) == []
    assert values(list(groups.take(table(process(5)), {5: totals(1)})), CPU)["svc", "server", "user"] == 11


def test_names_of_targets_that_never_return_do_not_pile_up() -> None:
    groups = Groups(10)
    for number in range(600):
        list(groups.take(table(process(number + 1), name=f"svc-{number}"), {number + 1: totals(1)}))

    assert len(groups._targets) <= 257
    assert len(groups._processes) <= 513


def cpu_of(groups: Groups, found: TargetTable, readings: dict[int, ProcessTotals], source: str = "bpf") -> float | None:
    return values(list(groups.take(found, readings, source)), CPU).get(("svc", "server", "user"))


def test_process_that_left_and_returned_is_not_counted_again_nor_what_it_did_meanwhile() -> None:
    groups = Groups(10)
    both = table(process(1), process(2))

    assert cpu_of(groups, both, {1: totals(10), 2: totals(100)}) == 110
    assert cpu_of(groups, table(process(1)), {1: totals(11)}) == 111
    assert cpu_of(groups, both, {1: totals(11), 2: totals(150)}) == 111
    assert cpu_of(groups, both, {1: totals(11), 2: totals(151)}) == 112


def test_process_that_is_missing_from_a_reading_loses_nothing() -> None:
    groups = Groups(10)
    both = table(process(1), process(2))
    cpu_of(groups, both, {1: totals(10), 2: totals(100)})

    assert cpu_of(groups, both, {1: totals(10)}) == 110
    assert cpu_of(groups, both, {1: totals(10), 2: totals(105)}) == 115


def test_process_whose_target_changes_its_name_is_counted_once() -> None:
    groups = Groups(10)
    list(groups.take(table(process(1), name="vllm"), {1: totals(60)}))
    samples = list(groups.take(table(process(1), name="vllm-8000"), {1: totals(61)}))

    assert values(samples, CPU)["vllm-8000", "server", "user"] == 1


def test_change_of_the_source_counts_nothing_twice() -> None:
    groups = Groups(10)
    one = table(process(1))
    assert cpu_of(groups, one, {1: totals(100)}, "bpf") == 100
    assert cpu_of(groups, one, {1: totals(40)}, "procfs") == 100  # it knows less of the past
    assert cpu_of(groups, one, {1: totals(45)}, "procfs") == 105
    assert cpu_of(groups, one, {1: totals(106)}, "bpf again") == 106
    assert cpu_of(groups, one, {1: totals(107)}, "bpf again") == 107


def test_process_that_a_new_source_shows_late_is_not_counted_again() -> None:
    groups = Groups(10)
    one = table(process(1))
    assert cpu_of(groups, one, {1: totals(100)}, "bpf") == 100
    assert cpu_of(groups, one, {1: totals(40)}, "procfs") == 100
    assert cpu_of(groups, one, {}, "bpf again") == 100
    assert cpu_of(groups, one, {1: totals(106)}, "bpf again") == 106


def test_process_that_returned_and_was_missing_at_first_brings_nothing_from_its_absence() -> None:
    groups = Groups(10)
    both = table(process(1), process(2))
    cpu_of(groups, both, {1: totals(10), 2: totals(100)})
    cpu_of(groups, table(process(1)), {1: totals(10)})

    assert cpu_of(groups, both, {1: totals(10)}) == 110
    assert cpu_of(groups, both, {1: totals(10), 2: totals(190)}) == 110
    assert cpu_of(groups, both, {1: totals(10), 2: totals(191)}) == 111


def test_figures_that_fall_by_themselves_go_on_from_there() -> None:
    groups = Groups(10)
    one = table(process(1))
    assert cpu_of(groups, one, {1: totals(100)}) == 100
    assert cpu_of(groups, one, {1: totals(30)}) == 100
    assert cpu_of(groups, one, {1: totals(31)}) == 101


def reaped(own: float, children: float, **more: float | None) -> ProcessTotals:
    return replace(totals(own), reaped=sums(children, **more))


def child(pid: int, parent: int) -> TargetProcess:
    return TargetProcess(ProcessId(pid, 1), parent, "python", "server")


def test_children_that_came_and_went_between_two_readings_are_told() -> None:
    groups = Groups(10)
    list(groups.take(table(process(1)), {1: reaped(10, 0)}))
    found = values(list(groups.take(table(process(1)), {1: reaped(11, 7)})), CPU)

    assert found["svc", "server", "user"] == 11
    assert found["svc", "reaped_children", "user"] == 7


@pytest.mark.parametrize("still_listed", [True, False])
def test_child_that_was_seen_alive_is_not_counted_twice_when_its_parent_waits_for_it(*, still_listed: bool) -> None:
    groups = Groups(10)
    family = table(process(1), child(2, parent=1))
    list(groups.take(family, {1: reaped(10, 0), 2: totals(5)}))
    list(groups.take(family, {1: reaped(10, 0), 2: totals(20)}))
    seen = [
        values(list(groups.take(found, {1: reaped(10, children)})), CPU)
        for found, children in ((family if still_listed else table(process(1)), 23.0), (table(process(1)), 25.0))
    ]

    assert [one["svc", "server", "user"] for one in seen] == [30, 30]
    assert [one["svc", "reaped_children", "user"] for one in seen] == pytest.approx(
        [3, 5]
    )  # what it did unseen, and another child


def test_grandchild_that_ended_together_with_its_parent_is_not_counted_twice() -> None:
    groups = Groups(10)
    family = table(process(1), child(2, parent=1), child(3, parent=2))
    list(groups.take(family, {1: reaped(10, 0), 2: reaped(5, 0), 3: totals(20)}))
    found = values(list(groups.take(table(process(1)), {1: reaped(10, 26)})), CPU)

    assert found["svc", "server", "user"] == 35
    assert found["svc", "reaped_children", "user"] == pytest.approx(1)


def test_child_that_was_only_missing_leaves_no_debt() -> None:
    groups = Groups(10)
    family = table(process(1), child(2, parent=1))
    list(groups.take(family, {1: reaped(10, 0), 2: totals(20)}))
    list(groups.take(family, {1: reaped(10, 0)}))
    list(groups.take(family, {1: reaped(10, 0), 2: totals(21)}))
    found = values(list(groups.take(family, {1: reaped(10, 4), 2: totals(21)})), CPU)

    assert found["svc", "reaped_children", "user"] == 4


def test_what_is_in_no_thread_name_is_other_so_that_the_names_add_up() -> None:
    found = replace(totals(10, names={"a": 6.0}), unattributed=sums(4))
    samples = list(Groups(10).take(table(process(1)), {1: found}))

    assert values(samples, "inferwatch_target_thread_cpu_seconds_total") == {
        ("svc", "server", "a"): 6,
        ("svc", "server", "other"): 4,
    }


def named(**seconds: tuple[int, float]) -> ProcessTotals:
    by_name = {name: NameTotals(threads, sums(value)) for name, (threads, value) in seconds.items()}
    return replace(totals(sum(value for _, value in seconds.values())), by_name=by_name)


def test_name_without_threads_gives_its_place_to_a_living_one_and_other_does_not_jump() -> None:
    groups = Groups(2)
    one, by_thread = table(process(1)), "inferwatch_target_thread_cpu_seconds_total"
    list(groups.take(one, {1: named(a=(1, 100.0), b=(1, 5.0))}))
    for _ in range(2):
        list(groups.take(one, {1: named(a=(0, 100.0), b=(1, 5.0))}))
    samples = list(groups.take(one, {1: named(a=(0, 100.0), b=(1, 5.0), c=(1, 2.0))}))

    assert values(samples, by_thread) == {("svc", "server", "b"): 5, ("svc", "server", "c"): 2}


def test_name_that_lost_its_place_and_returns_goes_on_from_its_old_sum() -> None:
    groups = Groups(1)
    one, by_thread = table(process(1)), "inferwatch_target_thread_cpu_seconds_total"
    list(groups.take(one, {1: named(a=(1, 100.0))}))
    for _ in range(3):
        list(groups.take(one, {1: named(a=(0, 100.0), b=(1, 1.0))}))
    for _ in range(3):
        found = values(list(groups.take(one, {1: named(a=(1, 103.0), b=(0, 1.0))})), by_thread)

    assert found == {("svc", "server", "a"): 100, ("svc", "server", "other"): 4}  # what was done without a place


def test_rest_takes_no_place_of_a_name() -> None:
    found = replace(totals(10, names={"a": 3.0, "b": 3.0}), unattributed=sums(4))
    groups = Groups(2)
    list(groups.take(table(process(1)), {1: replace(found, by_name={})}))
    by_thread = values(list(groups.take(table(process(1)), {1: found})), "inferwatch_target_thread_cpu_seconds_total")

    assert by_thread == {("svc", "server", "a"): 3, ("svc", "server", "b"): 3, ("svc", "server", "other"): 4}


def test_names_that_come_and_go_without_end_do_not_pile_up() -> None:
    groups = Groups(2)
    for number in range(500):
        passing = f"n{number}"
        list(groups.take(table(process(1)), {1: named(a=(1, number + 1.0), b=(1, 1.0), **{passing: (1, 1.0)})}))
    names = groups._targets["svc"].names

    assert (len(names._shown), len(names._others)) == (2, 1)
    assert len(names._gone) <= 2
    assert len(next(iter(groups._processes.values())).names) == 3


def test_quantity_that_the_kernel_does_not_count_is_absent() -> None:
    bare = totals(1, run_queue_wait_seconds=None, timeslices=None)
    samples = list(Groups(10).take(table(process(1)), {1: bare}))

    assert not values(samples, "inferwatch_target_run_queue_wait_seconds_total")
    assert not values(samples, "inferwatch_target_timeslices_total")


def test_thread_names_over_the_limit_are_other() -> None:
    names = {f"name{letter}": 1.0 for letter in "abcdef"}
    samples = list(Groups(2).take(table(process(1)), {1: totals(6, names=names)}))
    by_thread = values(samples, "inferwatch_target_thread_cpu_seconds_total")

    assert by_thread == {("svc", "server", "namea"): 1, ("svc", "server", "nameb"): 1, ("svc", "server", "other"): 4}


class FakeSource:
    """Stands for the iterator: says what it is told, or fails."""

    fail: Exception | None = None
    made = 0

    def __init__(self, *_arguments: object) -> None:
        FakeSource.made += 1
        if FakeSource.fail is not None:
            raise FakeSource.fail

    def set_targets(self, pids: Sequence[int]) -> None:
        self.pids = list(pids)

    def read(self) -> TaskTotals:
        if FakeSource.fail is not None:
            raise FakeSource.fail
        return TaskTotals({1: totals(1)}, OtherTotals(sums(50), ThreadStates(sleeping=9)), Omitted())

    def close(self) -> None:
        pass


@pytest.fixture
def fake_iterator(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(threads, "TaskIterator", FakeSource)
    monkeypatch.setattr(FakeSource, "fail", None)
    monkeypatch.setattr(FakeSource, "made", 0)


def sampler_of(found: TargetTable, clock: FakeClock | None = None, **options: str) -> ThreadsSampler:
    options_model = ThreadsOptions.model_validate(options)
    return ThreadsSampler(make_context(LIVE, options_model, clock=clock or FakeClock(), targets=FixedTargets(found)))


@pytest.mark.usefixtures("fake_iterator")
async def test_rest_of_the_node_is_one_group() -> None:
    samples = await sampler_of(table(process(1))).sample()

    assert values(samples, CPU)["other", "other", "user"] == 50
    assert values(samples, "inferwatch_target_threads")["other", "other"] == 9
    assert values(samples, "inferwatch_threads_source_info") == {("bpf",): 1}


@pytest.mark.usefixtures("fake_iterator")
@pytest.mark.parametrize("error", [NoData("no BTF"), SourceError("CAP_BPF is missing", reason="permission_denied")])
async def test_iterator_that_can_not_be_had_is_replaced_by_files_and_tried_again(error: Exception) -> None:
    clock = FakeClock()
    sampler = sampler_of(TargetTable(), clock)
    FakeSource.fail = error

    for _ in range(3):
        with pytest.raises(PartialData) as caught:
            await sampler.sample()
    assert str(error) in caught.value.problems[FALLBACK]
    assert values(caught.value.samples, "inferwatch_threads_source_info") == {("procfs",): 1}
    assert FakeSource.made == 1

    FakeSource.fail = None
    clock.advance(RETRY_NS / 1e9)
    samples = await sampler.sample()

    assert values(samples, "inferwatch_threads_source_info") == {("bpf",): 1}


@pytest.mark.usefixtures("fake_iterator")
async def test_iterator_that_fails_later_is_replaced_within_the_same_run() -> None:
    sampler = sampler_of(TargetTable())
    await sampler.sample()
    FakeSource.fail = SourceError("read: Input/output error", reason="bpf")

    with pytest.raises(PartialData) as caught:
        await sampler.sample()
    assert values(caught.value.samples, "inferwatch_threads_source_info") == {("procfs",): 1}


@pytest.mark.usefixtures("fake_iterator")
async def test_user_who_wants_only_bpf_gets_the_error() -> None:
    FakeSource.fail = NoData("no BTF")

    with pytest.raises(NoData, match="no BTF"):
        await sampler_of(TargetTable(), source="bpf").sample()


@pytest.mark.real("ebpf")
@pytest.mark.parametrize("source", ["bpf", "procfs"])
async def test_cpu_time_of_a_real_process_agrees_with_its_own_clock(source: str) -> None:
    code = "burn(0.4); tell(time.process_time()); wait()"
    with worker(code) as running:
        spent = float(running.first[0])
        found = table(process(running.pid, start=running.stat().start_ticks), name="real")
        sampler = sampler_of(found, source=source)
        samples = await sampler.sample()
        await sampler.close()

    cpu = values(samples, CPU)
    assert cpu["real", "server", "user"] + cpu["real", "server", "system"] == pytest.approx(spent, abs=0.05)
    assert values(samples, "inferwatch_threads_source_info") == {(source,): 1}


def test_samples_are_of_declared_families() -> None:
    samples = list(Groups(10).take(table(process(1)), {1: totals(1, names={"a": 1.0})}))

    assert {s.family for s in samples} <= set(SAMPLER.families)


@pytest.mark.real("ebpf")
@pytest.mark.parametrize("source", ["bpf", "procfs"])
async def test_a_target_that_works_in_short_lived_children_has_all_of_their_time(source: str) -> None:
    with worker(FORKS) as running:
        sampler = sampler_of(table(process(running.pid, start=running.stat().start_ticks)), source=source)
        await sampler.sample()
        running.go_on()
        spent = float(running.line()[0])
        cpu = values(await sampler.sample(), CPU)
        await sampler.close()

    assert spent > 0.4
    assert sum(cpu["svc", role, mode] for role in ("server", "reaped_children") for mode in ("user", "system")) == (
        pytest.approx(spent, abs=0.05)
    )
