"""Loading, and what the errors say, on the real kernel."""

import contextlib
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from struct import Struct

import pytest

from inferwatch.errors import NoData, SourceError
from inferwatch.sources.bpf import libbpf
from inferwatch.sources.bpf.loader import BpfObject, packaged_object
from inferwatch.sources.bpf.tasks import TaskIterator
from support_tasks import worker

pytestmark = pytest.mark.real("ebpf")

U32 = Struct("=I")

# Ends as user nobody with the capabilities that the bits in argv[1] name, then tries.
AS_NOBODY = """
import os, struct
from inferwatch.errors import InferwatchError
from inferwatch.sources.bpf.loader import packaged_object
from inferwatch.sources.bpf.tasks import TaskIterator
bits = int(sys.argv[1], 16)
program = packaged_object("tasks")  # read before: the interpreter's own files may be root's alone
assert not libc.prctl(8, 1, 0, 0, 0)  # PR_SET_KEEPCAPS
os.setgroups([])
os.setgid(65534)
os.setuid(65534)
sets = struct.pack("=6I", *[bits & 0xFFFFFFFF] * 2, 0, *[bits >> 32] * 2, 0)
assert not libc.capset(struct.pack("=Ii", 0x20080522, 0), sets), "capset"
try:
    tasks = TaskIterator(program)
    tasks.set_targets([os.getpid(), os.getppid()])
    tell("read", *sorted(tasks.read().processes))
except InferwatchError as error:
    tell(type(error).__name__, error)
"""
BPF, PERFMON = 1 << 39, 1 << 38

REFUSED = """
#include <linux/types.h>
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>
char LICENSE[] SEC("license") = "GPL";
SEC("socket") int refused(void *ctx) { return *(int *)0; }
"""


def descriptors() -> set[str]:
    return {entry.name for entry in Path("/proc/self/fd").iterdir()}


@pytest.fixture
def no_library(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(libbpf, "LIBRARIES", ("libinferwatch-has-none.so.1",))
    libbpf.library.cache_clear()
    yield
    libbpf.library.cache_clear()


def test_nothing_stays_open_after_thirty_loads() -> None:
    TaskIterator().close()
    before = descriptors()
    for _ in range(30):
        with contextlib.closing(TaskIterator()) as tasks:
            tasks.set_targets([1])
            tasks.read()

    assert descriptors() == before


def test_close_twice_does_nothing() -> None:
    tasks = TaskIterator()
    tasks.close()
    tasks.close()


def as_nobody(bits: int) -> list[str]:
    with worker(AS_NOBODY, hex(bits)) as nobody:
        return nobody.first


def test_two_capabilities_are_enough() -> None:
    word, *pids = as_nobody(BPF | PERFMON)

    assert word == "read"
    assert str(os.getpid()) in pids


@pytest.mark.parametrize(
    ("bits", "missing"), [(BPF, "CAP_PERFMON"), (PERFMON, "CAP_BPF"), (0, "CAP_BPF and CAP_PERFMON")]
)
def test_missing_capability_is_named(bits: int, missing: str) -> None:
    word, *words = as_nobody(bits)
    message = " ".join(words)

    assert word == "SourceError"
    assert f"Missing: {missing}. Grant" in message
    assert "AmbientCapabilities" in message.partition("libbpf says")[0]  # what to do comes first


@pytest.mark.usefixtures("no_library")
def test_no_libbpf_is_no_data_that_names_the_package() -> None:
    with pytest.raises(NoData, match="install Debian's package libbpf1"):
        TaskIterator()


@pytest.mark.usefixtures("no_library")
def test_libbcc_without_a_copy_of_libbpf_is_not_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(libbpf, "LIBRARIES", ("libc.so.6",))

    with pytest.raises(NoData, match=r"libc\.so\.6 lacks a function .*libbpf1"):
        libbpf.library()


def test_program_that_is_not_built_is_no_data_that_says_how() -> None:
    with pytest.raises(NoData, match=r"nothing\.bpf\.o is not in the package .*`make bpf`"):
        packaged_object("nothing")


def test_damaged_object_says_what_libbpf_says() -> None:
    with pytest.raises(SourceError, match=r"^damaged\.bpf\.o: open: .* - libbpf says: .*damaged") as caught:
        BpfObject("damaged", b"\x7fELF" + bytes(100))

    assert caught.value.reason == "bpf"


def test_refused_program_says_what_the_verifier_says(tmp_path: Path) -> None:
    source, program = tmp_path / "refused.bpf.c", tmp_path / "refused.bpf.o"
    source.write_text(REFUSED, encoding="ascii")
    include = ["-idirafter", f"/usr/include/{sys.implementation._multiarch}"]
    subprocess.run(
        ["clang", "--target=bpf", "-g", "-O2", *include, "-w", "-c", str(source), "-o", str(program)], check=True
    )
    before = descriptors()

    with pytest.raises(SourceError, match=r"^refused\.bpf\.o: load: .*(invalid mem access|unreachable|R0)"):
        BpfObject("refused", program.read_bytes())
    assert descriptors() == before


def test_layout_of_another_version_is_refused() -> None:
    with contextlib.closing(BpfObject("tasks", packaged_object("tasks"))) as loaded:
        with pytest.raises(SourceError, match=r"map node: a value of the object has \d+ bytes, 8 expected"):
            loaded.map("node", U32, Struct("=Q"))
        with pytest.raises(KeyError):
            loaded.map("nothing", U32, U32)
        with pytest.raises(KeyError):
            loaded.attach_iterator("nothing")


def test_what_libbpf_said_is_kept_for_its_own_thread_only() -> None:
    bpf = libbpf.library()
    with contextlib.suppress(SourceError):
        BpfObject("damaged", bytes(100))

    assert bpf.said() == []


def test_kernel_that_lets_no_more_be_read_raises_source_error(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: int) -> bytes:
        raise OSError(5, "Input/output error")

    with contextlib.closing(TaskIterator()) as tasks:
        before = descriptors()
        monkeypatch.setattr(os, "read", refuse)

        with pytest.raises(SourceError, match=r"tasks\.bpf\.o: sum_tasks: read: Input/output error \(EIO\)"):
            tasks.read()
        assert descriptors() == before
