"""The records of targets: serving process groups and what is known of them."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from types import MappingProxyType
from typing import Protocol

NO_PATHS: Mapping[str, str] = MappingProxyType({})
NO_COUNTS: Mapping[str, int] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class ProcessId:
    """Identity of a process: a pid alone is used again after a while.

    Args:
        pid: In the pid namespace of the procfs that is read.
        start_ticks: Field 22 of /proc/PID/stat: start time in clock ticks after boot.
    """

    pid: int
    start_ticks: int


@dataclass(frozen=True, slots=True)
class TargetProcess:
    """One process of a target.

    Args:
        id: Its identity.
        ppid: Its parent's pid.
        comm: Name of its main thread.
        role: What it does there, of a bounded set: `api_server`, `engine_core`, `worker`, `router`, `child`, ...
        container_pid: Its pid in the innermost pid namespace (NSpid), None when that is not known.
    """

    id: ProcessId
    ppid: int
    comm: str
    role: str
    container_pid: int | None = None


@dataclass(frozen=True, slots=True)
class CgroupPaths:
    """Where a process stands in the cgroup hierarchies, as in /proc/PID/cgroup.

    Args:
        unified: Path in the v2 hierarchy, None when there is none.
        controllers: v1 controller name to path.
    """

    unified: str | None = None
    controllers: Mapping[str, str] = field(default_factory=lambda: NO_PATHS)


class Unreachable(StrEnum):
    """Why an endpoint can't be reached, in one word: the value of a label."""

    NO = ""
    UNKNOWN = "unknown_namespace"
    LOOPBACK = "loopback_of_other_namespace"
    NO_ADDRESS = "no_address"
    LINK_LOCAL = "link_local"


@dataclass(frozen=True, slots=True)
class Endpoint:
    """An address on which a target listens.

    Args:
        url: Base URL, for example http://127.0.0.1:8000, at which the agent can reach it; empty when it can't.
        port: The port.
        unreachable_reason: Why it can't be reached from the agent's network namespace; empty when it can.
        unreachable: The same in a word.
        front: Whether a process that serves clients listens there, so that a request does no harm: what workers listen
            on (NCCL, torch.distributed) takes a stranger for a broken peer.
    """

    url: str
    port: int
    unreachable_reason: str = ""
    unreachable: Unreachable = Unreachable.NO
    front: bool = False


@dataclass(frozen=True, slots=True)
class Target:
    """A serving process group: an engine with its model.

    Args:
        name: Stable name, the value of the label `target`.
        engine: `vllm`, `sglang`, `tgi`, `triton`, `llamacpp`, `ollama`, `lmdeploy`, `trtllm`, `ray`,
            or `custom`.
        model: Name of the model where the command line tells it, otherwise empty.
        processes: Its processes, the oldest first; never empty.
        cgroup: Where its first process stands.
        container_id: Full id of its container, empty when it is in none.
        pod_uid: Uid of its Kubernetes pod, empty when it is in none.
        endpoints: Addresses on which its processes listen, the one for clients first.
        pod: Name of its pod, empty when the host does not tell it.
        pod_namespace: Kubernetes namespace of its pod, empty when the host does not tell it.
        main: The process that started it; None when it is gone and only children of it are left.
    """

    name: str
    engine: str
    model: str
    processes: tuple[TargetProcess, ...]
    cgroup: CgroupPaths = field(default_factory=CgroupPaths)
    container_id: str = ""
    pod_uid: str = ""
    endpoints: tuple[Endpoint, ...] = ()
    pod: str = ""
    pod_namespace: str = ""
    main: ProcessId | None = None

    @property
    def identity(self) -> ProcessId:
        """Return the process that it is told apart by: the main one, or else the oldest that is left."""
        return self.main or self.processes[0].id


@dataclass(frozen=True, slots=True)
class TargetTable:
    """All targets at a moment.

    Args:
        targets: Ordered by name.
        generation: Rises whenever a target, a process, a role or an endpoint changes.
        monotonic_ns: When it was read.
        permission_denied: Number of processes of which something could not be read.
        left_out: What (`targets`, `processes`) to how many are not in the table because of a limit.
        hidden: Whether processes of other users are not even listed (hidepid of the procfs).
    """

    targets: tuple[Target, ...] = ()
    generation: int = 0
    monotonic_ns: int = 0
    permission_denied: int = 0
    left_out: Mapping[str, int] = field(default_factory=lambda: NO_COUNTS)
    hidden: bool = False


class TargetsView(Protocol):
    """What samplers are handed."""

    def current(self) -> TargetTable:
        """Return the newest table; does no I/O."""
        ...


@dataclass(frozen=True, slots=True)
class FixedTargets:
    """A view of a table that does not change."""

    table: TargetTable

    def current(self) -> TargetTable:
        """Return the table."""
        return self.table


NO_TARGETS: TargetsView = FixedTargets(TargetTable())
