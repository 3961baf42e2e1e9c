"""Files of control groups are read once a round, settings every 30 seconds; nothing outlives its group."""

import errno
from pathlib import Path

import pytest

from inferwatch.errors import SourceError
from inferwatch.sources.cgroup.files import FORGET_NS, SETTING_NS, GroupFiles
from inferwatch.sources.cgroup.tree import V2, Level
from inferwatch.sources.cgroup.values import parse_limit, parse_number
from support import fail_open

SECOND = 1_000_000_000


class Group:
    """A group whose files the test writes."""

    def __init__(self, directory: Path) -> None:
        self.level = Level(directory, V2)
        self.files = GroupFiles()
        directory.mkdir()

    def write(self, name: str, data: bytes) -> None:
        (self.level.directory / name).write_bytes(data)

    def at(self, seconds: float) -> GroupFiles:
        self.files.begin(round(seconds * SECOND))
        return self.files


@pytest.fixture
def group(tmp_path: Path) -> Group:
    return Group(tmp_path / "group")


def test_value_is_read_once_a_round(group: Group) -> None:
    seen = []
    for seconds in (0, 0, 5):
        group.write("memory.current", b"1\n")
        files = group.at(seconds)
        first = files.read(group.level, "memory.current", parse_number)
        group.write("memory.current", b"2\n")
        seen.append((first, files.read(group.level, "memory.current", parse_number)))

    assert seen == [(1, 1)] * 3


def test_setting_is_good_for_half_a_minute(group: Group) -> None:
    seen = []
    for seconds in (0, 29, 31):
        group.write("memory.max", b"%d\n" % (seconds + 1))
        seen.append(group.at(seconds).setting(group.level, "memory.max", parse_limit))

    assert seen == [1, 1, 32]


def test_setting_without_a_limit_is_not_read_each_time(group: Group) -> None:
    group.write("memory.max", b"max\n")
    first = group.at(0).setting(group.level, "memory.max", parse_limit)
    group.write("memory.max", b"7\n")

    assert [first, *(group.at(s).setting(group.level, "memory.max", parse_limit) for s in (5, 31))] == [None, None, 7]


def test_group_that_was_gone_is_read_at_once_when_it_is_back(group: Group) -> None:
    group.level.directory.rmdir()
    gone = (group.at(0).read(group.level, "memory.current", parse_number), group.files.has(group.level, "memory.max"))
    group.level.directory.mkdir()
    group.write("memory.current", b"9\n")
    group.write("memory.max", b"9\n")
    back = (group.at(5).read(group.level, "memory.current", parse_number), group.files.has(group.level, "memory.max"))

    assert (gone, back) == ((None, False), (9, True))


def test_file_that_the_kernel_lacks_is_looked_for_every_half_minute(group: Group) -> None:
    seen = [group.at(0).read(group.level, "memory.peak", parse_number)]
    group.write("memory.peak", b"5\n")
    seen += [group.at(seconds).read(group.level, "memory.peak", parse_number) for seconds in (29, 31)]

    assert seen == [None, None, 5]


def test_denied_file_is_told_each_time_and_heals(group: Group, monkeypatch: pytest.MonkeyPatch) -> None:
    group.write("memory.max", b"5\n")
    with monkeypatch.context() as patch:
        fail_open(patch, {"memory.max": errno.EACCES})
        for seconds in (0, 5):
            with pytest.raises(SourceError):
                group.at(seconds).setting(group.level, "memory.max", parse_limit)

    assert group.at(10).setting(group.level, "memory.max", parse_limit) == 5


def test_what_is_no_longer_asked_for_is_forgotten(group: Group, tmp_path: Path) -> None:
    for number in range(100):
        group.at(number).read(Level(tmp_path / str(number), V2), "memory.current", parse_number)
    last = 100 + (FORGET_NS + SETTING_NS) / SECOND
    for seconds in (last, 2 * last):
        group.at(seconds).read(group.level, "memory.current", parse_number)

    assert len(group.files._entries) == 1
