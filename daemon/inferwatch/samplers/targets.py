"""Sample which serving processes there are: engine, model, processes by role, container, restarts, reachability."""

import os
from collections import Counter
from collections.abc import Iterator, Sequence
from types import MappingProxyType
from typing import Final, Protocol, runtime_checkable

from inferwatch.errors import InferwatchError, NoData
from inferwatch.model import Event, Family, Kind, Sample
from inferwatch.sources.hostfs import HostFs, read_bytes
from inferwatch.sources.procfs.stat import parse_stat
from inferwatch.spec import Context, PartialData, SamplerSpec
from inferwatch.targets.model import ProcessId, Target, TargetsView, TargetTable, Unreachable

PIDS_SHOWN: Final = 20
CONTAINER_DIGITS: Final = 12
REMEMBERED: Final = 1000  # names of targets that are gone, so that the next one of that name is a restart
TARGET: Final = ("target",)
UNREADABLE: Final = (
    "some processes can't be read, so targets may be missing or have no endpoints or container; run as root or with"
    " CAP_SYS_PTRACE"
)
HIDDEN: Final = (
    "processes of other users are hidden (/proc is mounted with hidepid), so targets may be missing; run as root or"
    " with CAP_SYS_PTRACE, or for hidepid=1 and 2 in the group of the mount's option gid="
)

INFO: Final = Family(
    "inferwatch_target_info",
    "A serving process group: what it runs, up to 20 of its pids (the oldest, ascending in age), the first 12 digits of"
    " its container's id, its pod's name or uid; always 1.",
    Kind.INFO,
    labels=("target", "engine", "model", "pids", "target_container", "target_pod", "target_namespace"),
)
PROCESSES: Final = Family(
    "inferwatch_target_processes",
    "Processes of a target that are alive, by what they do, from /proc.",
    Kind.GAUGE,
    labels=("target", "role"),
)
START: Final = Family(
    "inferwatch_target_start_time_seconds",
    "When a target's main process started, in seconds since 1970; absent when it is gone and only children are left.",
    Kind.GAUGE,
    "seconds",
    TARGET,
)
RESTARTS: Final = Family(
    "inferwatch_target_restarts_total",
    "How often a target's main process was followed by another under the same name since the agent started.",
    Kind.COUNTER,
    labels=TARGET,
)
UNREACHABLE: Final = Family(
    "inferwatch_target_unreachable_info",
    "A port on which a target listens for clients and the agent can't reach it, with the reason in a word; always 1.",
    Kind.INFO,
    labels=("target", "port", "reason"),
)
DENIED: Final = Family(
    "inferwatch_target_unreadable_processes",
    "Processes of the host of which something could not be read for want of permission.",
    Kind.GAUGE,
)
LEFT_OUT: Final = Family(
    "inferwatch_target_left_out",
    "Targets and processes that are not looked at because of a limit of [discovery].",
    Kind.GAUGE,
    labels=("what",),
)


@runtime_checkable
class Tracker(TargetsView, Protocol):
    """The view that can be brought up to date."""

    def refresh(self) -> TargetTable:
        """Look at the host again; blocks."""
        ...


class TargetsSampler:
    """Brings the targets up to date, for all samplers, and tells what there are."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._history = History()
        self._booted: int | None = None
        self._ticks = os.sysconf("SC_CLK_TCK")

    async def sample(self) -> Sequence[Sample]:
        """Refresh and return all samples."""
        tracker = self._context.targets
        if not isinstance(tracker, Tracker):
            raise NoData("nothing looks for targets in this run")
        table = await self._context.run_blocking(self._refresh, tracker)
        for event in self._history.update(table):
            self._context.emit(event)
        samples = [sample for target in table.targets for sample in self._of(target)]
        samples.append(DENIED(table.permission_denied))
        samples += [LEFT_OUT(number, what) for what, number in sorted(table.left_out.items())]
        if table.hidden or table.permission_denied:
            raise PartialData(samples, {"permission_denied": HIDDEN if table.hidden else UNREADABLE})
        return samples

    async def close(self) -> None:
        """Do nothing: the tracker is the agent's."""

    def _refresh(self, tracker: Tracker) -> TargetTable:
        if self._booted is None:
            self._booted = boot_time(self._context.hostfs)
        return tracker.refresh()

    def _of(self, target: Target) -> Iterator[Sample]:
        pids = ",".join(str(process.id.pid) for process in target.processes[:PIDS_SHOWN])
        container = target.container_id[:CONTAINER_DIGITS]
        pod = target.pod or target.pod_uid
        yield INFO(1, target.name, target.engine, target.model, pids, container, pod, target.pod_namespace)
        for role, number in sorted(Counter(process.role for process in target.processes).items()):
            yield PROCESSES(number, target.name, role)
        if self._booted is not None and target.main is not None:
            yield START(self._booted + target.main.start_ticks / self._ticks, target.name)
        yield RESTARTS(self._history.restarts[target.name], target.name)
        for endpoint in target.endpoints:
            if endpoint.front and endpoint.unreachable is not Unreachable.NO:
                yield UNREACHABLE(1, target.name, str(endpoint.port), endpoint.unreachable.value)


class History:
    """What targets there were, to tell what became of them.

    Attributes:
        restarts: Name to number of restarts.
    """

    def __init__(self) -> None:
        self.restarts: Counter[str] = Counter()
        self._seen: dict[str, tuple[ProcessId | None, frozenset[ProcessId]]] = {}
        self._present: frozenset[str] = frozenset()

    def update(self, table: TargetTable) -> list[Event]:
        """Return what happened since the last table."""
        present = {target.name: target for target in table.targets}
        mains = {target.main for target in table.targets}
        events = []
        for name in sorted(self._present - present.keys()):
            events.append(self._event(table, "target_gone", name))
            if self._seen[name][0] in mains:  # it has got another name, so that the next of this one is no restart
                del self._seen[name]
        for name, target in present.items():
            members = frozenset(process.id for process in target.processes)
            main, before = self._seen.pop(name, (None, frozenset()))
            now = target.main or main
            # what is left of a target when its main process is gone is not another one
            if main is not None and now != main and now not in before:
                self.restarts[name] += 1
                events.append(self._event(table, "restart", name, target))
            if name not in self._present:
                events.append(self._event(table, "target_appeared", name, target))
            self._seen[name] = (now, members)
        self._present = frozenset(present)
        self._forget()
        return events

    def _forget(self) -> None:
        """Forget the names that have been gone the longest."""
        for name in list(self._seen)[: max(len(self._seen) - REMEMBERED, 0)]:
            if name not in self._present:
                del self._seen[name]
                self.restarts.pop(name, None)

    @staticmethod
    def _event(table: TargetTable, kind: str, name: str, target: Target | None = None) -> Event:
        attributes = {} if target is None else {"engine": target.engine, "model": target.model}
        return Event(table.monotonic_ns, kind, name, MappingProxyType(attributes))


def boot_time(hostfs: HostFs) -> int | None:
    """Return when the host booted, in seconds since 1970; None when it does not tell."""
    try:
        return parse_stat(read_bytes(hostfs.proc("stat")), os.sysconf("SC_CLK_TCK")).boot_time_seconds
    except InferwatchError:
        return None


SAMPLER: Final = SamplerSpec(
    name="targets",
    dimension="agent",
    summary="Which serving processes there are, found without configuration: engine, model, roles, container, pod.",
    source="/proc/PID/{stat,cmdline,status,cgroup,fd,ns/net,net/tcp,net/tcp6}",
    families=(INFO, PROCESSES, START, RESTARTS, UNREACHABLE, DENIED, LEFT_OUT),
    create=TargetsSampler,
)
