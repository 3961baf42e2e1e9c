"""The agent's own memory, as far as glibc's allocator decides about it; with another C library nothing happens."""

import ctypes
from typing import Final

M_ARENA_MAX: Final = -8  # malloc.h


def share_one_arena() -> None:
    """Let all threads allocate from one arena: each its own costs megabytes, and one runs Python at a time."""
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        mallopt(M_ARENA_MAX, 1)


def give_back_memory() -> None:
    """Return to the kernel what the start has freed."""
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(ctypes.c_size_t(0))
