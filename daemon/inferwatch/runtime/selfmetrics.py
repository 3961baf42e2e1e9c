"""What the agent says of itself: how its samplers are doing and what it costs."""

import platform
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import psutil

from inferwatch import __version__
from inferwatch.model import Family, Kind, Sample
from inferwatch.runtime.events import EventRing
from inferwatch.runtime.scheduler import Scheduler
from inferwatch.runtime.store import Store
from inferwatch.runtime.unit import State, Unit

NAME: Final = "agent"

BUILD: Final = Family(
    "inferwatch_build_info", "Version of the agent and of its Python.", Kind.INFO, labels=("version", "python_version")
)
UP: Final = Family(
    "inferwatch_sampler_up",
    "Whether the last run of every instance of the sampler gave data (1) or not (0); absent while it is unavailable.",
    Kind.GAUGE,
    labels=("sampler",),
)
AVAILABLE: Final = Family(
    "inferwatch_sampler_available",
    "Whether this host has what the sampler reads (1) or not (0).",
    Kind.GAUGE,
    labels=("sampler",),
)
PROBLEM: Final = Family(
    "inferwatch_sampler_problem_info",
    "Reasons why the sampler's last run gave no data or only a part of it; the sentence is in /api/v1/samplers.",
    Kind.INFO,
    labels=("sampler", "reason"),
)
INSTANCES: Final = Family(
    "inferwatch_sampler_instances", "Instances of the sampler, by state.", Kind.GAUGE, labels=("sampler", "state")
)
DURATION: Final = Family(
    "inferwatch_sampler_duration_seconds",
    "Time that the last run took, of the slowest instance.",
    Kind.GAUGE,
    "seconds",
    ("sampler",),
)
LAST_SUCCESS: Final = Family(
    "inferwatch_sampler_last_success_timestamp_seconds",
    "When the last run that gave data began, of the instance for which it is longest ago, as Unix time.",
    Kind.GAUGE,
    "seconds",
    ("sampler",),
)
FAILURES: Final = Family(
    "inferwatch_sampler_failures_total",
    "Runs of the sampler that failed in whole or in part, by reason.",
    Kind.COUNTER,
    labels=("sampler", "reason"),
)
SKIPPED: Final = Family(
    "inferwatch_sampler_skipped_total",
    "Runs that were left out because an earlier one was still going on.",
    Kind.COUNTER,
    labels=("sampler",),
)
SERIES: Final = Family(
    "inferwatch_sampler_series", "Series that the sampler has on the page.", Kind.GAUGE, labels=("sampler",)
)
DROPPED: Final = Family(
    "inferwatch_sampler_dropped_samples",
    "Samples of the last run that were left out: not a finite number, or a series given twice.",
    Kind.GAUGE,
    labels=("sampler",),
)
EVENTS: Final = Family(
    "inferwatch_events_total", "Events that the agent noted, by kind.", Kind.COUNTER, labels=("kind",)
)
LOOP_DELAY: Final = Family(
    "inferwatch_event_loop_delay_seconds",
    "Longest time by which a run began too late since the last reading; a busy host or agent shows here first.",
    Kind.GAUGE,
    "seconds",
)
RELOAD_OK: Final = Family(
    "inferwatch_config_last_reload_successful",
    "Whether the configuration was valid when it was last read.",
    Kind.GAUGE,
)
RELOAD_TIME: Final = Family(
    "inferwatch_config_last_reload_success_timestamp_seconds",
    "When a valid configuration was last read, as Unix time.",
    Kind.GAUGE,
    "seconds",
)
CPU: Final = Family(
    "inferwatch_process_cpu_seconds_total",
    "CPU time of the agent itself in user and system mode, from /proc/self/stat.",
    Kind.COUNTER,
    "seconds",
)
RSS: Final = Family(
    "inferwatch_process_resident_memory_bytes",
    "Resident memory of the agent itself, from /proc/self/statm.",
    Kind.GAUGE,
    "bytes",
)
FDS: Final = Family(
    "inferwatch_process_open_fds", "Open file descriptors of the agent itself, from /proc/self/fd.", Kind.GAUGE
)
THREADS: Final = Family(
    "inferwatch_process_threads", "Threads of the agent itself, from /proc/self/status.", Kind.GAUGE
)
STARTED: Final = Family(
    "inferwatch_process_start_time_seconds", "When the agent was started, as Unix time.", Kind.GAUGE, "seconds"
)

FAMILIES: Final = (
    BUILD, UP, AVAILABLE, PROBLEM, INSTANCES, DURATION, LAST_SUCCESS, FAILURES, SKIPPED, SERIES, DROPPED, EVENTS,
    LOOP_DELAY, RELOAD_OK, RELOAD_TIME, CPU, RSS, FDS, THREADS, STARTED,
)  # fmt: skip


@dataclass(slots=True)
class ReloadState:
    """How the last reading of the configuration went."""

    successful: bool
    success_unix_seconds: float


class SelfMetrics:
    """Makes the samples about the agent itself; it is the sampler `agent`.

    Args:
        scheduler: Whose units are described.
        store: Whose series are counted.
        events: Whose events are counted.
        reload_state: Kept up to date by the agent.
    """

    def __init__(self, scheduler: Scheduler, store: Store, events: EventRing, reload_state: ReloadState) -> None:
        self._scheduler = scheduler
        self._store = store
        self._events = events
        self._reload = reload_state
        self._process = psutil.Process()

    async def sample(self) -> Sequence[Sample]:
        """Return the samples; reads only the agent's own /proc files, which do not block."""
        delay, self._scheduler.loop_delay_seconds = self._scheduler.loop_delay_seconds, 0.0
        return [
            BUILD(1, __version__, platform.python_version()),
            *self._of_samplers(),
            *(EVENTS(count, kind) for kind, count in sorted(self._events.counts.items())),
            LOOP_DELAY(delay),
            RELOAD_OK(int(self._reload.successful)),
            RELOAD_TIME(self._reload.success_unix_seconds),
            *self._of_process(),
        ]

    async def close(self) -> None:
        """Nothing is held."""

    def _of_samplers(self) -> list[Sample]:
        by_name: dict[str, list[Unit]] = {}
        for unit in self._scheduler.units:
            by_name.setdefault(unit.spec.name, []).append(unit)
        samples = [sample for name, units in by_name.items() for sample in _of_sampler(name, units)]
        for name, (series, dropped) in self._store.counts.items():
            samples += [SERIES(series, name), DROPPED(dropped, name)]
        return samples

    def _of_process(self) -> list[Sample]:
        with self._process.oneshot():
            times = self._process.cpu_times()
            return [
                CPU(round(times.user + times.system, 2)),
                RSS(self._process.memory_info().rss),
                FDS(self._process.num_fds()),
                THREADS(self._process.num_threads()),
                STARTED(self._process.create_time()),
            ]


def _of_sampler(name: str, units: Sequence[Unit]) -> list[Sample]:
    states = Counter(unit.state for unit in units)
    available = [unit for unit in units if unit.state is not State.UNAVAILABLE]
    samples = [AVAILABLE(int(bool(available)), name)]
    if ran := [unit for unit in available if unit.state is not State.PENDING]:
        samples.append(UP(int(all(unit.state in {State.OK, State.PARTIAL} for unit in ran)), name))
    samples += [INSTANCES(count, name, state) for state, count in sorted(states.items())]
    samples += [PROBLEM(1, name, reason) for reason in sorted({word for unit in units for word in unit.problems})]
    durations = [unit.duration_seconds for unit in units if unit.duration_seconds is not None]
    if durations:
        samples.append(DURATION(max(durations), name))
    successes = [unit.last_success_unix_seconds for unit in units if unit.last_success_unix_seconds is not None]
    if successes:
        samples.append(LAST_SUCCESS(min(successes), name))
    failures: Counter[str] = sum((unit.failures for unit in units), Counter())
    samples += [FAILURES(count, name, reason) for reason, count in sorted(failures.items())]
    samples.append(SKIPPED(sum(unit.skipped for unit in units), name))
    return samples
