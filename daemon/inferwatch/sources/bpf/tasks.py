"""Read what all threads of the node did with one read of a BPF task iterator (bpf/tasks.bpf.c; layouts in bpf/tasks.h).

The program adds up by process, by process and thread name, and for the rest of the node; a few map look-ups fetch the
sums. Needs CAP_BPF and CAP_PERFMON. Everything blocks for some milliseconds.
"""

import os
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from struct import Struct
from typing import Final

from inferwatch.errors import NoData
from inferwatch.sources.bpf.loader import BpfIterator, BpfObject, packaged_object
from inferwatch.sources.bpf.maps import BpfMap
from inferwatch.sources.task_ledger import COUNTS, TIMESLICES, Counts, CpuModes, ProcessLedger, reaped_sums
from inferwatch.sources.task_totals import (
    Omitted,
    OtherTotals,
    ProcessTotals,
    TaskSums,
    TaskTotals,
    ThreadStates,
    thread_name,
)
from inferwatch.sources.thread_increases import CROWDED_NAMES

STATES: Final = 6
U32: Final = Struct("=I")
NAME_KEY: Final = Struct("=I16s")
NAME_VALUE: Final = Struct(f"={COUNTS}Q QI4x")
REAPED: Final = 6
PROCESS_VALUE: Final = Struct(f"=QQQQ {COUNTS}Q {REAPED}Q {STATES}I IIII")
NODE_VALUE: Final = Struct(f"=QQ {COUNTS}Q {STATES}I IIII")

USER_HZ: Final = os.sysconf("SC_CLK_TCK")
NO_NAMES_PLACE: Final = 4 + COUNTS + REAPED + STATES  # of `names` in a record of PROCESS_VALUE


@dataclass(frozen=True, slots=True)
class _Name:
    """One entry of the map `names`."""

    key: bytes
    text: str
    threads: int
    counts: Counts


@dataclass(slots=True)
class _Target:
    pid: int
    ledger: ProcessLedger = field(default_factory=ProcessLedger)


@dataclass(frozen=True, slots=True)
class _Process:
    """One value of the map `processes`, as far as it is used."""

    last_pass: int
    start_ticks: int
    total: Counts
    reaped: TaskSums
    states: ThreadStates
    untracked: int
    unnamed: int
    record: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class _Node:
    """The value of the map `node`."""

    this_pass: int
    other: Counts
    states: ThreadStates
    untracked: int
    reader: int


class TaskIterator:
    """The loaded program and what it counts; not for two threads at once.

    Raises (constructor):
        NoData: When this host can't: no libbpf, no BTF, kernel too old, program not built.
        SourceError: When it could but something is wrong: capability missing, program refused.

    Args:
        program: The compiled object; the one in the package by default.
    """

    def __init__(self, program: bytes | None = None) -> None:
        self._object = BpfObject("tasks", packaged_object("tasks") if program is None else program)
        try:
            self._targets: BpfMap = self._object.map("targets", U32, U32)
            self._processes = self._object.map("processes", U32, PROCESS_VALUE)
            self._names = self._object.map("names", NAME_KEY, NAME_VALUE)
            self._node = self._object.map("node", U32, NODE_VALUE)
            self._iterator: BpfIterator = self._object.attach_iterator("sum_tasks")
        except BaseException:
            self._object.close()
            raise
        self._registered: dict[int, _Target] = {}
        self._left_out = 0
        self._last_registration = 0
        self._other_modes = CpuModes()

    def set_targets(self, pids: Iterable[int]) -> None:
        """Say which processes are targets from now on, by their pid in the first pid namespace.

        A new one begins with its whole past. What is not listed any more is forgotten and counts as the rest of the
        node. A process that ended is dropped by `read`; when its pid is listed again it is another process.
        """
        wanted = set(pids)
        present = {}
        for registration, target in list(self._registered.items()):
            if target.pid in wanted:
                present[target.pid] = registration
            else:
                self._forget(registration)
        self._left_out = sum(not self._register(pid) for pid in sorted(wanted - present.keys()))

    def read(self) -> TaskTotals:
        """Read all threads of the node once.

        Raises:
            NoData: When the agent is in a pid namespace of its own, where it would see only that one's threads.
            SourceError: When a call fails.
        """
        self._iterator.read()
        node = self._read_node()
        _check_namespace(node.reader)
        seen, names = self._read_processes(node.this_pass), self._read_names(node.this_pass)
        for registration, process in seen.items():
            self._retire_names(registration, process, names[registration])
        counted = node.other[TIMESLICES] + sum(process.total[TIMESLICES] for process in seen.values()) > 0
        processes = {
            self._registered[registration].pid: self._publish(
                registration, process, names[registration], counted=counted
            )
            for registration, process in seen.items()
        }
        return TaskTotals(
            processes=processes,
            other=OtherTotals(self._other_modes.sums(node.other, has_wait=counted), node.states),
            omitted=Omitted(
                processes=self._left_out,
                threads=sum(process.untracked for process in seen.values()),
                names=sum(process.unnamed for process in seen.values()),
                other_threads=node.untracked,
            ),
        )

    def close(self) -> None:
        """Take the program out of the kernel; calling it again does nothing."""
        self._object.close()

    def _register(self, pid: int) -> bool:
        registration = self._last_registration + 1
        if not self._targets.update((pid,), (registration,)):
            return False
        self._last_registration = registration
        self._registered[registration] = _Target(pid)
        return True

    def _forget(self, registration: int) -> None:
        """Drop a target; its names go with the next reading."""
        target = self._registered.pop(registration)
        self._targets.delete(target.pid)
        self._processes.delete(registration)

    def _read_node(self) -> _Node:
        record = self._node.lookup(0)
        if record is None:
            raise NoData("the map `node` is empty: an array has all its entries, so this can't be")
        this_pass, _begin, *rest = record
        untracked, _, _, reader = rest[COUNTS + STATES :]
        return _Node(this_pass, rest[:COUNTS], ThreadStates(*rest[COUNTS : COUNTS + STATES]), untracked, reader)

    def _read_processes(self, this_pass: int) -> dict[int, _Process]:
        """Return the targets that live, by registration number, and drop those that have ended."""
        found = {}
        for (registration,), record in self._processes.items():
            last_pass, start, _begin, _previous, *rest = record
            counts, reaped, rest = rest[:COUNTS], rest[COUNTS : COUNTS + REAPED], rest[COUNTS + REAPED :]
            _names, untracked, unnamed, _padding = rest[STATES:]
            ticks = start * USER_HZ // 1_000_000_000
            found[registration] = _Process(
                last_pass, ticks, counts, _reaped(reaped), ThreadStates(*rest[:STATES]), untracked, unnamed, record
            )
        living = {
            registration: process
            for registration, process in found.items()
            if process.last_pass == this_pass and registration in self._registered
        }
        for registration in self._registered.keys() - living.keys():
            self._forget(registration)
        return living

    def _read_names(self, this_pass: int) -> dict[int, list[_Name]]:
        """Return the names by registration number, and delete what belongs to none any more."""
        found: dict[int, list[_Name]] = defaultdict(list)
        for key, (*counts, last_pass, threads) in self._names.items():
            registration, name = key
            if registration in self._registered:
                text = thread_name(name.rstrip(b"\0"))
                found[registration].append(_Name(name, text, threads if last_pass == this_pass else 0, counts))
            else:
                self._names.delete(*key)
        return found

    def _retire_names(self, registration: int, process: _Process, names: list[_Name]) -> None:
        """Take away names without a living thread when the places of a process run short, so that new ones have one.

        No pass runs meanwhile: a pass is a read of the iterator, which only this object does.
        """
        if len(names) < CROWDED_NAMES:
            return
        gone = [entry for entry in names if not entry.threads]
        names[:] = [entry for entry in names if entry.threads]
        for entry in gone:
            self._names.delete(registration, entry.key)
            self._registered[registration].ledger.retire(entry.text, entry.counts)
        if gone:
            record = list(process.record)
            record[NO_NAMES_PLACE] = len(names)
            self._processes.update((registration,), tuple(record))

    def _publish(self, registration: int, process: _Process, names: list[_Name], *, counted: bool) -> ProcessTotals:
        return self._registered[registration].ledger.publish(
            process.start_ticks,
            process.total,
            [(name.text, name.threads, name.counts) for name in names],
            process.states,
            has_wait=counted,
            reaped=process.reaped,
        )


def _reaped(values: Sequence[int]) -> TaskSums:
    user, system, voluntary, involuntary, *faults = values
    return reaped_sums(user, system, (faults[0], faults[1]), (voluntary, involuntary))


def _check_namespace(reader: int) -> None:
    """Compare the pid that the program saw the agent have with the one that the agent sees."""
    if reader != os.getpid():
        raise NoData(
            f"the agent runs in a pid namespace of its own (pid {os.getpid()} here, {reader} on the host), and a task "
            "iterator shows only that one's threads: run it in the host's (hostPID, --pid=host)"
        )
