"""Read and write BPF maps from Python: tuples in, tuples out, with the layout checked against the loaded object."""

import ctypes
import errno
from collections.abc import Iterator
from struct import Struct
from typing import Any, Final

from inferwatch.errors import SourceError
from inferwatch.sources.bpf.libbpf import BatchOptions, Library, error_text

BATCH: Final = 1024  # entries a call; the kernel refuses (ENOSPC) less than the fullest bucket of a hash has
FULL: Final = frozenset({errno.E2BIG, errno.ENOMEM})

Record = tuple[Any, ...]  # Any: a Struct's fields are ints and bytes, which its format says and the type can't


class BpfMap:
    """One hash or array map of a loaded object.

    Args:
        library: libbpf.
        handle: The `struct bpf_map *`.
        name: For messages.
        key: Layout of a key, native byte order; padding is written out in the format, never implied.
        value: Layout of a value. Per-CPU maps are not read here.

    Raises:
        SourceError: When a layout is not as large as the object's, reason `bpf`.
    """

    def __init__(self, library: Library, handle: int, name: str, key: Struct, value: Struct) -> None:
        self._call = library.call
        self._fd = self._call.bpf_map__fd(handle)
        self.name, self._key, self._value = name, key, value
        self.max_entries: int = self._call.bpf_map__max_entries(handle)
        for what, layout, size in (
            ("key", key, self._call.bpf_map__key_size(handle)),
            ("value", value, self._call.bpf_map__value_size(handle)),
        ):
            if layout.size != size:
                raise SourceError(
                    f"map {name}: a {what} of the object has {size} bytes, {layout.size} expected "
                    f"({layout.format!r}): the object is of another version, run `make bpf`",
                    reason="bpf",
                )

    def lookup(self, *key: int | bytes) -> Record | None:
        """Return a value, or None when there is none."""
        value = ctypes.create_string_buffer(self._value.size)
        if error := self._call.bpf_map_lookup_elem(self._fd, self._key.pack(*key), value):
            self._absent_or_raise(error, "look-up")
            return None
        return self._value.unpack(value)

    def update(self, key: Record, value: Record) -> bool:
        """Write an entry; return False when the map is full."""
        error = self._call.bpf_map_update_elem(self._fd, self._key.pack(*key), self._value.pack(*value), 0)
        if error and -error not in FULL:
            raise SourceError(f"map {self.name}: update: {error_text(-error)}", reason="bpf")
        return not error

    def delete(self, *key: int | bytes) -> bool:
        """Delete an entry; return False when there was none."""
        if error := self._call.bpf_map_delete_elem(self._fd, self._key.pack(*key)):
            self._absent_or_raise(error, "delete")
        return not error

    def items(self) -> list[tuple[Record, Record]]:
        """Return all entries."""
        return list(self._batches())

    def _batches(self) -> Iterator[tuple[Record, Record]]:
        """Read in batches (bpf(BPF_MAP_LOOKUP_BATCH), since 5.6); the last one comes with ENOENT."""
        size = min(BATCH, self.max_entries)
        keys = ctypes.create_string_buffer(size * self._key.size)
        values = ctypes.create_string_buffer(size * self._value.size)
        place = ctypes.create_string_buffer(max(self._key.size, 8))
        options = BatchOptions(size=ctypes.sizeof(BatchOptions))
        begin, error = None, 0
        while not error:
            count = ctypes.c_uint32(size)
            error = self._call.bpf_map_lookup_batch(
                self._fd, begin, place, keys, values, ctypes.byref(count), ctypes.byref(options)
            )
            if error:
                self._absent_or_raise(error, "batch look-up")
            yield from zip(
                self._key.iter_unpack(keys.raw[: count.value * self._key.size]),
                self._value.iter_unpack(values.raw[: count.value * self._value.size]),
                strict=True,
            )
            begin = place

    def _absent_or_raise(self, error: int, what: str) -> None:
        if -error != errno.ENOENT:
            raise SourceError(f"map {self.name}: {what}: {error_text(-error)}", reason="bpf")
