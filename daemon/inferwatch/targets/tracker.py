"""The targets of a host, kept up to date: processes to groups to names, endpoints and containers."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Final, Protocol

from inferwatch.config_targets import DiscoveryConfig, TargetConfig
from inferwatch.sources.hostfs import HostFs
from inferwatch.sources.procfs.net_tcp import Address
from inferwatch.targets.assembler import Assembler, Known
from inferwatch.targets.groups import Grouping, age
from inferwatch.targets.model import ProcessId, Target, TargetTable
from inferwatch.targets.names import Places, assign_names
from inferwatch.targets.pods import PodNames
from inferwatch.targets.processes import Processes
from inferwatch.targets.reader import ProcReader
from inferwatch.targets.records import Key, Record
from inferwatch.targets.rules import Matcher, read_users
from inferwatch.targets.sockets import Sockets

NO_MODELS: Final[Mapping[ProcessId, str]] = MappingProxyType({})


class Clock(Protocol):
    """Time, as the context's clock has it."""

    def monotonic_ns(self) -> int:
        """Return CLOCK_MONOTONIC in nanoseconds."""
        ...


class TargetTracker:
    """Finds targets; `refresh` reads and may block, `current` only returns what it found.

    Args:
        hostfs: The host's file systems.
        rules: The user's rules, the first that holds counts.
        clock: Time.
        options: What is found without rules, and limits.
    """

    def __init__(
        self, hostfs: HostFs, rules: Sequence[TargetConfig], clock: Clock, options: DiscoveryConfig | None = None
    ) -> None:
        self._clock = clock
        self._options = options or DiscoveryConfig()
        self._rules = tuple(rules)
        self._passwd = hostfs.root("etc/passwd")
        self._reader = ProcReader(hostfs.procfs)
        self._sockets = Sockets(self._reader)
        self._assembler = Assembler(self._reader, self._sockets, PodNames(hostfs.root("var/log/pods")))
        self._known: dict[Key, Known] = {}
        self._processes: Processes | None = None
        self._grouping: Grouping | None = None
        self._table = TargetTable()
        self._models = NO_MODELS
        self._places: Places = {}
        self.own_addresses: frozenset[Address] = frozenset()

    def current(self) -> TargetTable:
        """Return the newest table; does no I/O."""
        return self._table

    def learn_models(self, models: Mapping[ProcessId, str]) -> None:
        """Take over which models targets say that they serve, for those whose command lines tell none.

        Args:
            models: `Target.identity` to model; what was told before is forgotten.
        """
        self._models = models

    def refresh(self) -> TargetTable:
        """Look at the host again.

        Raises:
            NoData: There is no procfs.
            SourceError: It can't be listed.
        """
        now_ns = self._clock.monotonic_ns()
        self._sockets.begin_round()
        processes, grouping = self._looked_at(now_ns)
        groups, left_out = self._within_limits(grouping.assign())
        left_out["processes"] += processes.left_out
        self._assembler.begin_round(groups.values())
        self._known = {key: self._known.get(key) or Known(key) for key in groups}
        for key, records in groups.items():
            self._assembler.gather(self._known[key], records, processes, now_ns)
        present = [known for known in self._known.values() if known.members]
        assign_names((known.named for known in present), self._places)
        targets = sorted(map(self._shown, present), key=lambda target: target.name)
        self._publish(tuple(targets), now_ns, processes, left_out)
        return self._table

    def _looked_at(self, now_ns: int) -> tuple[Processes, Grouping]:
        if self._processes is None or self._grouping is None:
            matcher = Matcher(self._rules, read_users(self._passwd), builtin=self._options.processes == "on")
            self._processes = Processes(self._reader, matcher, self._sockets, os.sysconf("SC_CLK_TCK"))
            self._grouping = Grouping(self._processes)
        self._processes.refresh(now_ns)
        return self._processes, self._grouping

    def _shown(self, known: Known) -> Target:
        target = self._assembler.target(known)
        return target if target.model else replace(target, model=self._models.get(target.identity, ""))

    def _within_limits(self, groups: Mapping[Key, list[Record]]) -> tuple[dict[Key, list[Record]], dict[str, int]]:
        """Keep the user's targets and then the oldest, and of each the oldest processes."""
        most, longest = self._options.max_targets, self._options.max_processes_per_target
        keys = sorted(groups, key=lambda key: (not key.rule, age(groups[key][0])))
        kept = {key: groups[key] for key in keys[:most]}
        left_out = {"targets": len(keys[most:]), "processes": sum(len(records[longest:]) for records in kept.values())}
        return {key: records[:longest] for key, records in kept.items()}, left_out

    def _publish(
        self, targets: tuple[Target, ...], now_ns: int, processes: Processes, left_out: Mapping[str, int]
    ) -> None:
        changed = targets != self._table.targets
        if changed:
            self.own_addresses = self._sockets.own_addresses()
        generation = self._table.generation + changed
        self._table = TargetTable(targets, generation, now_ns, processes.denied, left_out, processes.hidden)
