"""The metric families of the sampler `threads`."""

from typing import Final

from inferwatch.model import Family, Kind

LABELS: Final = ("target", "role")
BY_THREAD: Final = (*LABELS, "thread")
WHOSE: Final = "the target's threads, by role of their process"
SOURCE_TEXT: Final = "from the kernel's task list (BPF iterator) or /proc/PID/task"

CPU: Final = Family(
    "inferwatch_target_cpu_seconds_total",
    f"CPU time of {WHOSE} and by mode, {SOURCE_TEXT}; role reaped_children: children that came and went unseen.",
    Kind.COUNTER,
    "seconds",
    (*LABELS, "mode"),
)
WAIT: Final = Family(
    "inferwatch_target_run_queue_wait_seconds_total",
    f"Time in which {WHOSE}, were ready to run and waited for a CPU, {SOURCE_TEXT}.",
    Kind.COUNTER,
    "seconds",
    LABELS,
)
TIMESLICES: Final = Family(
    "inferwatch_target_timeslices_total",
    f"How often {WHOSE}, were put on a CPU, {SOURCE_TEXT}.",
    Kind.COUNTER,
    labels=LABELS,
)
SWITCHES: Final = Family(
    "inferwatch_target_context_switches_total",
    f"Context switches of {WHOSE}: voluntary (it waits) or involuntary (it lost the CPU), {SOURCE_TEXT}.",
    Kind.COUNTER,
    labels=(*LABELS, "kind"),
)
MINOR: Final = Family(
    "inferwatch_target_minor_faults_total",
    f"Page faults without I/O of {WHOSE}, {SOURCE_TEXT}.",
    Kind.COUNTER,
    labels=LABELS,
)
MAJOR: Final = Family(
    "inferwatch_target_major_faults_total",
    f"Page faults with I/O of {WHOSE}, {SOURCE_TEXT}.",
    Kind.COUNTER,
    labels=LABELS,
)
THREADS: Final = Family("inferwatch_target_threads", f"Number of {WHOSE}.", Kind.GAUGE, labels=LABELS)
STATES: Final = Family(
    "inferwatch_target_thread_states",
    f"Number of {WHOSE} and by state at the moment of the sample; running includes waiting for a CPU.",
    Kind.GAUGE,
    labels=(*LABELS, "state"),
)
THREAD_CPU: Final = Family(
    "inferwatch_target_thread_cpu_seconds_total",
    "CPU time of the target's threads by thread name (digits as #); what is in no name is other.",
    Kind.COUNTER,
    "seconds",
    BY_THREAD,
)
THREAD_WAIT: Final = Family(
    "inferwatch_target_thread_run_queue_wait_seconds_total",
    "Time in which the target's threads were ready and waited for a CPU, by thread name (digits as #).",
    Kind.COUNTER,
    "seconds",
    BY_THREAD,
)
THREAD_SWITCHES: Final = Family(
    "inferwatch_target_thread_context_switches_total",
    "Context switches of the target's threads, by thread name (digits as #) and kind.",
    Kind.COUNTER,
    labels=(*BY_THREAD, "kind"),
)
SOURCE: Final = Family(
    "inferwatch_threads_source_info",
    "Where the figures of threads come from: bpf (the kernel's task iterator) or procfs (files of each thread).",
    Kind.INFO,
    labels=("source",),
)
OMITTED: Final = Family(
    "inferwatch_threads_omitted",
    "What the last reading left out because of a limit or a permission; all zero as a rule.",
    Kind.GAUGE,
    labels=("what",),
)

FAMILIES: Final = (
    CPU, WAIT, TIMESLICES, SWITCHES, MINOR, MAJOR, THREADS, STATES, THREAD_CPU, THREAD_WAIT, THREAD_SWITCHES, SOURCE,
    OMITTED,
)  # fmt: skip
