"""Turn what libbpf and the verifier said into one error that tells what to do."""

import ctypes
import errno
from collections.abc import Iterator, Sequence
from typing import Final

from inferwatch.errors import InferwatchError, NoData, SourceError
from inferwatch.sources.bpf.libbpf import error_text

# include/uapi/linux/capability.h. CAP_SYS_ADMIN stands for the other two.
SYS_ADMIN: Final = 21
NEEDED: Final = {"CAP_BPF": 39, "CAP_PERFMON": 38}
CAPABILITY_VERSION: Final = 0x20080522  # _LINUX_CAPABILITY_VERSION_3: two sets of 32
WORDS: Final = 6

# What libbpf says where the kernel was built without something.
NOT_IN_THIS_KERNEL: Final = {
    "BTF is missing": "the kernel has no BTF (CONFIG_DEBUG_INFO_BTF), which CO-RE programs need",
    "failed to find valid kernel BTF": "the kernel has no BTF (CONFIG_DEBUG_INFO_BTF), which CO-RE programs need",
    "find kernel BTF type ID of": "the kernel has no such attach point; the task iterator came with 5.8",
    "unknown func": "the kernel lacks a helper function; task storage for tracing programs came with 5.12",
    "cannot use helper": "the kernel lacks a helper function; task storage for tracing programs came with 5.12",
}
QUOTED_LINES: Final = 6
QUOTED_CHARACTERS: Final = 1000


def missing_capabilities() -> tuple[str, ...]:
    """Return which of CAP_BPF and CAP_PERFMON this thread lacks (capget(2); each thread has its own set)."""
    header = (ctypes.c_uint32 * 2)(CAPABILITY_VERSION, 0)
    words = (ctypes.c_uint32 * WORDS)()  # effective, permitted, inheritable of the lower 32; the same of the upper
    if ctypes.CDLL(None, use_errno=True).capget(header, words):
        return ()
    effective = words[0] | words[3] << 32
    if effective >> SYS_ADMIN & 1:
        return ()
    return tuple(name for name, number in NEEDED.items() if not effective >> number & 1)


def failure(what: str, number: int, said: Sequence[str]) -> InferwatchError:
    """Return the error for a failed call.

    Args:
        what: What was tried, for example `tasks.bpf.o: load`.
        number: The errno.
        said: What libbpf printed meanwhile.
    """
    words = f"{what}: {error_text(number)}{_quoted(said)}"
    if number == errno.EPERM:  # cause and remedy first: libbpf's words are about memory locks, whatever is missing
        return SourceError(f"{what}: {error_text(number)}. {_permission()}{_quoted(said)}", reason="permission_denied")
    text = "\n".join(said)
    for phrase, sentence in NOT_IN_THIS_KERNEL.items():
        if phrase in text:
            return NoData(f"{words}. {sentence}")
    return SourceError(words, reason="bpf")


def _permission() -> str:
    if missing := missing_capabilities():
        return (
            f"Missing: {' and '.join(missing)}. Grant them: AmbientCapabilities= of the systemd unit, "
            "securityContext.capabilities.add of the container"
        )
    return (
        "CAP_BPF and CAP_PERFMON are there, so something else refuses: a seccomp profile, a user namespace that is not "
        "the host's, kernel lockdown, or RLIMIT_MEMLOCK before Linux 5.11"
    )


def _quoted(said: Sequence[str]) -> str:
    """Return the last lines that tell something; the log of a refused program ends with statistics."""
    telling = [line.strip().removeprefix("libbpf: ") for line in _telling(said)]
    text = " | ".join(telling[-QUOTED_LINES:])
    return f" - libbpf says: {text[-QUOTED_CHARACTERS:]}" if text else ""


def _telling(said: Sequence[str]) -> Iterator[str]:
    for line in said:
        if line.strip() and not line.startswith(("processed ", "verification time", "stack depth", "-- ")):
            yield line
