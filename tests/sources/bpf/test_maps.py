"""Maps of the real program."""

import contextlib
from collections.abc import Iterator
from struct import Struct

import pytest

from inferwatch.errors import SourceError
from inferwatch.sources.bpf.loader import BpfObject, packaged_object
from inferwatch.sources.bpf.maps import BATCH, BpfMap

pytestmark = pytest.mark.real("ebpf")

U32 = Struct("=I")
NAME_KEY, NAME_VALUE = Struct("=I16s"), Struct("=10QII")


@pytest.fixture
def loaded() -> Iterator[BpfObject]:
    with contextlib.closing(BpfObject("tasks", packaged_object("tasks"))) as one:
        yield one


@pytest.fixture
def targets(loaded: BpfObject) -> BpfMap:
    return loaded.map("targets", U32, U32)


def test_entry_is_read_back_and_deleted(targets: BpfMap) -> None:
    assert targets.update((7,), (1,))
    assert targets.update((7,), (2,))
    assert targets.lookup(7) == (2,)
    assert targets.items() == [((7,), (2,))]
    assert targets.delete(7)
    assert not targets.delete(7)
    assert targets.lookup(7) is None
    assert targets.items() == []


def test_full_map_takes_no_more_and_says_so(targets: BpfMap) -> None:
    assert all(targets.update((key,), (key,)) for key in range(targets.max_entries))
    assert not targets.update((targets.max_entries,), (0,))
    assert sorted(targets.items()) == [((key,), (key,)) for key in range(targets.max_entries)]


def test_more_entries_than_a_batch_holds_are_read_once_each(loaded: BpfObject) -> None:
    names = loaded.map("names", NAME_KEY, NAME_VALUE)
    expected = {(key, b"name".ljust(16, b"\0")): (*range(key, key + 11), 0) for key in range(5 * BATCH)}
    assert all(names.update(key, value) for key, value in expected.items())

    found = names.items()

    assert len(found) == len(expected)
    assert dict(found) == expected


def test_map_that_can_have_no_such_operation_raises(loaded: BpfObject) -> None:
    node = loaded.map("node", U32, Struct("=120s8x"))

    with pytest.raises(SourceError, match="map node: delete: Invalid argument"):
        node.delete(0)
