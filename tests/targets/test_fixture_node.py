from pathlib import Path

import pytest

from inferwatch.sources.hostfs import HostFs
from inferwatch.targets.model import TargetTable, Unreachable
from inferwatch.targets.tracker import TargetTracker
from support import FakeClock
from support_procfs import named, names, roles

NODE = Path(__file__).parent.parent / "fixtures" / "processes" / "kubernetes-node"


@pytest.fixture(scope="module")
def table() -> TargetTable:
    return TargetTracker(HostFs(NODE / "proc", NODE / "sys", NODE), (), FakeClock()).refresh()


def test_a_node_with_pods_and_docker(table: TargetTable) -> None:
    assert names(table) == ["llamacpp-8080", "vllm-8000", "vllm-8000-13579bdf1357"]
    assert [target.engine for target in table.targets] == ["llamacpp", "vllm", "vllm"]
    assert [target.model for target in table.targets] == [
        "/models/tiny.gguf",
        "meta-llama/Llama-3.1-8B",
        "facebook/opt-125m",
    ]


def test_the_whole_family_of_a_pod_with_its_pids_inside(table: TargetTable) -> None:
    vllm = named(table, "vllm-8000")

    assert roles(vllm) == {2010: "api_server", 2050: "engine_core", 2051: "worker", 2052: "worker", 2060: "child"}
    assert [process.container_pid for process in vllm.processes] == [1, 35, 38, 36, 37]


def test_container_and_pod_of_cgroup_v2_with_the_names_that_the_kubelet_gives(table: TargetTable) -> None:
    vllm = named(table, "vllm-8000")

    assert (vllm.container_id, vllm.pod_uid) == ("0a1b2c3d" * 8, "1d2c3b4a-1111-4222-8333-444455556666")
    assert (vllm.pod_namespace, vllm.pod) == ("inference", "llama-3-0")


def test_container_and_pod_of_cgroup_v1_on_a_hybrid_host(table: TargetTable) -> None:
    llama = named(table, "llamacpp-8080")

    assert (llama.container_id, llama.pod_uid) == ("9f8e7d6c" * 8, "5e6f7a8b-7777-4888-9999-aaaabbbbcccc")
    assert (llama.pod_namespace, llama.pod) == ("", "")
    assert llama.cgroup.controllers["memory"].startswith("/kubepods/besteffort/")
    assert llama.cgroup.unified == "/system.slice/containerd.service"


def test_an_engine_in_a_pod_is_reached_at_the_pods_address(table: TargetTable) -> None:
    front, worker = named(table, "vllm-8000").endpoints

    assert (front.url, front.front) == ("http://10.244.1.7:8000", True)
    assert (worker.url, worker.front, worker.port) == ("", False, 29500)


def test_an_engine_on_a_pods_loopback_is_unreachable_and_says_why(table: TargetTable) -> None:
    (endpoint,) = named(table, "llamacpp-8080").endpoints

    assert (endpoint.url, endpoint.unreachable) == ("", Unreachable.LOOPBACK)
    assert "127.0.0.1 of another network namespace" in endpoint.unreachable_reason
