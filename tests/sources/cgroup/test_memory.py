"""Limits and room of nested groups; every expected number is worked out in the test."""

from pathlib import Path

import pytest

from inferwatch.errors import NoData
from inferwatch.sources.cgroup.files import GroupFiles
from inferwatch.sources.cgroup.memory import read_headroom, read_memory
from inferwatch.sources.cgroup.tree import V1, V2, Level

GIB = 1 << 30


def v2(directory: Path, usage: int, limit: int | str, inactive: int = 0, high: int | str = "max") -> Level:
    directory.mkdir(parents=True)
    (directory / "memory.current").write_text(f"{usage}\n")
    (directory / "memory.max").write_text(f"{limit}\n")
    (directory / "memory.high").write_text(f"{high}\n")
    (directory / "memory.stat").write_text(f"anon 1\ninactive_file {inactive}\nslab 2\n")
    (directory / "memory.events").write_text("low 1\nhigh 22\nmax 33\noom 4\noom_kill 5\noom_group_kill 6\n")
    return Level(directory, V2)


def v1(directory: Path, usage: int, limit: int, inherited: int, hierarchy: int = 1) -> Level:
    directory.mkdir(parents=True)
    (directory / "memory.usage_in_bytes").write_text(f"{usage}\n")
    (directory / "memory.limit_in_bytes").write_text(f"{limit}\n")
    (directory / "memory.use_hierarchy").write_text(f"{hierarchy}\n")
    (directory / "memory.stat").write_text(
        f"cache 0\ninactive_file 7\nhierarchical_memory_limit {inherited}\ntotal_inactive_file {GIB}\n"
    )
    return Level(directory, V1)


def test_tightest_ancestor_is_not_always_the_one_with_the_lowest_limit(tmp_path: Path) -> None:
    top = v2(tmp_path / "top", 61 * GIB, 64 * GIB, inactive=1 * GIB)  # 64 - (61 - 1) = 4 left
    pod = v2(tmp_path / "top/pod", 19 * GIB, 20 * GIB)  # 1 left
    own = v2(tmp_path / "top/pod/own", 8 * GIB, 16 * GIB, inactive=3 * GIB)  # 16 - (8 - 3) = 11 left

    assert read_headroom(GroupFiles(), (own, pod, top)) == 1 * GIB
    assert read_memory(GroupFiles(), (own, pod, top)).limit_bytes == 16 * GIB


def test_ancestor_alone_may_have_a_limit(tmp_path: Path) -> None:
    top = v2(tmp_path / "top", 10 * GIB, 12 * GIB, high=11 * GIB)
    own = v2(tmp_path / "top/own", 5 * GIB, "max", inactive=2 * GIB)
    group = read_memory(GroupFiles(), (own, top))

    assert read_headroom(GroupFiles(), (own, top)) == 2 * GIB
    assert (group.limit_bytes, group.high_bytes, group.working_set_bytes) == (12 * GIB, 11 * GIB, 3 * GIB)


def test_without_any_limit_there_is_no_headroom(tmp_path: Path) -> None:
    own = v2(tmp_path / "own", 5 * GIB, "max")

    assert read_headroom(GroupFiles(), (own,)) is None
    assert read_memory(GroupFiles(), (own,)).limit_bytes is None


def test_use_above_the_limit_leaves_nothing_rather_than_less(tmp_path: Path) -> None:
    assert read_headroom(GroupFiles(), (v2(tmp_path / "own", 5 * GIB, 4 * GIB),)) == 0


def test_events_of_the_group_are_told_without_the_kills(tmp_path: Path) -> None:
    group = read_memory(GroupFiles(), (v2(tmp_path / "own", 1, 2),))

    assert group.events == {"low": 1, "high": 22, "max": 33, "oom": 4}
    assert group.oom_kills == 5


def test_v1_limit_of_an_ancestor_that_a_container_does_not_see(tmp_path: Path) -> None:
    unlimited = 9223372036854771712
    own = v1(tmp_path / "own", 5 * GIB, unlimited, inherited=6 * GIB)

    assert read_memory(GroupFiles(), (own,)).limit_bytes == 6 * GIB
    assert read_headroom(GroupFiles(), (own,)) == 2 * GIB  # 6 - (5 - 1 of inactive cache, descendants included)


def test_v1_parent_without_use_hierarchy_is_not_charged(tmp_path: Path) -> None:
    unlimited = 9223372036854771712
    parent = v1(tmp_path / "parent", 3 * GIB, 3 * GIB, inherited=3 * GIB, hierarchy=0)
    own = v1(tmp_path / "parent/own", 5 * GIB, 9 * GIB, inherited=unlimited, hierarchy=0)

    assert read_memory(GroupFiles(), (own, parent)).limit_bytes == 9 * GIB
    assert read_headroom(GroupFiles(), (own, parent)) == 5 * GIB


def test_group_that_goes_between_two_rounds_is_no_data(tmp_path: Path) -> None:
    own = v2(tmp_path / "own", 1, 2)
    files = GroupFiles()
    files.begin(0)
    read_memory(files, (own,))
    for file in own.directory.iterdir():
        file.unlink()
    own.directory.rmdir()
    files.begin(5_000_000_000)

    with pytest.raises(NoData):
        read_memory(files, (own,))
