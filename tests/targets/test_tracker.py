import json
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from inferwatch.config_targets import DiscoveryConfig, TargetConfig, TargetMatch
from inferwatch.errors import NoData, SourceError
from inferwatch.sources.hostfs import HostFs
from inferwatch.targets.model import ProcessId, TargetTable, Unreachable
from inferwatch.targets.reader import ProcReader
from inferwatch.targets.recognisers import ROLES
from inferwatch.targets.tracker import TargetTracker
from support import FakeClock
from support_procfs import OLD, UPTIME_SECONDS, FakeProc, named, names, roles, tcp_row

VLLM = ["/usr/bin/python3", "/opt/bin/vllm", "serve", "m/x", "--port", "8000"]
CORE = b"VLLM::EngineCore\0\0\0"
LISTENS = {71: tcp_row("00000000", 8000, 71)}
YOUNG = (UPTIME_SECONDS - 5) * 100


@pytest.fixture
def proc(tmp_path: Path) -> FakeProc:
    return FakeProc(tmp_path / "host")


def rule(name: str, **match: object) -> TargetConfig:
    return TargetConfig(name=name, match=TargetMatch.model_validate(match))


def count_reads(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return the list that every file read of a process is added to."""
    reads: list[str] = []
    real = ProcReader.read

    def read(self: ProcReader, pid: int | str, name: str, limit: int) -> bytes:
        reads.append(f"{pid}/{name}")
        return real(self, pid, name, limit)

    monkeypatch.setattr(ProcReader, "read", read)
    return reads


def deny(monkeypatch: pytest.MonkeyPatch, *files: str) -> None:
    """Refuse reading some files of processes."""

    def refuse(real: object) -> object:
        def refused(self: ProcReader, pid: int, name: str = "fd", *rest: int) -> object:
            if name in files:
                raise SourceError(f"/proc/{pid}/{name}: Permission denied", reason="permission_denied")
            arguments = (pid,) if real is opened else (pid, name, *rest)
            return real(self, *arguments)  # type: ignore[operator] # one of the reader's methods

        return refused

    opened = ProcReader.open_files
    for method in ("read", "link", "open_files"):
        monkeypatch.setattr(ProcReader, method, refuse(getattr(ProcReader, method)))


def test_a_server_with_its_children_is_one_target(proc: FakeProc) -> None:
    proc.add(100, VLLM, sockets=LISTENS)
    proc.add(101, CORE, ppid=100, start=OLD + 1)
    proc.add(102, ["python3", "-c", "from multiprocessing.spawn import spawn_main"], ppid=101, start=OLD + 2)

    (target,) = proc.tracker().refresh().targets
    assert (target.name, target.engine, target.model, target.main) == ("vllm-8000", "vllm", "m/x", ProcessId(100, OLD))
    assert roles(target) == {100: "api_server", 101: "engine_core", 102: "child"}


def test_two_servers_are_two_targets(proc: FakeProc) -> None:
    for pid, port in ((100, 8000), (200, 8001)):
        proc.add(pid, [*VLLM[:4], "--port", str(port)], sockets={pid: tcp_row("00000000", port, pid)})
        proc.add(pid + 1, CORE, ppid=pid, start=OLD + 1)

    table = proc.tracker().refresh()
    assert [(target.name, [*roles(target)]) for target in table.targets] == [
        ("vllm-8000", [100, 101]),
        ("vllm-8001", [200, 201]),
    ]


def test_a_fork_that_has_no_title_yet_is_no_second_server(proc: FakeProc) -> None:
    proc.add(100, VLLM)
    proc.add(101, VLLM, ppid=100, start=OLD + 1)

    (target,) = proc.tracker().refresh().targets
    assert roles(target) == {100: "api_server", 101: "child"}


def test_what_is_left_of_a_server_stays_its_target_until_it_ends(proc: FakeProc) -> None:
    tracker = proc.tracker()
    proc.add(100, VLLM, sockets=LISTENS)
    proc.add(101, CORE, ppid=100, start=OLD + 1)
    proc.add(102, ["sleep", "9"], ppid=100, start=OLD + 2)
    tracker.refresh()
    proc.remove(100)
    for pid in (101, 102):
        proc.add(pid, CORE if pid == 101 else ["sleep", "9"], ppid=1, start=OLD + pid - 100)

    (target,) = tracker.refresh().targets
    assert (target.name, target.main, target.model, sorted(roles(target))) == ("vllm-8000", None, "m/x", [101, 102])

    proc.remove(101)
    proc.remove(102)
    assert tracker.refresh().targets == ()


def test_a_new_server_takes_the_name_from_what_is_left_of_the_old(proc: FakeProc) -> None:
    tracker = proc.tracker()
    proc.add(100, VLLM, sockets=LISTENS)
    proc.add(101, CORE, ppid=100, start=OLD + 1)
    tracker.refresh()
    proc.remove(100)
    proc.add(101, CORE, ppid=1, start=OLD + 1)
    proc.add(300, VLLM, start=OLD + 500, sockets=LISTENS)

    table = tracker.refresh()
    assert {target.name: [*roles(target)] for target in table.targets} == {
        "vllm-8000-orphan": [101],
        "vllm-8000": [300],
    }


def test_a_target_that_ends_leaves_the_table_at_the_next_refresh(proc: FakeProc) -> None:
    tracker = proc.tracker()
    proc.add(100, VLLM)
    assert names(tracker.refresh()) == ["vllm-8000"]

    proc.remove(100)
    assert names(tracker.refresh()) == []


def test_a_server_that_restarts_has_its_name_before_it_listens_and_what_is_left_of_the_old_another(
    proc: FakeProc,
) -> None:
    tracker = proc.tracker()
    proc.add(100, [*VLLM, "--port", "8203"], sockets={71: tcp_row("00000000", 8203, 71)})
    proc.add(101, CORE, ppid=100, start=OLD + 1)
    assert names(tracker.refresh()) == ["vllm-8203"]

    proc.remove(100)
    proc.add(101, CORE, ppid=1, start=OLD + 1)
    assert names(tracker.refresh()) == ["vllm-8203"]

    proc.add(300, [*VLLM, "--port", "8203"], start=OLD + 500)
    for sockets in ({}, {72: tcp_row("00000000", 8203, 72)}):
        proc.listen(300, sockets)
        table = tracker.refresh()
        assert {target.name: [*roles(target)] for target in table.targets} == {
            "vllm-8203": [300],
            "vllm-8203-orphan": [101],
        }


def test_pods_on_one_port_keep_their_names_when_their_servers_come_back_in_another_order(proc: FakeProc) -> None:
    uids = {"a": "0" * 32, "b": "1" * 32}
    for pod, uid in uids.items():
        (proc.root / f"var/log/pods/apps_pod-{pod}_{uid}").mkdir(parents=True)

    def serve(pid: int, pod: str, namespace: int, start: int) -> None:
        cgroup = f"0::/kubepods/pod{uids[pod]}/{pod * 64}\n"
        sockets = {pid: tcp_row("00000000", 8000, pid)}
        proc.add(pid, VLLM, cgroup=cgroup, namespace=namespace, start=start, sockets=sockets)
        proc.addresses(pid, "10.0.0.5")

    def shown() -> dict[str, str]:
        return {target.pod: target.name for target in tracker.refresh().targets}

    tracker = proc.tracker()
    serve(100, "a", 11, OLD)
    serve(200, "b", 12, OLD + 1)
    assert shown() == {"pod-a": "vllm-8000", "pod-b": "vllm-8000-pod-b"}

    proc.remove(100)
    proc.remove(200)
    assert shown() == {}
    serve(300, "b", 13, OLD + 2)  # another network namespace and container, the same pod
    assert shown() == {"pod-b": "vllm-8000-pod-b"}
    serve(400, "a", 14, OLD + 3)
    assert shown() == {"pod-a": "vllm-8000", "pod-b": "vllm-8000-pod-b"}


def test_an_engine_core_that_lost_its_server_before_it_was_seen_has_a_name_that_no_server_wants(proc: FakeProc) -> None:
    tracker = proc.tracker()
    proc.add(101, CORE, start=OLD + 1)  # its parent is init
    for _ in range(2):
        assert names(tracker.refresh()) == ["vllm-orphan"]

    proc.add(300, VLLM, start=OLD + 500, sockets=LISTENS)
    assert {target.name: [*roles(target)] for target in tracker.refresh().targets} == {
        "vllm-orphan": [101],
        "vllm-8000": [300],
    }


def test_an_engine_core_below_what_is_no_server_is_a_target_of_its_own(proc: FakeProc) -> None:
    tracker = proc.tracker()
    proc.add(100, ["python3", "offline.py"])
    proc.add(101, CORE, ppid=100, start=OLD + 1)
    proc.add(300, VLLM, start=OLD + 500)

    assert [(target.name, [*roles(target)]) for target in tracker.refresh().targets] == [
        ("vllm", [101]),
        ("vllm-8000", [300]),
    ]


def test_a_process_that_is_ending_is_still_what_it_was(proc: FakeProc) -> None:
    tracker = proc.tracker()
    proc.add(100, VLLM)
    proc.add(101, ["sleep", "9"], ppid=100, start=OLD + 1)
    before = tracker.refresh()
    proc.add(100, b"", comm="python3")  # its memory is gone already

    assert tracker.refresh().targets == before.targets


def test_a_zombie_has_ended(proc: FakeProc) -> None:
    tracker = proc.tracker()
    proc.add(100, VLLM)
    tracker.refresh()
    proc.add(100, b"", comm="vllm", state="Z")

    assert tracker.refresh().targets == ()


def test_a_pid_used_again_is_another_process(proc: FakeProc) -> None:
    tracker = proc.tracker()
    proc.add(100, VLLM)
    tracker.refresh()
    proc.remove(100)
    proc.add(100, ["sleep", "1"], start=OLD + 5000)
    assert tracker.refresh().targets == ()

    proc.remove(100)
    proc.add(100, VLLM, start=OLD + 9000)
    assert tracker.refresh().targets[0].main == ProcessId(100, OLD + 9000)


def test_a_younger_process_with_the_parents_pid_is_no_parent(proc: FakeProc) -> None:
    proc.add(100, VLLM, start=OLD + 100)
    proc.add(101, ["sleep", "1"], ppid=100, start=OLD)

    (target,) = proc.tracker().refresh().targets
    assert [*roles(target)] == [100]


def test_exec_and_title_change_what_a_process_is(proc: FakeProc) -> None:
    tracker = proc.tracker()
    proc.add(100, ["bash", "-c", "exec vllm serve m"], start=YOUNG)
    assert tracker.refresh().targets == ()

    proc.add(100, ["vllm", "serve", "m"], start=YOUNG)
    assert roles(tracker.refresh().targets[0]) == {100: "api_server"}

    proc.add(100, b"sglang::scheduler", start=YOUNG)
    assert roles(tracker.refresh().targets[0]) == {100: "scheduler"}

    proc.add(100, ["sleep", "9"], start=YOUNG)
    assert tracker.refresh().targets == ()


def test_an_old_process_is_looked_at_again_within_a_minute(proc: FakeProc) -> None:
    clock = FakeClock()
    tracker = proc.tracker(clock=clock)
    proc.add(100, ["bash"])
    tracker.refresh()
    proc.add(100, ["vllm", "serve", "m"])
    seen = []
    for _ in range(12):
        clock.advance(5)
        seen.append(len(tracker.refresh().targets))

    assert seen[-1] == 1


def test_only_some_processes_are_read_in_a_round(proc: FakeProc, monkeypatch: pytest.MonkeyPatch) -> None:
    for pid in range(1000, 1100):
        proc.add(pid, ["sleep", str(pid)])
    proc.add(100, VLLM)
    proc.add(101, ["new"], start=YOUNG)
    clock = FakeClock()
    tracker = proc.tracker(clock=clock)
    tracker.refresh()
    reads = count_reads(monkeypatch)
    clock.advance(0.001)
    tracker.refresh()

    assert {"100/stat", "100/cmdline", "101/comm", "101/cmdline"} <= set(reads)
    assert "101/stat" not in reads  # the kernel adds up all threads for it
    assert len(reads) < 10

    for _ in range(11):
        clock.advance(5)
        tracker.refresh()
    looked_at = [name for name in reads if name.startswith("10") and name.endswith("/comm")]
    assert {f"{pid}/comm" for pid in range(1000, 1100)} <= set(looked_at)
    assert sum(name.startswith("1050/") for name in reads) < 6


def test_a_command_line_is_read_up_to_64_kib(proc: FakeProc) -> None:
    proc.add(100, [*VLLM[:3], "m" * 200_000])

    (target,) = proc.tracker().refresh().targets
    assert len(target.model) == 128


def test_the_agent_is_no_target_of_its_own(proc: FakeProc) -> None:
    proc.add(900, ["vllm", "serve", "x"])

    assert proc.tracker(rule("all", cmdline="vllm")).refresh().targets == ()


def test_kernel_threads_are_none(proc: FakeProc) -> None:
    proc.add(2, b"", comm="vllm")
    stat = (proc.proc / "2/stat").read_text().replace("4194304", "2129984")
    (proc.proc / "2/stat").write_text(stat)

    assert proc.tracker(rule("all", comm="vllm")).refresh().targets == ()


def test_ray_workers_of_one_raylet_are_one_target(proc: FakeProc) -> None:
    proc.add(50, ["/opt/ray/raylet"])
    proc.add(51, b"ray::ServeReplica:app:Model.call", ppid=50, start=OLD + 1)
    proc.add(52, b"ray::ProxyActor.run", ppid=50, start=OLD + 2)
    proc.add(53, b"VLLM::EngineCore", ppid=51, start=OLD + 3)

    (target,) = proc.tracker().refresh().targets
    assert (target.name, target.engine) == ("ray-8000", "ray")
    assert roles(target) == {51: "replica", 52: "router", 53: "engine_core"}


def test_users_rules_come_first_and_take_the_children_along(proc: FakeProc) -> None:
    proc.add(100, VLLM)
    proc.add(101, CORE, ppid=100, start=OLD + 1)
    proc.add(200, ["python", "serve.py"])
    proc.add(300, ["python", "serve.py"])

    table = proc.tracker(
        rule("mine", cmdline="serve m/x"), rule("web", cmdline=r"serve\.py$", comm="^python$")
    ).refresh()
    assert [(target.name, target.engine, [*roles(target).items()]) for target in table.targets] == [
        ("mine", "vllm", [(100, "api_server"), (101, "engine_core")]),
        ("web", "custom", [(200, "main"), (300, "main")]),
    ]


def test_all_keys_of_a_rule_must_hold(proc: FakeProc) -> None:
    (proc.root / "etc").mkdir()
    (proc.root / "etc/passwd").write_text("root:x:0:0::/:\nllm:x:1000:1000::/:\n")
    proc.add(100, ["engine"], uid=1000, cgroup="0::/system.slice/engine.service\n", sockets=LISTENS)
    matches = {"user": "llm", "port": 8000, "cgroup": "engine\\.service$", "exe": "^/usr/bin/true$", "comm": "engine"}
    wrong = {"user": "root", "port": 8001, "cgroup": "x", "exe": "false", "comm": "x"}

    assert names(proc.tracker(rule("all", **matches)).refresh()) == ["all"]
    for key, value in wrong.items():
        assert names(proc.tracker(rule("all", **{**matches, key: value})).refresh()) == [], key
    for user, found in ((1000, ["u"]), ("1000", ["u"]), (0, []), ("nobody-here", [])):
        assert names(proc.tracker(rule("u", user=user, comm="engine")).refresh()) == found


def test_a_rule_by_port_holds_once_it_listens(proc: FakeProc) -> None:
    clock = FakeClock()
    proc.add(100, ["engine"], start=YOUNG)
    tracker = proc.tracker(rule("mine", port=8000), clock=clock)
    assert tracker.refresh().targets == ()

    proc.listen(100, LISTENS)
    clock.advance(5)
    assert names(tracker.refresh()) == ["mine"]


def test_recognisers_can_be_switched_off(proc: FakeProc) -> None:
    proc.add(100, VLLM)
    proc.add(200, ["llama-server"])

    table = proc.tracker(rule("mine", comm="llama"), options=DiscoveryConfig(processes="off")).refresh()
    assert [(target.name, target.engine) for target in table.targets] == [("mine", "llamacpp")]


def test_sockets_are_read_once_and_again_while_there_are_none(proc: FakeProc, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = FakeClock()
    tracker = proc.tracker(clock=clock)
    asked: list[int] = []
    real = ProcReader.lines

    def lines(self: ProcReader, pid: int, name: str) -> object:
        if name == "net/tcp":
            asked.append(pid)
        return real(self, pid, name)

    monkeypatch.setattr(ProcReader, "lines", lines)
    proc.add(100, VLLM)
    asked_at = []
    for second in range(0, 120, 5):
        before = len(asked)
        tracker.refresh()
        asked_at += [second] * (len(asked) > before)
        clock.advance(5)
    assert asked_at == [0, 5, 15, 35, 75]

    proc.listen(100, LISTENS)
    proc.add(101, CORE, ppid=100, start=OLD + 1)  # the target has changed: no need to wait any longer
    assert names(tracker.refresh()) == ["vllm-8000"]
    before = len(asked)
    clock.advance(5)
    tracker.refresh()
    assert 100 not in asked[before:]


def test_a_port_that_is_closed_is_noticed(proc: FakeProc) -> None:
    clock = FakeClock()
    tracker = proc.tracker(clock=clock)
    proc.add(100, VLLM, sockets=LISTENS)
    assert len(tracker.refresh().targets[0].endpoints) == 1

    proc.listen(100, {})
    clock.advance(61)
    (target,) = tracker.refresh().targets
    assert (target.name, target.endpoints) == ("vllm-8000", ())


def test_high_ports_that_nobody_chose_name_no_target(proc: FakeProc) -> None:
    proc.add(100, VLLM, sockets={71: tcp_row("00000000", 45671, 71)})
    (target,) = proc.tracker().refresh().targets
    assert (target.name, target.endpoints[0].front) == ("vllm-8000", False)

    proc.add(200, ["ollama", "serve", ":45672"], sockets={72: tcp_row("00000000", 45672, 72)})
    assert names(proc.tracker().refresh()) == ["ollama-45672", "vllm-8000"]


def test_a_socket_of_another_process_is_not_a_targets(proc: FakeProc) -> None:
    proc.add(100, VLLM)
    proc.listen(100, {}, others=tcp_row("00000000", 8000, 99))

    assert proc.tracker().refresh().targets[0].endpoints == ()


def test_without_the_agents_own_namespace_reachability_is_unknown(proc: FakeProc) -> None:
    (proc.proc / "self").unlink()
    proc.add(100, VLLM, sockets=LISTENS)

    (endpoint,) = proc.tracker().refresh().targets[0].endpoints
    assert (endpoint.url, endpoint.unreachable) == ("", Unreachable.UNKNOWN)


def test_denied_descriptors_are_counted_and_the_expected_port_of_the_same_user_is_taken(
    proc: FakeProc, monkeypatch: pytest.MonkeyPatch
) -> None:
    mine = {71: tcp_row("00000000", 8000, 71, uid=5)}
    others = tcp_row("00000000", 8000, 72, uid=6) + tcp_row("00000000", 9999, 73, uid=5)
    proc.add(900, ["inferwatch"], sockets={})
    proc.listen(900, {}, others="".join(mine.values()) + others)
    proc.add(100, VLLM, uid=5)
    proc.listen(100, mine, others=others)
    monkeypatch.setattr(ProcReader, "uid", lambda _self, _pid: 5)
    deny(monkeypatch, "fd", "ns/net")
    monkeypatch.setattr(ProcReader, "link", lambda _self, pid, name: _agents_link(pid, name))

    table = proc.tracker().refresh()
    assert (names(table), table.permission_denied) == (["vllm-8000"], 1)
    assert [endpoint.url for endpoint in table.targets[0].endpoints] == ["http://127.0.0.1:8000"]


def _agents_link(pid: int | str, name: str) -> str:
    if pid != "self":
        raise SourceError(f"/proc/{pid}/{name}: Permission denied", reason="permission_denied")
    return "900" if not name else "net:[1]"


def test_unreadable_processes_are_counted_and_the_rest_is_found(
    proc: FakeProc, monkeypatch: pytest.MonkeyPatch
) -> None:
    proc.add(100, VLLM, sockets=LISTENS)
    deny(monkeypatch, "cgroup", "status")

    table = proc.tracker().refresh()
    assert (names(table), table.permission_denied) == (["vllm-8000"], 1)
    assert (table.targets[0].processes[0].container_pid, table.targets[0].container_id) == (None, "")


def test_hidden_processes_are_no_error(proc: FakeProc, monkeypatch: pytest.MonkeyPatch) -> None:
    proc.add(100, VLLM)
    deny(monkeypatch, "stat")

    table = proc.tracker().refresh()
    assert (table.targets, table.permission_denied) == ((), 2)  # 1 and 100; the agent itself is not read


@pytest.mark.parametrize("missing", ["stat", "cmdline", "status", "cgroup", "net/tcp", "ns/net", "fd/3"])
def test_a_process_that_ends_while_it_is_read_is_passed_over(proc: FakeProc, missing: str) -> None:
    proc.add(100, VLLM, sockets=LISTENS)
    proc.add(200, ["llama-server"])
    (proc.proc / "100" / missing).unlink()

    table = proc.tracker().refresh()
    assert "llamacpp-8080" in names(table)
    assert table.permission_denied == 0


def test_limits_are_kept_and_what_is_over_is_counted(proc: FakeProc) -> None:
    for number in range(5):
        proc.add(100 + number, ["llama-server"], start=OLD + number)
    for number in range(10):
        proc.add(200 + number, ["sleep", "1"], ppid=100, start=OLD + 10 + number)
    proc.add(300, ["mine"], start=OLD + 99)

    options = DiscoveryConfig(max_targets=3, max_processes_per_target=4)
    table = proc.tracker(rule("mine", comm="mine"), options=options).refresh()
    assert [(target.name, [*roles(target)]) for target in table.targets] == [
        ("llamacpp", [101]),
        ("llamacpp-8080", [100, 200, 201, 202]),
        ("mine", [300]),
    ]
    assert table.left_out == {"targets": 3, "processes": 7}


def test_generation_rises_with_changes_only(proc: FakeProc) -> None:
    clock = FakeClock()
    tracker = proc.tracker(clock=clock)
    assert tracker.current() == TargetTable()
    generations = []
    for step in range(6):
        if step == 1:
            proc.add(100, VLLM)
        if step == 3:
            proc.add(101, CORE, ppid=100, start=OLD + 1)
        if step == 4:
            proc.add(101, b"VLLM::Worker", ppid=100, start=OLD + 1)
        clock.advance(1)
        generations.append(tracker.refresh().generation)

    assert generations == [0, 1, 1, 2, 3, 3]
    assert tracker.current().monotonic_ns == clock.monotonic_ns()


def test_no_procfs_is_no_data_and_the_last_table_stays(proc: FakeProc) -> None:
    tracker = proc.tracker()
    proc.add(100, VLLM)
    table = tracker.refresh()
    proc.proc.rename(proc.root / "gone")

    with pytest.raises(NoData):
        tracker.refresh()
    assert tracker.current() is table


def test_a_host_procfs_elsewhere_asks_the_agents_own_process_there(proc: FakeProc) -> None:
    # the agent is in a container of its own: what the host serves is not on its loopback
    proc.add(900, ["inferwatch"], namespace=4026533333)
    proc.add(100, VLLM, sockets=LISTENS)
    proc.addresses(100, "192.0.2.2")

    (endpoint,) = proc.tracker().refresh().targets[0].endpoints
    assert endpoint.url == "http://192.0.2.2:8000"


bytes_of = st.binary(max_size=60)


@given(st.lists(st.tuples(bytes_of, bytes_of, bytes_of, bytes_of), min_size=1, max_size=3))
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_no_bytes_raise_or_make_odd_labels(
    tmp_path_factory: pytest.TempPathFactory, contents: list[tuple[bytes, bytes, bytes, bytes]]
) -> None:
    proc = FakeProc(tmp_path_factory.mktemp("any") / "host")
    for number, (comm, cmdline, cgroup, tcp) in enumerate(contents, start=100):
        proc.add(number, VLLM[:3], sockets=LISTENS)
        home = proc.proc / str(number)
        stat = (home / "stat").read_bytes()
        (home / "stat").write_bytes(stat.replace(b"(python3)", b"(" + comm + b")"))
        (home / "cmdline").write_bytes(b"vllm\0serve\0" + cmdline)
        (home / "cgroup").write_bytes(b"0::/" + cgroup)
        (home / "net/tcp").write_bytes((home / "net/tcp").read_bytes() + tcp)

    table = proc.tracker(rule("odd", cgroup="x.*y", port=8000)).refresh()
    for target in table.targets:
        texts = [target.name, target.model, target.container_id, *(process.comm for process in target.processes)]
        assert all(text.isprintable() and len(text) <= 128 for text in texts), texts
        assert {process.role for process in target.processes} <= ROLES
        json.dumps(texts).encode()


def test_this_machines_own_procfs_is_read(tmp_path: Path) -> None:
    table = TargetTracker(
        HostFs(Path("/proc"), Path("/sys"), tmp_path), (rule("init", user=0, cmdline="."),), FakeClock()
    )

    assert named(table.refresh(), "init").processes[0].id.pid == 1
