"""Call libbpf through ctypes: the functions that are used, their errors, and what libbpf says while it works.

Rules that a wrong line here breaks without a message: a function that returns a pointer needs c_void_p as its result
(the default cuts it to 32 bits); since libbpf 1.0 a pointer that is NULL leaves the error in errno, an integer is the
negative errno. Calls release the interpreter's lock.
"""

import ctypes
import errno
import os
import threading
from collections.abc import Sequence
from ctypes import CFUNCTYPE, POINTER, c_char_p, c_int, c_size_t, c_uint32, c_uint64, c_void_p
from functools import cache
from typing import Any, Final

from inferwatch.errors import NoData

# Distributions build libbcc either on top of libbpf.so.1 (Debian) or with a copy of libbpf inside, which it exports.
LIBRARIES: Final = ("libbpf.so.1", "libbcc.so.0")
NO_LIBRARY: Final = (
    "libbpf 1.0 or newer was not found: install Debian's package libbpf1 (libbpf on Fedora, Alpine and Arch)"
)
WARNING: Final = 0  # LIBBPF_WARN; the verifier's log of a refused program comes at this level too
MAX_LINE_BYTES: Final = 65_536
MAX_LINES: Final = 400


class OpenOptions(ctypes.Structure):
    """`struct bpf_object_open_opts` up to the member that is used; `size` tells libbpf where it ends."""

    _fields_ = (("size", c_size_t), ("object_name", c_char_p))


class BatchOptions(ctypes.Structure):
    """`struct bpf_map_batch_opts`."""

    _fields_ = (("size", c_size_t), ("element_flags", c_uint64), ("flags", c_uint64))


_Batch: Final = (c_int, c_void_p, c_void_p, c_void_p, c_void_p, POINTER(c_uint32), POINTER(BatchOptions))

# Function: result, arguments (libbpf.h, bpf.h).
PROTOTYPES: Final[dict[str, tuple[Any, Sequence[Any]]]] = {  # Any: ctypes has no public type for its types
    "bpf_object__open_mem": (c_void_p, (c_char_p, c_size_t, POINTER(OpenOptions))),
    "bpf_object__load": (c_int, (c_void_p,)),
    "bpf_object__close": (None, (c_void_p,)),
    "bpf_object__find_program_by_name": (c_void_p, (c_void_p, c_char_p)),
    "bpf_object__find_map_by_name": (c_void_p, (c_void_p, c_char_p)),
    "bpf_program__attach_iter": (c_void_p, (c_void_p, c_void_p)),
    "bpf_link__fd": (c_int, (c_void_p,)),
    "bpf_link__destroy": (c_int, (c_void_p,)),
    "bpf_iter_create": (c_int, (c_int,)),
    "bpf_map__fd": (c_int, (c_void_p,)),
    "bpf_map__key_size": (c_uint32, (c_void_p,)),
    "bpf_map__value_size": (c_uint32, (c_void_p,)),
    "bpf_map__max_entries": (c_uint32, (c_void_p,)),
    "bpf_map_lookup_elem": (c_int, (c_int, c_void_p, c_void_p)),
    "bpf_map_update_elem": (c_int, (c_int, c_void_p, c_void_p, c_uint64)),
    "bpf_map_delete_elem": (c_int, (c_int, c_void_p)),
    "bpf_map_lookup_batch": (c_int, _Batch),
}

PRINT_FUNCTION: Final = CFUNCTYPE(c_int, c_int, c_void_p, c_void_p)


class Library:
    """libbpf, loaded once in the process.

    `call` has its functions, typed by `PROTOTYPES`; `said()` what it printed in this thread since it was last asked.

    Args:
        call: The loaded shared library.
    """

    def __init__(self, call: ctypes.CDLL) -> None:
        self.call = call
        for name, (result, arguments) in PROTOTYPES.items():
            function = getattr(call, name)
            function.restype, function.argtypes = result, arguments
        self._said = threading.local()
        self._vsnprintf = ctypes.CDLL(None).vsnprintf
        self._vsnprintf.argtypes, self._vsnprintf.restype = (c_void_p, c_size_t, c_void_p, c_void_p), c_int
        # The reference keeps the callback alive: libbpf's print function is one global of the process.
        self._print = PRINT_FUNCTION(self._printed)
        call.libbpf_set_print.restype, call.libbpf_set_print.argtypes = c_void_p, (PRINT_FUNCTION,)
        call.libbpf_set_print(self._print)

    def said(self) -> list[str]:
        """Return the lines of warning level since the last call and forget them."""
        lines: list[str] = getattr(self._said, "lines", [])
        self._said.lines = []
        return lines

    def _printed(self, level: int, text_format: int, arguments: int) -> int:
        """Keep what libbpf prints; a va_list is handed on by its address on x86-64 and on aarch64."""
        if level == WARNING:
            buffer = ctypes.create_string_buffer(MAX_LINE_BYTES)
            self._vsnprintf(buffer, MAX_LINE_BYTES, text_format, arguments)
            lines = getattr(self._said, "lines", [])
            self._said.lines = (lines + buffer.value.decode("utf-8", "replace").splitlines())[-MAX_LINES:]
        return 0


@cache  # libbpf keeps a pointer to the print callback for as long as the process lives, so its owner must live as long
def library() -> Library:
    """Load libbpf.

    Raises:
        NoData: When it is not installed, or is older than 1.0.
    """
    found = []
    for name in LIBRARIES:
        try:
            return Library(ctypes.CDLL(name, use_errno=True))
        except OSError:  # not installed
            continue
        except AttributeError as error:  # installed, but a function is missing: a libbcc without a copy of libbpf
            found.append(f"{name} lacks a function ({error})")
    raise NoData("; ".join((*found, NO_LIBRARY)))


def error_text(number: int) -> str:
    """Return text and name of an errno, for example `Operation not permitted (EPERM)`."""
    return f"{os.strerror(number)} ({errno.errorcode.get(number, number)})"
