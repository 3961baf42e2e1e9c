import errno
import os
import subprocess
from pathlib import Path
from typing import BinaryIO

import pytest

from inferwatch.errors import NoData, SourceError
from inferwatch.sources.hostfs import HostFs, read_bytes
from support import LIVE, fail_open

MOUNTED = HostFs(procfs=Path("/host/proc"), sysfs=Path("/host/sys"), rootfs=Path("/host"))


@pytest.mark.parametrize(
    ("parts", "path"),
    [
        (("net", "snmp"), "/host/proc/1/net/snmp"),
        (("mounts",), "/host/proc/1/mounts"),
        (("self", "mountinfo"), "/host/proc/1/mountinfo"),
        (("thread-self", "stat"), "/host/proc/1/stat"),
        (("stat",), "/host/proc/stat"),
        (("1", "net", "snmp"), "/host/proc/1/net/snmp"),
        (("42", "net"), "/host/proc/42/net"),
    ],
)
def test_mounted_procfs_is_seen_through_process_1_not_self(parts: tuple[str, ...], path: str) -> None:
    # B40: /host/proc/self names a process of another pid namespace, /host/proc/net is a link to it.
    assert MOUNTED.proc(*parts) == Path(path)


def test_own_procfs_is_used_as_it_is() -> None:
    assert LIVE.proc("self", "stat") == Path("/proc/self/stat")
    assert LIVE.proc("net", "snmp") == Path("/proc/net/snmp")


def test_sysfs_and_root_are_below_their_mounts() -> None:
    assert MOUNTED.sys("devices", "system") == Path("/host/sys/devices/system")
    assert MOUNTED.root("/etc", "os-release") == Path("/host/etc/os-release")


def test_whole_file_is_read(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(os.urandom(200_000))

    assert read_bytes(path) == path.read_bytes()


def test_missing_file_is_no_data(tmp_path: Path) -> None:
    with pytest.raises(NoData, match=r"missing: No such file or directory"):
        read_bytes(tmp_path / "missing")


@pytest.mark.parametrize("number", [errno.ENOTDIR, errno.ESRCH, errno.EOPNOTSUPP, errno.ENODEV])
def test_absence_in_its_other_forms_is_no_data(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, number: int) -> None:
    fail_open(monkeypatch, {"/file": number})

    with pytest.raises(NoData):
        read_bytes(tmp_path / "file")


@pytest.mark.parametrize(
    ("number", "reason"), [(errno.EACCES, "permission_denied"), (errno.EPERM, "permission_denied"), (errno.EIO, "io")]
)
def test_unreadable_file_is_a_source_error_with_a_reason(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, number: int, reason: str
) -> None:
    fail_open(monkeypatch, {"/file": number})

    with pytest.raises(SourceError, match=r"/file: ") as caught:
        read_bytes(tmp_path / "file")
    assert caught.value.reason == reason


def test_directory_is_a_source_error(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match=r"Is a directory"):
        read_bytes(tmp_path)


def test_process_that_ends_between_open_and_read_is_no_data(monkeypatch: pytest.MonkeyPatch) -> None:
    # B35, for real: the kernel answers ESRCH to a read of an ended process's file that is still open.
    real = Path.open
    child = subprocess.Popen(["sleep", "60"])

    def end_after_open(self: Path, *_args: object, **_kwargs: object) -> BinaryIO:
        file = real(self, "rb", buffering=0)
        child.kill()
        child.wait()
        return file

    monkeypatch.setattr(Path, "open", end_after_open)

    with pytest.raises(NoData, match=r"No such process"):
        read_bytes(Path(f"/proc/{child.pid}/stat"))


@pytest.mark.parametrize("size", [100, 101, 200_000])
def test_file_over_the_limit_is_refused(tmp_path: Path, size: int) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"x" * size)

    if size == 100:
        assert len(read_bytes(path, limit=100)) == 100
    else:
        with pytest.raises(SourceError, match=r"larger than 100 bytes, refused") as caught:
            read_bytes(path, limit=100)
        assert caught.value.reason == "too_large"


def test_endless_file_is_refused() -> None:
    with pytest.raises(SourceError, match=r"larger than"):
        read_bytes(Path("/dev/zero"), limit=1 << 20)
