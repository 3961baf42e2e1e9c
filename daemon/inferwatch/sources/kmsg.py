"""Follow the kernel's log, /dev/kmsg (kernel/printk/printk.c, devkmsg_read()): one read is one record."""

import errno
import os
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from inferwatch.errors import NoData, ParseError, SourceError
from inferwatch.sources.hostfs import ABSENT_ERRNOS, DENIED_ERRNOS
from inferwatch.sources.procfs.fields import excerpt, unsigned

RECORD_BYTES: Final = 16_384  # above the kernel's longest record (PRINTK_MESSAGE_MAX, 2048, or 8192 before 6.3)
RECORDS_PER_READ: Final = 20_000  # a log that grows faster than it is read must not hold the sampler for ever
FEWEST_FIELDS: Final = 4
ESCAPE: Final = re.compile(rb"\\x([0-9a-f]{2})")


@dataclass(frozen=True, slots=True)
class KmsgRecord:
    """One record.

    Args:
        facility: 0 is the kernel; what programs write to /dev/kmsg never has 0.
        sequence: Its number; consecutive.
        text: The message as the kernel wrote it.
    """

    facility: int
    sequence: int
    text: bytes


def parse_kmsg_record(data: bytes) -> KmsgRecord:
    r"""Parse `4,337,2056242316,-;python3 invoked oom-killer: ...` (Documentation/ABI/testing/dev-kmsg).

    Lines after the first hold properties of a device and are left out. Bytes that are not printable stand as `\x0a`.

    Raises:
        ParseError: When the fields before the message are missing or malformed.
    """
    head, semicolon, rest = data.partition(b";")
    fields = head.split(b",")
    if not semicolon or len(fields) < FEWEST_FIELDS:
        raise ParseError(f"/dev/kmsg: {excerpt(data)} found, expected priority, number, time, flag and a message")
    priority = unsigned(fields[0], "/dev/kmsg: priority")
    text = ESCAPE.sub(lambda match: bytes([int(match[1], 16)]), rest.split(b"\n", 1)[0])
    return KmsgRecord(priority >> 3, unsigned(fields[1], "/dev/kmsg: number of the record"), text)


@dataclass(frozen=True, slots=True)
class NewRecords:
    """What came since the last read: the records, and how many were overwritten before they could be read."""

    records: tuple[KmsgRecord, ...]
    lost: int


class KmsgReader:
    """Reads what is new; begins at the log's end as it is when the reader is made.

    Args:
        descriptor: An open, non-blocking descriptor, of which each read gives one record; see `open_kmsg`.
    """

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._next: int | None = None

    def read(self) -> NewRecords:
        """Return what is new; does not wait.

        Raises:
            SourceError: When the log can't be read any more.
        """
        records: list[KmsgRecord] = []
        lost, overwritten = 0, False
        while len(records) < RECORDS_PER_READ:
            try:
                data = os.read(self._descriptor, RECORD_BYTES)
            except BlockingIOError:
                break
            except OSError as error:
                if error.errno != errno.EPIPE:
                    raise SourceError(f"/dev/kmsg: {error.strerror}", reason="io") from error
                overwritten = True  # the next read gives the oldest record that is left
                continue
            if not data:
                break
            try:
                record = parse_kmsg_record(data)
            except ParseError:  # a form that is not known; the sequence shows it as lost
                continue
            lost += self._gap(record.sequence, overwritten=overwritten)
            overwritten = False
            self._next = record.sequence + 1
            records.append(record)
        return NewRecords(tuple(records), lost)

    def close(self) -> None:
        """Close the log."""
        os.close(self._descriptor)

    def _gap(self, sequence: int, *, overwritten: bool) -> int:
        """Return how many records are missing before one; at least one where the kernel says that there are."""
        return max(int(overwritten), sequence - self._next if self._next is not None else 0)


Open = Callable[[Path], KmsgReader]


def open_kmsg(path: Path) -> KmsgReader:
    """Open the log at its end.

    Raises:
        NoData: When there is none.
        SourceError: When it may not be read (kernel.dmesg_restrict without CAP_SYSLOG, a container's device rules), or
            is not a device.
    """
    descriptor = -1
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        os.lseek(descriptor, 0, os.SEEK_END)
    except OSError as error:
        if descriptor >= 0:
            os.close(descriptor)
        if error.errno in ABSENT_ERRNOS:
            raise NoData(f"{path}: {error.strerror}") from error
        denied = error.errno in DENIED_ERRNOS
        advice = "; it needs CAP_SYSLOG, and the device in a container" if denied else ""
        reason = "permission_denied" if denied else "io"
        raise SourceError(f"{path}: {error.strerror}{advice}", reason=reason) from error
    return KmsgReader(descriptor)
