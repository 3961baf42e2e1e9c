"""Targets that are real processes of this machine."""

import os
from pathlib import Path

import pytest

from support_process import free_port
from support_serving import AS_NOBODY, engine, eventually, mounted, of, roles, running, told_by, tracker

PROC = "/proc"


async def test_an_engine_is_found_with_its_port_and_model(tmp_path: Path) -> None:
    port = free_port()
    async with engine(tmp_path, port=port) as process:
        target = of(tracker(), process.pid)

    assert target is not None
    assert (target.name, target.engine, target.model) == (f"vllm-{port}", "vllm", "m/x")
    assert [(found.url, found.front) for found in target.endpoints] == [(f"http://127.0.0.1:{port}", True)]
    assert target.processes[0].container_pid == process.pid


async def test_the_name_that_it_was_executed_under_counts(tmp_path: Path) -> None:
    port = free_port()
    async with engine(tmp_path, port=port, name="llama-server", host="0.0.0.0") as process:
        target = of(tracker(), process.pid)

    assert target is not None
    assert target.name == f"llamacpp-{port}"
    assert target.endpoints[0].url == f"http://127.0.0.1:{port}"


async def test_a_child_is_known_by_its_title_and_stays_when_its_parent_is_killed(tmp_path: Path) -> None:
    port = free_port()
    found = tracker()
    async with engine(tmp_path, port=port, fork=True) as process:
        target = await eventually(found, process.pid, ["api_server", "engine_core"])
        child = target.processes[1].id.pid
        assert target.processes[1].comm == "VLLM::EngineCor"

        process.process.kill()
        left = await eventually(found, child, ["engine_core"])
        assert (left.name, left.main) == (f"vllm-{port}", None)


async def test_a_new_title_is_another_role(tmp_path: Path) -> None:
    found = tracker()
    async with engine(tmp_path, port=free_port()) as process:
        assert roles(of(found, process.pid)) == ["api_server"]

        await process.tell("sglang::scheduler_TP0")
        await process.wait_for("titled")
        target = of(found, process.pid)
        assert target is not None
        assert (target.engine, roles(target)) == ("vllm", ["scheduler"])  # a target keeps its engine


async def test_exec_makes_something_else_of_a_process() -> None:
    found = tracker()
    async with running("bash", "-c", "read; exec -a llama-server sleep 60") as process:
        before = of(found, process.pid)
        await process.tell("go")
        after = await eventually(found, process.pid, ["server"])

    assert (before, after.main) == (None, after.processes[0].id)


async def test_processes_that_mention_an_engine_are_none() -> None:
    found = tracker()
    async with running("sleep", "60", "vllm serve m/x"), running("tail", "-f", "/dev/null", "llama-server") as second:
        assert of(found, second.pid) is None


async def test_one_that_ended_is_gone_and_one_started_again_has_its_name(tmp_path: Path) -> None:
    port = free_port()
    found = tracker()
    async with engine(tmp_path, port=port) as process:
        first = of(found, process.pid)
    assert f"vllm-{port}" not in [target.name for target in found.refresh().targets]

    async with engine(tmp_path, port=port) as process:
        second = of(found, process.pid)
    assert first is not None
    assert second is not None
    assert first.name == second.name == f"vllm-{port}"
    assert first.main != second.main


# What an agent in other circumstances sees: another user's, or another namespace's; in a process of its own.
LOOK = """
import json, sys
from pathlib import Path
from inferwatch.sources.hostfs import HostFs
from inferwatch.targets.tracker import TargetTracker
from support import FakeClock
table = TargetTracker(HostFs(Path(sys.argv[1]), Path("/sys"), Path("/")), (), FakeClock()).refresh()
found = {t.name: [e.url for e in t.endpoints] for t in table.targets}
print(json.dumps([found, table.permission_denied]))
"""


@pytest.mark.real("nobody")
@pytest.mark.skipif(os.geteuid() != 0, reason="becoming another user needs root")
async def test_without_privileges_the_engine_is_found_and_its_port_taken_for_its_own(tmp_path: Path) -> None:
    port = free_port()
    async with engine(tmp_path, port=port):
        found, denied = await told_by(LOOK, PROC, before=AS_NOBODY)

    assert found[f"vllm-{port}"] == [f"http://127.0.0.1:{port}"]
    assert denied >= 1


@pytest.mark.real("hidepid")
@pytest.mark.skipif(os.geteuid() != 0, reason="mounting a procfs needs root")
async def test_where_other_users_processes_are_hidden_there_are_no_targets_and_no_errors(tmp_path: Path) -> None:
    async with engine(tmp_path, port=free_port()):
        found, denied = await told_by(LOOK, PROC, before=(*mounted("hidepid=2"), *AS_NOBODY))

    assert (found, denied) == ({}, 0)


@pytest.mark.real("pidns")
@pytest.mark.skipif(os.geteuid() != 0, reason="making a pid namespace needs root")
async def test_in_a_pid_namespace_the_hosts_procfs_shows_the_hosts_engines(tmp_path: Path) -> None:
    port, procfs = free_port(), f"{tmp_path}/proc"
    mounts = f'mkdir -p {procfs} && mount --bind /proc {procfs} && mount -t proc proc /proc && exec "$@"'
    unshare = ("unshare", "--mount", "--pid", "--fork", "sh", "-c", mounts, "sh")
    async with engine(tmp_path, port=port):
        found, denied = await told_by(LOOK, procfs, before=unshare)
        inside, _ = await told_by(LOOK, PROC, before=unshare)

    assert (found[f"vllm-{port}"], denied) == ([f"http://127.0.0.1:{port}"], 0)
    assert inside == {}
