from pathlib import Path

import pytest

from inferwatch.sources.cgroup.tree import CgroupTree, Level
from support import host, tree

V2_MOUNT = b"35 29 0:30 %s /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n"


def directories(levels: tuple[Level, ...], top: Path) -> list[tuple[str, int]]:
    return [(str(level.directory.relative_to(top)), level.version) for level in levels]


def test_group_comes_first_and_the_root_not_at_all() -> None:
    hostfs = host("cgroup-v1")
    path = "/docker/" + "b" * 64

    assert directories(CgroupTree(hostfs).levels("memory", None, {"memory": path}), hostfs.sys("fs/cgroup")) == [
        ("memory/docker/" + "b" * 64, 1),
        ("memory/docker", 1),
    ]


def test_controllers_that_are_mounted_together_are_found() -> None:
    levels = CgroupTree(host("cgroup-v1")).levels("cpuacct", None, {"cpuacct": "/docker"})

    assert levels[0].directory == host("cgroup-v1").sys("fs/cgroup/cpu,cpuacct/docker")


def test_hybrid_has_a_controller_in_v1_and_pressure_in_v2() -> None:
    path = "/docker/" + "b" * 64
    levels = CgroupTree(host("cgroup-hybrid")).levels
    controllers = {"memory": path}

    assert {level.version for level in levels("memory", path, controllers)} == {1}
    assert {level.version for level in levels("", path, controllers)} == {2}


def test_mount_that_shows_a_container_begins_at_its_group(tmp_path: Path) -> None:
    files = {
        "proc/1/mountinfo": V2_MOUNT % b"/docker/abc",
        "sys/fs/cgroup/cgroup.events": b"",
        "sys/fs/cgroup/inner/cgroup.events": b"",
    }
    hostfs = tree(tmp_path, files)
    levels = CgroupTree(hostfs).levels("memory", "/docker/abc/inner", {})

    assert [level.directory for level in levels] == [hostfs.sys("fs/cgroup/inner"), hostfs.sys("fs/cgroup")]
    assert CgroupTree(hostfs).levels("memory", "/docker/other", {}) == ()


def test_without_a_mount_table_the_usual_places_are_looked_at(tmp_path: Path) -> None:
    hostfs = tree(tmp_path, {"sys/fs/cgroup/cgroup.controllers": b"", "sys/fs/cgroup/a/memory.max": b"max\n"})

    assert [level.directory for level in CgroupTree(hostfs).levels("memory", "/a", {})] == [hostfs.sys("fs/cgroup/a")]


def test_mount_outside_sys_is_below_the_root(tmp_path: Path) -> None:
    mount = b"35 29 0:30 / /cgroups rw - cgroup2 cgroup2 rw\n"
    hostfs = tree(tmp_path, {"proc/1/mountinfo": mount, "cgroups/a/memory.max": b"max\n"})

    assert [level.directory for level in CgroupTree(hostfs).levels("memory", "/a", {})] == [hostfs.root("cgroups/a")]


@pytest.mark.parametrize("path", ["/../other", "/a/../../b", "relative", "", "/missing"])
def test_path_that_can_not_be_seen_has_no_levels(path: str) -> None:
    assert CgroupTree(host("cgroup-v2")).levels("memory", path, {}) == ()


def test_group_that_is_gone_has_no_levels() -> None:
    assert CgroupTree(host("cgroup-v1")).levels("memory", None, {"memory": "/docker/gone"}) == ()
