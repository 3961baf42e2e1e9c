"""Puts a target together: its processes, what they listen on, its name's parts, its container and pod."""

from collections.abc import Iterable, Sequence
from functools import partial

from inferwatch.errors import InferwatchError
from inferwatch.targets.container import identify
from inferwatch.targets.endpoints import endpoint, select
from inferwatch.targets.expected_ports import FIRST_EPHEMERAL, PORT_LIMIT
from inferwatch.targets.groups import age, role_of
from inferwatch.targets.members import Member, Members, note
from inferwatch.targets.model import CgroupPaths, Endpoint, ProcessId, Target
from inferwatch.targets.names import CONTAINER_DIGITS, Named
from inferwatch.targets.pods import PodNames
from inferwatch.targets.processes import INIT, Processes
from inferwatch.targets.reader import ProcReader
from inferwatch.targets.recognisers import CUSTOM, FRONT_ROLES, HEADS
from inferwatch.targets.records import Key, Record
from inferwatch.targets.rules import read_cgroup
from inferwatch.targets.sockets import Listening, Sockets


class Known:
    """What is known of a target, kept from round to round.

    Args:
        key: What it is known by.
    """

    def __init__(self, key: Key) -> None:
        self.key = key
        self.named = Named(CUSTOM, key.rule)
        self.model = ""
        self.ports: tuple[int, ...] = ()
        self.cgroup = CgroupPaths()
        self.container = ("", "")
        self.members: list[Member] = []
        self.main: ProcessId | None = None
        self.endpoints: tuple[Endpoint, ...] = ()


class Assembler:
    """Gathers what is known of targets.

    Args:
        reader: Reads the procfs.
        sockets: Finds what processes listen on.
        pods: Tells pods' names.
    """

    def __init__(self, reader: ProcReader, sockets: Sockets, pods: PodNames) -> None:
        self._reader = reader
        self._sockets = sockets
        self._members = Members(reader, sockets)
        self._pods = pods

    def begin_round(self, groups: Iterable[Sequence[Record]]) -> None:
        """Forget processes that are in no target any more."""
        self._members.begin_round({record.id for records in groups for record in records if record.id is not None})

    def gather(self, known: Known, records: Sequence[Record], processes: Processes, now_ns: int) -> None:
        """Bring a target up to date.

        Args:
            known: The target.
            records: Its processes, the oldest first.
            processes: All processes.
            now_ns: Now.
        """
        self._learn(known, records)
        changed = {member.process.id for member in known.members} != {record.id for record in records}
        roles = [role_of(record, processes) for record in records]
        members = [
            self._members.update(record, role, known.ports, now_ns, changed=changed)
            for record, role in zip(records, roles, strict=True)
        ]
        known.members = [member for member in members if member is not None]
        known.endpoints = self._endpoints(known)
        self._place(known, records[0])
        above = processes.get(records[0].ppid)
        self._describe(known, alone=above is None or above.pid == INIT)

    def target(self, known: Known) -> Target:
        """Return a target as it is shown; it has a name and at least one process."""
        container, pod_uid = known.container
        pod_namespace, pod = self._pods.find(pod_uid)
        return Target(
            name=known.named.name,
            engine=known.named.engine,
            model=known.model,
            processes=tuple(member.process for member in known.members),
            cgroup=known.cgroup,
            container_id=container,
            pod_uid=pod_uid,
            endpoints=known.endpoints,
            pod=pod,
            pod_namespace=pod_namespace,
            main=known.main,
        )

    @staticmethod
    def _learn(known: Known, records: Sequence[Record]) -> None:
        """Take over what command lines tell; what is left of a target when its main process is gone keeps it."""
        matches = [record.match.what for record in records if record.match is not None]
        if known.named.engine == CUSTOM:
            known.named.engine = next((match.engine for match in matches if match.engine != CUSTOM), CUSTOM)
        known.model = next((match.model for match in matches if match.model), known.model)
        ports = tuple(dict.fromkeys(port for match in matches for port in match.ports))
        known.ports = ports[:PORT_LIMIT] or known.ports
        root = known.key.root
        own = [record.id for record in records if record.match is not None]
        known.main = next((identity for identity in own if root is None or identity == root), None)
        known.named.started = age(records[0])

    def _endpoints(self, known: Known) -> tuple[Endpoint, ...]:
        found: list[Endpoint] = []
        for member in known.members:
            listening = member.listening
            if listening is None:
                continue
            own, addresses = self._is_own(listening), partial(self._sockets.addresses_of, listening)
            for listener in listening.listeners:
                usual = listener.port in known.ports or listener.port < FIRST_EPHEMERAL
                front = usual and member.process.role in FRONT_ROLES
                found.append(endpoint(listener, same_namespace=own, addresses=addresses, front=front))
        return select(found, known.ports)

    def _is_own(self, listening: Listening) -> bool | None:
        own = self._sockets.own_namespace
        return listening.namespace == own if own and listening.namespace else None

    def _place(self, known: Known, record: Record) -> None:
        """Find out which cgroup, container and pod it is in: those of its first process."""
        try:
            cgroup = read_cgroup(self._reader, record.pid)
        except InferwatchError as error:
            note(record, "cgroup", error)
            return
        if (cgroup.unified, cgroup.controllers) == (known.cgroup.unified, known.cgroup.controllers):
            return
        known.cgroup = CgroupPaths(cgroup.unified, cgroup.controllers)
        paths = [path for path in (cgroup.unified, *cgroup.controllers.values()) if path is not None]
        known.container = identify(paths)

    def _describe(self, known: Known, *, alone: bool) -> None:
        """Say what its name is made of: the port that it serves, if it does, and where.

        Args:
            known: The target.
            alone: Whether its oldest process has no parent but the one that takes on those who lost theirs.
        """
        named = known.named
        front = [found for found in known.endpoints if found.front]
        ports = [found.port for found in front]
        named.listening = bool(ports)
        named.unreachable = bool(front) and not any(found.url for found in front)
        heads = any(member.process.role in HEADS for member in known.members)
        named.orphan = not heads and not known.key.rule and known.key.siblings is None
        named.stray = named.orphan and alone
        named.place = self._place_of(known)
        if not ports:
            # it will listen there; so a server that never gets that far has its name too
            if named.port is None and known.ports:
                named.port = known.ports[0]
            return
        # a port that it is expected at, or else the one that it had
        if named.port not in ports or (ports[0] in known.ports and named.port not in known.ports):
            named.port = ports[0]

    def _place_of(self, known: Known) -> str:
        """Return what tells it from one with the same port elsewhere, empty in the agent's own network namespace."""
        own = self._sockets.own_namespace
        spaces = (member.listening.namespace for member in known.members if member.listening is not None)
        other = next((space for space in spaces if space and space != own), "")
        if not other:
            return ""
        container, pod_uid = known.container
        _, pod = self._pods.find(pod_uid)
        return pod or container[:CONTAINER_DIGITS] or ("".join(filter(str.isdigit, other)) if own else "")
