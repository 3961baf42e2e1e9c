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
from support_tasks import worker

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


def test_target_that_is_gone_takes_its_series_with_it_and_begins_anew() -> None:
    groups = Groups(10)
    list(groups.take(table(process(1)), {1: totals(10)}))

    assert list(groups.take(TargetTable(), {})) == []
    assert values(list(groups.take(table(process(5)), {5: totals(1)})), CPU)["svc", "server", "user"] == 1


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
