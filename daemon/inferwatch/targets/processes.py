"""All processes of the host, at the price of a directory listing: only some are read in a round.

New ones are read, and those that may just be becoming something else: the young (fork, exec, a title), and the
targets'. Of the others the name is read in turn, once a minute, since an exec and a title change it; the command line
once in a tenth of the process's age, for what executes something else under the same name (Python another program).
"""

from collections.abc import Iterator
from typing import Final

from inferwatch.errors import NoData, ParseError, SourceError
from inferwatch.sources.procfs.cmdline import parse_cmdline
from inferwatch.sources.procfs.pid_stat import PidStat, parse_pid_stat
from inferwatch.targets.model import ProcessId
from inferwatch.targets.reader import DENIED, ProcReader
from inferwatch.targets.records import Record
from inferwatch.targets.rules import Matcher, Ports, Process
from inferwatch.targets.text import clean

STAT_BYTES: Final = 4096
CMDLINE_BYTES: Final = 64 << 10
UPTIME_BYTES: Final = 64
COMM_BYTES: Final = 256
COMM_LIMIT: Final = 64  # a kernel thread's name may be this long
PROCESS_LIMIT: Final = 100_000
YOUNG_SECONDS: Final = 60.0
ROTATION_NS: Final = 50_000_000_000  # and one interval until it is noticed
WORDS_SHARE: Final = 0.1
WORDS_LONGEST_SECONDS: Final = 290.0
INIT: Final = 1
NEVER: Final = 1 << 63
DEAD_STATES: Final = frozenset("ZXx")
SPREAD: Final = 2_654_435_761  # Knuth's: neighbouring pids are read in different rounds
SPREAD_RANGE: Final = 1 << 32


class Processes:
    """The processes of a procfs.

    Args:
        reader: Reads it.
        matcher: Says what a process is.
        ports: Tells what a process listens on, for the matcher.
        ticks: Clock ticks a second of its start times.
    """

    def __init__(self, reader: ProcReader, matcher: Matcher, ports: Ports, ticks: int) -> None:
        self._reader = reader
        self._matcher = matcher
        self._ports = ports
        self._ticks = ticks
        self._records: dict[int, Record] = {}
        self._inodes: dict[int, int] = {}
        self._seconds = 0.0
        self.left_out = 0
        self.hidden = False

    def get(self, pid: int) -> Record | None:
        """Return what is remembered of a process that is alive."""
        record = self._records.get(pid)
        return record if record is not None and record.alive else None

    def __iter__(self) -> Iterator[Record]:
        """Return all processes that are alive, in no particular order."""
        return (record for record in self._records.values() if record.alive)

    @property
    def denied(self) -> int:
        """Return the number of processes of which something could not be read."""
        return sum(1 for record in self._records.values() if record.denied)

    def refresh(self, now_ns: int) -> None:
        """Bring the records up to date.

        Raises:
            NoData: There is no procfs.
            SourceError: It can't be listed.
        """
        listing = self._reader.listing()
        self._seconds = self._uptime()
        self.hidden = INIT not in listing  # every pid namespace has one as long as it has processes
        self._follow(listing)
        own = self._records.get(self._reader.own_pid() or 0)
        if own is not None:  # the agent is no target of its own, whatever its command line mentions
            own.next_read_ns = NEVER
        due = [each for each in self._records.values() if each.next_read_ns <= now_ns or each.is_target or each.young]
        for record in due:
            self._read(record, now_ns)

    def _follow(self, listing: dict[int, int]) -> None:
        """Forget processes that are gone and make a record of each new one; a pid used again is one."""
        self.left_out = 0
        if listing == self._inodes:
            return
        for pid in self._records.keys() - listing.keys():
            del self._records[pid]
        known = self._inodes
        for pid in sorted(pid for pid, inode in listing.items() if known.get(pid) != inode):
            if pid not in self._records and len(self._records) >= PROCESS_LIMIT:
                self.left_out += 1
                del listing[pid]  # so that it is new in the next round too
            else:
                self._records[pid] = Record(pid, listing[pid])
        self._inodes = listing

    def _read(self, record: Record, now_ns: int) -> None:
        wait = ROTATION_NS
        if record.next_read_ns == 0:  # so that what was found in one round is not due in one
            wait = wait * (record.pid * SPREAD % SPREAD_RANGE) // SPREAD_RANGE
        record.next_read_ns = now_ns + max(wait, 1)
        if record.id is not None and not record.is_target and self._is_unchanged(record, record.id, now_ns):
            return
        try:
            stat = parse_pid_stat(self._reader.read(record.pid, "stat", STAT_BYTES))
        except (NoData, ParseError):
            record.alive = False
            return
        except SourceError as error:
            record.alive = False
            record.denied.add(error.reason)
            return
        self._take(record, stat)
        if record.alive:
            self._classify(record, now_ns)

    def _is_unchanged(self, record: Record, identity: ProcessId, now_ns: int) -> bool:
        """Return whether a process runs what it ran: its name alone costs a fourth of what a whole reading does.

        For its stat the kernel adds up all its threads (do_task_stat() in fs/proc/array.c).
        """
        if record.denied or not record.alive or self._matcher.changes:
            return False
        record.young = self._age(identity) < YOUNG_SECONDS
        try:
            comm = _comm(self._reader.read(record.pid, "comm", COMM_BYTES).removesuffix(b"\n"))
            if comm != record.comm or now_ns < record.next_words_ns:
                return comm == record.comm
            data = self._reader.read(record.pid, "cmdline", CMDLINE_BYTES)
        except (NoData, SourceError):
            return False
        self._plan_words(record, identity, now_ns)
        return record.fingerprint == _fingerprint(comm, data)

    def _plan_words(self, record: Record, identity: ProcessId, now_ns: int) -> None:
        age = self._age(identity)
        seconds = 0.0 if age < YOUNG_SECONDS else min(age * WORDS_SHARE, WORDS_LONGEST_SECONDS)
        record.next_words_ns = now_ns + int(seconds * 1e9)

    def _age(self, identity: ProcessId) -> float:
        """Return the seconds since a process began."""
        return self._seconds - identity.start_ticks / self._ticks

    def _take(self, record: Record, stat: PidStat) -> None:
        identity = ProcessId(record.pid, stat.start_ticks)
        if record.id != identity:
            record.match, record.fingerprint, record.is_target, record.joined = None, None, False, None
            record.denied.clear()
        record.id = identity
        record.denied.discard(DENIED)
        record.ppid = stat.ppid
        record.comm = _comm(stat.comm)
        record.alive = not stat.kernel_thread and stat.state not in DEAD_STATES
        record.young = self._age(identity) < YOUNG_SECONDS
        if stat.kernel_thread and not record.young:
            record.next_read_ns = NEVER

    def _classify(self, record: Record, now_ns: int) -> None:
        if record.id is not None:
            self._plan_words(record, record.id, now_ns)
        try:
            data = self._reader.read(record.pid, "cmdline", CMDLINE_BYTES)
        except NoData:
            record.alive = False
            return
        except SourceError as error:
            if error.reason == DENIED:
                record.denied.add("cmdline")
            data = b""
        if not data and record.fingerprint is not None:
            return  # it is ending: its memory goes some time before it does, and it still is the parent of its children
        fingerprint = _fingerprint(record.comm, data)
        if fingerprint == record.fingerprint and not self._matcher.changes:
            return
        record.fingerprint = fingerprint
        arguments = parse_cmdline(data, CMDLINE_BYTES).arguments
        process = Process(self._reader, self._ports, record.pid, record.comm, arguments)
        record.match = self._matcher.match(process)
        record.denied.discard("rule")
        if process.denied:
            record.denied.add("rule")

    def _uptime(self) -> float:
        try:
            return float(self._reader.read("", "uptime", UPTIME_BYTES).split()[0])
        except (NoData, SourceError, ValueError, IndexError):
            return float("-inf")  # then all are taken for young: it costs time, but nothing is missed


def _comm(data: bytes) -> str:
    return clean(data.decode("utf-8", "replace"), COMM_LIMIT)


def _fingerprint(comm: str, cmdline: bytes) -> int:
    return hash((comm, cmdline))
