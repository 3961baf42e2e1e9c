"""What is known of a target's processes: their pids inside, what they listen on."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from inferwatch.errors import InferwatchError, SourceError
from inferwatch.sources.procfs.pid_status import parse_pid_status
from inferwatch.targets.model import ProcessId, TargetProcess
from inferwatch.targets.reader import DENIED, ProcReader
from inferwatch.targets.recognisers import FRONT_ROLES
from inferwatch.targets.records import Record
from inferwatch.targets.rules import STATUS_BYTES
from inferwatch.targets.sockets import Listening, Sockets

SECOND_NS: Final = 1_000_000_000
FIRST_WAIT_NS: Final = 5 * SECOND_NS  # until what listens on nothing is looked at again; doubled each time
LONGEST_WAIT_NS: Final = 60 * SECOND_NS


@dataclass(slots=True, eq=False)
class Member:
    """A process of a target.

    Args:
        process: As it is shown.
        fingerprint: Of its command line when its sockets were read last.
        listening: What it listens on, None before that was read.
        next_ns: When that is read again.
        wait_ns: How long after that once more.
    """

    process: TargetProcess
    fingerprint: int | None = None
    listening: Listening | None = None
    next_ns: int = 0
    wait_ns: int = FIRST_WAIT_NS


class Members:
    """The processes of all targets.

    Args:
        reader: Reads the procfs.
        sockets: Finds what they listen on.
    """

    def __init__(self, reader: ProcReader, sockets: Sockets) -> None:
        self._reader = reader
        self._sockets = sockets
        self._known: dict[ProcessId, Member] = {}

    def begin_round(self, alive: set[ProcessId]) -> None:
        """Forget processes that no target has any more."""
        for identity in self._known.keys() - alive:
            del self._known[identity]

    def update(
        self, record: Record, role: str, expected: Sequence[int], now_ns: int, *, changed: bool
    ) -> Member | None:
        """Return a process as it now is; None when it is gone.

        Args:
            record: The process.
            role: What it does.
            expected: Ports at which its target's HTTP server is expected.
            now_ns: Now.
            changed: Whether its target has gained or lost a process.
        """
        if record.id is None:
            return None
        member = self._known.get(record.id)
        if member is None:
            inner = self._container_pid(record)
            process = TargetProcess(record.id, record.ppid, record.comm, role, inner)
            member = self._known[record.id] = Member(process)
        shown = member.process
        if (shown.ppid, shown.comm, shown.role) != (record.ppid, record.comm, role):
            member.process = TargetProcess(record.id, record.ppid, record.comm, role, shown.container_pid)
        self._listen(member, record, expected, now_ns, changed=changed)
        return member

    def _listen(self, member: Member, record: Record, expected: Sequence[int], now_ns: int, *, changed: bool) -> None:
        none_yet = member.listening is None or not member.listening.listeners
        if record.fingerprint != member.fingerprint or (changed and none_yet and member.process.role in FRONT_ROLES):
            member.next_ns, member.wait_ns = 0, FIRST_WAIT_NS
        if now_ns < member.next_ns:
            return
        member.fingerprint = record.fingerprint
        record.denied -= {"sockets"}
        try:
            member.listening = self._sockets.listening(record.pid, expected)
        except InferwatchError as error:
            note(record, "sockets", error)
        if member.listening is not None and member.listening.denied:
            record.denied.add("sockets")
        found = member.listening is not None and member.listening.listeners
        wait = LONGEST_WAIT_NS if found else member.wait_ns
        member.next_ns, member.wait_ns = now_ns + wait, min(wait * 2, LONGEST_WAIT_NS)

    def _container_pid(self, record: Record) -> int | None:
        try:
            pids = parse_pid_status(self._reader.read(record.pid, "status", STATUS_BYTES)).namespace_pids
        except InferwatchError as error:
            note(record, "status", error)
            return None
        return pids[-1] if pids else None


def note(record: Record, what: str, error: InferwatchError) -> None:
    """Remember what of a process could not be read for want of permission."""
    if isinstance(error, SourceError) and error.reason == DENIED:
        record.denied.add(what)
