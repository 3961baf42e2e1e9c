"""The reader on a socket that keeps records apart as /dev/kmsg does, and on the real log."""

import errno
import os
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from inferwatch.errors import NoData, SourceError
from inferwatch.sources.kmsg import KmsgReader, open_kmsg


class Log:
    """Writes records; `reader` reads them."""

    def __init__(self) -> None:
        self._near, far = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        far.setblocking(False)
        self.reader = KmsgReader(far.detach())

    def write(self, *sequences: int) -> None:
        for sequence in sequences:
            self._near.send(b"6,%d,1,-;line %d\n" % (sequence, sequence))

    def write_raw(self, data: bytes) -> None:
        self._near.send(data)

    def close(self) -> None:
        self._near.close()
        self.reader.close()


@pytest.fixture
def log() -> Iterator[Log]:
    log = Log()
    yield log
    log.close()


def test_each_record_comes_once_and_reading_does_not_wait(log: Log) -> None:
    log.write(5, 6)
    first, second = log.reader.read(), log.reader.read()

    assert [record.text for record in first.records] == [b"line 5", b"line 6"]
    assert (first.lost, second.records) == (0, ())


def test_gap_in_the_numbers_is_counted(log: Log) -> None:
    log.write(5)
    log.reader.read()
    log.write(9, 10, 12)

    assert log.reader.read().lost == 4


def test_overwritten_records_are_counted(log: Log, monkeypatch: pytest.MonkeyPatch) -> None:
    real, answers = os.read, [True]

    def read(descriptor: int, size: int) -> bytes:
        if answers:
            answers.pop()
            raise BrokenPipeError(errno.EPIPE, "Broken pipe")
        return real(descriptor, size)

    monkeypatch.setattr(os, "read", read)
    log.write(70)

    assert log.reader.read().lost == 1  # it is not known how many: nothing was read before


def test_record_of_unknown_form_is_told_as_lost(log: Log) -> None:
    log.write(1)
    log.write_raw(b"garbage")
    log.write(3)

    assert log.reader.read().lost == 1


def test_log_that_fails_is_a_source_error(log: Log, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(_descriptor: int, _size: int) -> bytes:
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr(os, "read", fail)

    with pytest.raises(SourceError, match="Input/output error"):
        log.reader.read()


def test_missing_log_is_no_data(tmp_path: Path) -> None:
    with pytest.raises(NoData):
        open_kmsg(tmp_path / "kmsg")


def test_denied_log_names_the_capability(monkeypatch: pytest.MonkeyPatch) -> None:
    def deny(*_arguments: object) -> int:
        raise PermissionError(errno.EPERM, "Operation not permitted")

    monkeypatch.setattr(os, "open", deny)

    with pytest.raises(SourceError, match="CAP_SYSLOG") as caught:
        open_kmsg(Path("/dev/kmsg"))
    assert caught.value.reason == "permission_denied"


@pytest.mark.real("kmsg")
def test_real_log_begins_at_its_end_and_tells_who_wrote() -> None:
    if os.geteuid():
        pytest.skip("needs root to write to /dev/kmsg")
    reader = open_kmsg(Path("/dev/kmsg"))
    try:
        Path("/dev/kmsg").write_text("<0>inferwatch test: Killed process 1 (x) total-vm:1kB\n")
        records = [record for record in reader.read().records if b"inferwatch test" in record.text]
    finally:
        reader.close()

    assert [record.facility for record in records] == [1]  # <0> asks for the kernel's facility and does not get it
