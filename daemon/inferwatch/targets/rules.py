"""The user's rules and the built-in recognisers, applied to one process."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Protocol

from inferwatch.config_targets import TargetConfig
from inferwatch.errors import InferwatchError, SourceError
from inferwatch.pattern import TEXT_LIMIT, Pattern
from inferwatch.sources.hostfs import read_bytes
from inferwatch.sources.procfs.pid_cgroup import PidCgroup, parse_pid_cgroup
from inferwatch.sources.procfs.pid_status import parse_pid_status
from inferwatch.targets.command import read_command
from inferwatch.targets.reader import DENIED, ProcReader
from inferwatch.targets.recognisers import CUSTOM, MAIN, Recognised, recognise
from inferwatch.targets.text import clean

PATTERN_KEYS: Final = ("cmdline", "exe", "comm", "cgroup")
STATUS_BYTES: Final = 16_384
CGROUP_BYTES: Final = 65_536
SHADOW_FIELDS: Final = 3  # name, password, uid


class Ports(Protocol):
    """Tells what a process listens on."""

    def listens_on(self, pid: int, port: int) -> bool:
        """Return whether a process itself has a listening socket of this port."""
        ...


@dataclass(frozen=True, slots=True)
class Match:
    """What a process is.

    Args:
        what: Engine, role, model and ports.
        rule: Name of the user's rule that holds for it, empty when none does.
    """

    what: Recognised
    rule: str = ""


class Process:
    """What rules may ask of a process, read when asked; what can't be read does not hold, and is noted."""

    def __init__(self, reader: ProcReader, ports: Ports, pid: int, comm: str, arguments: Sequence[str]) -> None:
        self._reader = reader
        self._ports = ports
        self.pid = pid
        self.comm = comm
        self.arguments = arguments
        self.denied = False

    def texts(self, key: str) -> Sequence[str]:
        """Return the texts in one of which a rule's pattern has to be found."""
        if key == "comm":
            return (self.comm,)
        if key == "cmdline":
            return (clean(" ".join(self.arguments), TEXT_LIMIT),)
        try:
            if key == "exe":
                return (clean(self._reader.link(self.pid, "exe"), TEXT_LIMIT),)
            cgroup = read_cgroup(self._reader, self.pid)
        except InferwatchError as error:
            self._note(error)
            return ()
        return [clean(path, TEXT_LIMIT) for path in (cgroup.unified, *cgroup.controllers.values()) if path is not None]

    def uid(self) -> int | None:
        """Return its real user id."""
        try:
            return parse_pid_status(self._reader.read(self.pid, "status", STATUS_BYTES)).uid
        except InferwatchError as error:
            self._note(error)
            return None

    def listens_on(self, port: int) -> bool:
        """Return whether it listens on a port."""
        try:
            return self._ports.listens_on(self.pid, port)
        except InferwatchError as error:
            self._note(error)
            return False

    def _note(self, error: InferwatchError) -> None:
        self.denied |= isinstance(error, SourceError) and error.reason == DENIED


class Rule:
    """One `[[targets]]` entry."""

    def __init__(self, config: TargetConfig, users: Mapping[str, int]) -> None:
        self.name = config.name
        match = config.match
        given = {key: getattr(match, key) for key in PATTERN_KEYS}
        self._patterns = [(key, Pattern(text)) for key, text in given.items() if text is not None]
        self._port = match.port
        self._uid = _uid(match.user, users)
        self.changes = match.port is not None or match.cgroup is not None or match.user is not None

    def holds(self, process: Process) -> bool:
        """Return whether all of it holds for a process; the cheap keys are asked first."""
        if not all(any(map(pattern.search, process.texts(key))) for key, pattern in self._patterns):
            return False
        if self._uid is not None and process.uid() != self._uid:
            return False
        return self._port is None or process.listens_on(self._port)


class Matcher:
    """All rules, then the recognisers.

    Args:
        rules: The user's; the first that holds counts.
        users: The host's user names with their numbers.
        builtin: Whether the recognisers are asked.
    """

    def __init__(self, rules: Sequence[TargetConfig], users: Mapping[str, int], *, builtin: bool) -> None:
        self._rules = [Rule(rule, users) for rule in rules]
        self._builtin = builtin
        self.changes = any(rule.changes for rule in self._rules)  # without an exec: it has to be asked again

    def match(self, process: Process) -> Match | None:
        """Return what a process is; None when it is no target's by itself."""
        found = recognise(read_command(process.arguments, process.comm))
        for rule in self._rules:
            if rule.holds(process):
                return Match(found or Recognised(CUSTOM, MAIN), rule.name)
        return Match(found) if found is not None and self._builtin else None


def _uid(user: str | int | None, users: Mapping[str, int]) -> int | None:
    """Return a user's number; -1, which no process has, for a name that the host does not know."""
    if isinstance(user, str):
        return users.get(user, int(user) if user.isascii() and user.isdigit() else -1)
    return user


def read_cgroup(reader: ProcReader, pid: int) -> PidCgroup:
    """Return where a process stands in the cgroup hierarchies."""
    return parse_pid_cgroup(reader.read(pid, "cgroup", CGROUP_BYTES))


def read_users(passwd: Path) -> dict[str, int]:
    """Return user names with their numbers; none when there is no such file (a rule may give the number)."""
    try:
        lines = read_bytes(passwd).decode("utf-8", "replace").split("\n")
    except InferwatchError:
        return {}
    fields = (line.split(":") for line in lines)
    return {f[0]: int(f[2]) for f in fields if len(f) >= SHADOW_FIELDS and f[2].isascii() and f[2].isdigit()}
