"""The checks of `doctor` that concern the host and the agent's place on it, each in one sentence."""

import errno
import http.client
import os
import platform
import socket
import sys
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Final

from inferwatch import __version__
from inferwatch.config import Paths, parse_listen_address
from inferwatch.errors import InferwatchError, NoData
from inferwatch.sources.hostfs import HostFs, read_bytes

ASK_LIMIT_SECONDS: Final = 2.0
OWN_SERVER: Final = "inferwatch"  # what the agent's web server calls itself
INITIAL_PID_NAMESPACE: Final = "pid:[4026531836]"  # PROC_PID_INIT_INO, include/linux/proc_ns.h


class Level(StrEnum):
    """What a finding means."""

    OK = "ok"
    NOTE = "note"  # something is not there; nothing is wrong
    FAIL = "FAIL"  # something that is configured does not work


@dataclass(frozen=True, slots=True)
class Finding:
    """One line of `doctor`."""

    ability: str
    level: Level
    text: str


def program() -> Finding:
    """Return which program this is."""
    text = f"inferwatch {__version__} on Python {platform.python_version()}, Linux {platform.release()}"
    return Finding("program", Level.OK, f"{text} ({sys.executable})")


def permissions() -> Finding:
    """Return whether the agent's user matters; no sampler of this version reads other users' files."""
    user = os.geteuid()
    who = "root" if user == 0 else f"user id {user}"
    return Finding("permissions", Level.OK, f"{who}; the samplers of this version need no capability")


def file_systems(paths: Paths) -> Iterator[Finding]:
    """Return whether the host's file systems can be read, and whether they are the host's."""
    hostfs = HostFs(paths.procfs, paths.sysfs, paths.rootfs)
    yield _readable("procfs", hostfs.proc("stat"), "--path.procfs") or _procfs(hostfs)
    yield _readable("sysfs", hostfs.sys("devices", "system", "cpu", "online"), "--path.sysfs") or Finding(
        "sysfs", Level.OK, f"{paths.sysfs} is readable"
    )
    try:
        next(paths.rootfs.iterdir(), None)
    except OSError as error:
        yield Finding("rootfs", Level.FAIL, f"{paths.rootfs}: {error.strerror}; check --path.rootfs")
    else:
        yield Finding("rootfs", Level.OK, f"{paths.rootfs} is readable")


def _readable(ability: str, path: Path, flag: str) -> Finding | None:
    try:
        read_bytes(path)
    except NoData as error:
        return Finding(ability, Level.FAIL, f"{error}; is it mounted there? check {flag}")
    except InferwatchError as error:
        return Finding(ability, Level.FAIL, f"{error}; run as root, or check {flag}")
    return None


def _procfs(hostfs: HostFs) -> Finding:
    """Return whether all processes of the host are seen: system-wide figures are right also when they are not."""
    root = hostfs.procfs
    if not hostfs.proc("1").exists():
        hint = "mounted with hidepid; run as root, or add the agent's user to the group of its gid= option"
        return Finding("procfs", Level.NOTE, f"{root} is readable, but process 1 is not seen: {hint}")
    try:
        namespace = str(hostfs.proc("self" if hostfs.is_own_proc else "1", "ns", "pid").readlink())
    except OSError:
        return Finding("procfs", Level.OK, f"{root} is readable")
    if namespace == INITIAL_PID_NAMESPACE:
        return Finding("procfs", Level.OK, f"{root} is the host's")
    hint = "its processes are not the host's; in a container mount the host's /proc and name it with --path.procfs"
    return Finding("procfs", Level.NOTE, f"{root} belongs to a pid namespace of its own: {hint}")


def listen_address(value: str) -> Finding:
    """Return whether the address can be listened on, or who listens there."""
    host, port = parse_listen_address(value)
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        with closing(socket.socket(family, kind, protocol)) as listener:
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listener.bind(address)
    except OSError as error:
        if error.errno == errno.EADDRINUSE:
            return _who_listens(value, host, port)
        hint = "choose another with --web.listen-address"
        return Finding("web", Level.FAIL, f"can't listen on {value}: {error.strerror or error}; {hint}")
    return Finding("web", Level.OK, f"{value} is free")


def _who_listens(value: str, host: str, port: int) -> Finding:
    asked = "localhost" if host in {"0.0.0.0", "::"} else host  # noqa: S104 - compared, not listened on
    connection = http.client.HTTPConnection(asked, port, timeout=ASK_LIMIT_SECONDS)
    try:
        connection.request("GET", "/-/healthy")
        server = connection.getresponse().getheader("Server", "")
    except (OSError, http.client.HTTPException):
        server = ""
    finally:
        connection.close()
    if server == OWN_SERVER:
        return Finding("web", Level.OK, f"an inferwatch answers on {value} already")
    hint = "stop it, or choose another with --web.listen-address"
    return Finding("web", Level.FAIL, f"another program listens on {value}; {hint}")
