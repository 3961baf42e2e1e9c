"""Load a compiled BPF object into the kernel, attach its iterators, release everything again."""

import ctypes
import os
from importlib import resources
from struct import Struct
from typing import Final

from inferwatch.errors import InferwatchError, NoData
from inferwatch.sources.bpf.libbpf import Library, OpenOptions, library
from inferwatch.sources.bpf.maps import BpfMap
from inferwatch.sources.bpf.remedy import failure

FOLDER: Final = "bpf_objects"  # inside the package, filled by `make bpf`
READ_BYTES: Final = 65_536


def packaged_object(name: str) -> bytes:
    """Return the compiled program `<name>.bpf.o` that came with the package.

    Raises:
        NoData: When it is not there.
    """
    try:
        return (resources.files("inferwatch") / FOLDER / f"{name}.bpf.o").read_bytes()
    except OSError as error:
        raise NoData(
            f"{name}.bpf.o is not in the package ({error.strerror}): run `make bpf` in the source tree (needs Debian's "
            "clang, llvm and libbpf-dev), or install a wheel that has it"
        ) from error


class BpfObject:
    """An object loaded into the kernel; `close` (or the end of a `with`) takes it out again.

    Args:
        name: Its name, for messages and bpftool.
        data: The compiled object.

    Raises:
        NoData: When libbpf is not installed or the kernel lacks what the object needs.
        SourceError: When it can't be loaded, reason `permission_denied` or `bpf`.
    """

    def __init__(self, name: str, data: bytes) -> None:
        self._library: Library = library()
        self._call = self._library.call
        self._name = f"{name}.bpf.o"
        self._links: list[int] = []
        self._library.said()  # what an earlier call in this thread left
        options = OpenOptions(size=ctypes.sizeof(OpenOptions), object_name=name.encode())
        self._handle: int | None = self._call.bpf_object__open_mem(data, len(data), ctypes.byref(options))
        if not self._handle:
            raise self._failure("open", ctypes.get_errno())
        if error := self._call.bpf_object__load(self._handle):
            failed = self._failure("load", -error)
            self.close()
            raise failed

    def map(self, name: str, key: Struct, value: Struct) -> BpfMap:
        """Return a map; it must not be used after `close`.

        Raises:
            SourceError: When its layout is another one.
            KeyError: When there is none of this name.
        """
        handle = self._call.bpf_object__find_map_by_name(self._handle, name.encode())
        if not handle:
            raise KeyError(name)
        return BpfMap(self._library, handle, name, key, value)

    def attach_iterator(self, program: str) -> "BpfIterator":
        """Make an iterator of a program.

        Raises:
            KeyError: When there is no program of this name.
            SourceError, NoData: When it can't be attached.
        """
        handle = self._call.bpf_object__find_program_by_name(self._handle, program.encode())
        if not handle:
            raise KeyError(program)
        link = self._call.bpf_program__attach_iter(handle, None)
        if not link:
            raise self._failure(f"attach {program}", ctypes.get_errno())
        self._links.append(link)
        return BpfIterator(self._library, link, f"{self._name}: {program}")

    def close(self) -> None:
        """Detach and unload; calling it again does nothing."""
        while self._links:
            self._call.bpf_link__destroy(self._links.pop())
        if self._handle:
            self._call.bpf_object__close(self._handle)
            self._handle = None

    def _failure(self, what: str, number: int) -> InferwatchError:
        return failure(f"{self._name}: {what}", number, self._library.said())


class BpfIterator:
    """An attached iterator: each `read` runs its program over all objects once."""

    def __init__(self, bpf: Library, link: int, name: str) -> None:
        self._library, self._link, self._name = bpf, link, name

    def read(self) -> bytes:
        """Return what the program wrote for all objects.

        Raises:
            SourceError: When it can't be read.
        """
        fd = self._library.call.bpf_iter_create(self._library.call.bpf_link__fd(self._link))
        if fd < 0:
            raise failure(f"{self._name}: create", -fd, self._library.said())
        pieces = []
        try:
            while piece := _read(fd):
                pieces.append(piece)
        except OSError as error:
            raise failure(f"{self._name}: read", error.errno or 0, self._library.said()) from error
        finally:
            os.close(fd)
        return b"".join(pieces)


def _read(fd: int) -> bytes:
    """Read; the kernel answers EAGAIN after a million objects that wrote nothing (MAX_ITER_OBJECTS), then goes on."""
    while True:
        try:
            return os.read(fd, READ_BYTES)
        except BlockingIOError:
            continue
