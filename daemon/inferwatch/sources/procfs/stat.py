"""Parse /proc/stat (fs/proc/stat.c): CPU time by mode, interrupts, context switches, forks, boot time."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from inferwatch.errors import ParseError
from inferwatch.sources.procfs.fields import excerpt, unsigned

FILE: Final = "/proc/stat"

# Columns of a cpu line. iowait came with 2.5.41, irq and softirq with 2.6.0, steal with 2.6.11, guest with 2.6.24 and
# guest_nice with 2.6.33: an older kernel's line is shorter. guest and guest_nice are *inside* user and nice
# (account_guest_time() in kernel/sched/cputime.c adds to both), so adding all columns counts guests twice.
COLUMNS: Final = ("user", "nice", "system", "idle", "iowait", "irq", "softirq", "steal", "guest", "guest_nice")
FEWEST_COLUMNS: Final = 4


@dataclass(frozen=True, slots=True)
class Stat:
    """The content of /proc/stat.

    Args:
        cpu_seconds: Sum over all possible CPUs since boot, in the order of `COLUMNS`, shorter on an old kernel.
        cpus: The same per online CPU, by its number; empty where the file has no cpuN lines.
        interrupts: Interrupts served since boot, or None where the file doesn't say (as in the fields below).
        context_switches: Context switches since boot.
        boot_time_seconds: When the host booted, seconds since 1970.
        forks: Processes and threads created since boot.
        running: Threads that run or are ready to run now.
        blocked: Threads that wait for I/O now.
    """

    cpu_seconds: tuple[float, ...]
    cpus: Mapping[int, tuple[float, ...]]
    interrupts: int | None = None
    context_switches: int | None = None
    boot_time_seconds: int | None = None
    forks: int | None = None
    running: int | None = None
    blocked: int | None = None


def parse_stat(data: bytes, user_hz: int) -> Stat:
    """Parse /proc/stat.

    Args:
        data: The file.
        user_hz: Ticks a second in which CPU time is given (USER_HZ, `sysconf(_SC_CLK_TCK)`; 100 nearly everywhere).

    Raises:
        ParseError: When a line that is understood is malformed, or the sum line `cpu` is missing.
    """
    cpus: dict[int, tuple[float, ...]] = {}
    total: tuple[float, ...] | None = None
    scalars: dict[bytes, int] = {}
    for line in data.splitlines():
        key, _, rest = line.partition(b" ")
        if key == b"cpu":
            total = _cpu_seconds(line, user_hz)
        elif key.startswith(b"cpu"):
            cpus[unsigned(key[3:], f"{FILE}: number of the CPU in {excerpt(line)}")] = _cpu_seconds(line, user_hz)
        elif key in {b"intr", b"ctxt", b"btime", b"processes", b"procs_running", b"procs_blocked"}:
            # intr is followed by one number per interrupt line, thousands on a large host: only its sum is read.
            scalars[key] = unsigned(rest.split(b" ", 1)[0], f"{FILE}: value of {key.decode()}")
    if total is None:
        raise ParseError(f"{FILE}: no line 'cpu', expected the sum over all CPUs (begins with {excerpt(data)})")
    if lengths := {len(seconds) for seconds in cpus.values()} - {len(total)}:
        raise ParseError(f"{FILE}: cpu lines with {min(lengths)} and {len(total)} columns, expected as many in each")
    return Stat(
        cpu_seconds=total,
        cpus=cpus,
        interrupts=scalars.get(b"intr"),
        context_switches=scalars.get(b"ctxt"),
        boot_time_seconds=scalars.get(b"btime"),
        forks=scalars.get(b"processes"),
        running=scalars.get(b"procs_running"),
        blocked=scalars.get(b"procs_blocked"),
    )


def _cpu_seconds(line: bytes, user_hz: int) -> tuple[float, ...]:
    """Convert the ticks of one cpu line; columns that this code doesn't know are left out."""
    fields = line.split()[1 : len(COLUMNS) + 1]
    if len(fields) < FEWEST_COLUMNS:
        raise ParseError(
            f"{FILE}: cpu line has {len(fields)} columns, expected {FEWEST_COLUMNS} to {len(COLUMNS)} ({excerpt(line)})"
        )
    return tuple(unsigned(field, f"{FILE}: time in {excerpt(line)}") / user_hz for field in fields)
