from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from inferwatch.errors import NoData, SourceError
from inferwatch.model import Event, Sample
from inferwatch.samplers.targets import REMEMBERED, SAMPLER, History
from inferwatch.spec import PartialData, Sampler
from inferwatch.targets.model import ProcessId, Target, TargetProcess, TargetTable
from inferwatch.targets.reader import ProcReader
from support import FakeClock, host, make_context, names, value, values
from support_procfs import OLD, FakeProc, tcp_row

VLLM = ["python3", "/opt/bin/vllm", "serve", "m/x", "--port", "8000"]
LISTENS = {71: tcp_row("00000000", 8000, 71)}
CONTAINER = "3f" * 32
POD = "0123abcd-89ab-4cde-8f01-23456789abcd"
BOOTED = 1_700_000_000


class Bench:
    """A procfs of files with the sampler on it, and its events."""

    def __init__(self, root: Path) -> None:
        self.proc = FakeProc(root / "host")
        self.events: list[Event] = []
        self.clock = FakeClock()
        self.tracker = self.proc.tracker(clock=self.clock)
        context = make_context(self.proc.hostfs, targets=self.tracker, clock=self.clock, emit=self.events.append)
        self.sampler: Sampler = SAMPLER.create(context)

    async def sample(self) -> Sequence[Sample]:
        self.clock.advance(5)
        return await self.sampler.sample()

    def told(self) -> list[tuple[str, str]]:
        """Return kind and target of the events since the last time."""
        told = [(event.kind, event.target) for event in self.events]
        self.events.clear()
        return told


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path)


async def test_a_target_is_told_with_all_that_is_known_of_it(bench: Bench) -> None:
    logs = bench.proc.root / f"var/log/pods/team-a_llama-0_{POD}"
    logs.mkdir(parents=True)
    cgroup = f"0::/kubepods/pod{POD}/{CONTAINER}\n"
    bench.proc.add(100, VLLM, cgroup=cgroup, sockets=LISTENS)
    bench.proc.add(101, b"VLLM::EngineCore", ppid=100, start=OLD + 1, cgroup=cgroup)
    bench.proc.add(102, b"VLLM::Worker_TP0", ppid=101, start=OLD + 2, cgroup=cgroup)
    bench.proc.add(103, b"VLLM::Worker_TP1", ppid=101, start=OLD + 3, cgroup=cgroup)

    samples = await bench.sample()
    assert values(samples, "inferwatch_target_info") == {
        ("vllm-8000", "vllm", "m/x", "100,101,102,103", "3f3f3f3f3f3f", "llama-0", "team-a"): 1
    }
    assert values(samples, "inferwatch_target_processes") == {
        ("vllm-8000", "api_server"): 1,
        ("vllm-8000", "engine_core"): 1,
        ("vllm-8000", "worker"): 2,
    }
    assert value(samples, "inferwatch_target_start_time_seconds", "vllm-8000") == BOOTED + OLD / 100
    assert value(samples, "inferwatch_target_restarts_total", "vllm-8000") == 0


async def test_a_pod_that_the_host_does_not_name_is_told_by_its_uid(bench: Bench) -> None:
    bench.proc.add(100, VLLM, cgroup=f"0::/kubepods/pod{POD}/{CONTAINER}\n")

    ((*_, pod, namespace),) = values(await bench.sample(), "inferwatch_target_info")
    assert (pod, namespace) == (POD, "")


async def test_the_number_of_pids_shown_is_limited(bench: Bench) -> None:
    for number in range(30):
        bench.proc.add(100 + number, ["x"] if number else VLLM, ppid=100 if number else 1, start=OLD + number)

    samples = await bench.sample()
    ((_, _, _, pids, *_),) = values(samples, "inferwatch_target_info")
    assert pids == ",".join(str(number) for number in range(100, 120))
    assert value(samples, "inferwatch_target_processes", "vllm-8000", "child") == 29


async def test_a_host_without_targets_has_only_the_counts(bench: Bench) -> None:
    samples = await bench.sample()

    assert names(samples) == {"inferwatch_target_unreadable_processes", "inferwatch_target_left_out"}
    assert values(samples, "inferwatch_target_left_out") == {("processes",): 0, ("targets",): 0}


async def test_a_target_that_ends_takes_its_series_with_it(bench: Bench) -> None:
    bench.proc.add(100, VLLM, sockets=LISTENS)
    await bench.sample()
    bench.proc.remove(100)

    samples = await bench.sample()
    assert "inferwatch_target_info" not in names(samples)
    assert "inferwatch_target_restarts_total" not in names(samples)
    assert bench.told() == [("target_appeared", "vllm-8000"), ("target_gone", "vllm-8000")]


async def test_a_restart_under_the_same_name_is_counted_and_told(bench: Bench) -> None:
    bench.proc.add(100, VLLM, sockets=LISTENS)
    await bench.sample()
    bench.proc.remove(100)
    await bench.sample()
    bench.told()
    bench.proc.add(200, VLLM, start=OLD + 900, sockets=LISTENS)

    assert value(await bench.sample(), "inferwatch_target_restarts_total", "vllm-8000") == 1
    assert bench.told() == [("restart", "vllm-8000"), ("target_appeared", "vllm-8000")]


async def test_a_restart_between_two_samples_is_one_too(bench: Bench) -> None:
    bench.proc.add(100, VLLM, sockets=LISTENS)
    await bench.sample()
    bench.told()
    bench.proc.remove(100)
    bench.proc.add(200, VLLM, start=OLD + 900, sockets=LISTENS)
    await bench.sample()

    assert bench.told() == [("restart", "vllm-8000")]


async def test_the_name_that_a_target_has_until_it_listens_makes_no_restart(bench: Bench) -> None:
    for pid in (100, 200):
        bench.proc.add(pid, VLLM, start=OLD + pid)
        await bench.sample()
        bench.proc.listen(pid, LISTENS)
        for _ in range(20):
            await bench.sample()
        bench.proc.remove(pid)
        await bench.sample()

    assert [event.target for event in bench.events if event.kind == "restart"] == ["vllm-8000"]


async def test_a_server_that_never_gets_as_far_as_listening_is_counted_each_time(bench: Bench) -> None:
    for pid in (100, 200, 300):
        bench.proc.add(pid, VLLM, start=OLD + pid)
        samples = await bench.sample()
        bench.proc.remove(pid)
        await bench.sample()

    assert value(samples, "inferwatch_target_restarts_total", "vllm-8000") == 2


async def test_what_is_left_of_a_target_is_no_restart_and_has_no_start_time(bench: Bench) -> None:
    bench.proc.add(100, VLLM, sockets=LISTENS)
    bench.proc.add(101, b"VLLM::EngineCore", ppid=100, start=OLD + 1)
    await bench.sample()
    bench.told()
    bench.proc.remove(100)
    bench.proc.add(101, b"VLLM::EngineCore", ppid=1, start=OLD + 1)

    samples = await bench.sample()
    assert bench.told() == []
    assert values(samples, "inferwatch_target_processes") == {("vllm-8000", "engine_core"): 1}
    assert "inferwatch_target_start_time_seconds" not in names(samples)


async def test_an_unreachable_port_is_told_with_its_reason(bench: Bench) -> None:
    bench.proc.add(100, VLLM, namespace=4026532999, sockets={71: tcp_row("0100007F", 8000, 71)})

    assert values(await bench.sample(), "inferwatch_target_unreachable_info") == {
        ("vllm-8000", "8000", "loopback_of_other_namespace"): 1
    }


async def test_denied_processes_make_the_data_partial(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    bench.proc.add(100, VLLM)
    bench.proc.listen(900, {}, others=tcp_row("00000000", 8000, 71))
    real = ProcReader.open_files

    def denied(self: ProcReader, pid: int) -> Iterator[str]:
        if pid == 100:
            raise SourceError("/proc/100/fd: Permission denied", reason="permission_denied")
        return real(self, pid)

    monkeypatch.setattr(ProcReader, "open_files", denied)
    with pytest.raises(PartialData) as raised:
        await bench.sample()

    assert "CAP_SYS_PTRACE" in raised.value.problems["permission_denied"]
    assert value(raised.value.samples, "inferwatch_target_unreadable_processes") == 1
    assert value(raised.value.samples, "inferwatch_target_processes", "vllm-8000", "api_server") == 1


async def test_hidden_processes_make_the_data_partial_until_they_are_seen(bench: Bench) -> None:
    bench.proc.add(100, VLLM, sockets=LISTENS)
    bench.proc.remove(1)  # hidepid=2 lists only the agent's own user's
    with pytest.raises(PartialData) as raised:
        await bench.sample()

    (reason,) = raised.value.problems.values()
    assert "hidepid" in reason
    assert "CAP_SYS_PTRACE" in reason
    assert value(raised.value.samples, "inferwatch_target_processes", "vllm-8000", "api_server") == 1
    bench.proc.add(1, ["/sbin/init"], ppid=0, start=1)
    assert "inferwatch_target_info" in names(await bench.sample())


async def test_a_model_that_the_server_tells_is_told_where_the_command_line_has_none(bench: Bench) -> None:
    bench.proc.add(100, VLLM, sockets=LISTENS)
    bench.proc.add(200, ["llama-server", "--port", "9000"], sockets={72: tcp_row("00000000", 9000, 72)})
    await bench.sample()
    bench.tracker.learn_models({ProcessId(100, OLD): "served", ProcessId(200, OLD): "tiny"})
    labels = [*values(await bench.sample(), "inferwatch_target_info")]
    assert [(name, model) for name, _, model, *_ in labels] == [("llamacpp-9000", "tiny"), ("vllm-8000", "m/x")]

    bench.proc.add(200, ["llama-server", "--port", "9000"], start=OLD + 5, sockets={72: tcp_row("00000000", 9000, 72)})
    assert [model for _, _, model, *_ in values(await bench.sample(), "inferwatch_target_info")] == ["", "m/x"]


async def test_without_a_tracker_there_is_no_data() -> None:
    with pytest.raises(NoData, match="nothing looks for targets"):
        await SAMPLER.create(make_context(host("debian12-2cpu"))).sample()


def test_what_is_remembered_of_targets_that_are_gone_is_limited() -> None:
    history = History()
    for number in range(3 * REMEMBERED):
        identity = ProcessId(number + 1, number)
        process = TargetProcess(identity, 1, "x", "main")
        history.update(TargetTable((Target(f"t{number}", "custom", "", (process,), main=identity),)))

    assert len(history._seen) <= REMEMBERED + 1
