"""The families of the sampler `cgroup`."""

from typing import Final

from inferwatch.model import Family, Kind

TARGET: Final = ("target",)


def _gauge(name: str, text: str, source: str, unit: str = "bytes") -> Family:
    return Family(f"inferwatch_target_cgroup_{name}", f"{text}, from {source}.", Kind.GAUGE, unit, TARGET)


def _counter(name: str, text: str, source: str, unit: str = "", *labels: str) -> Family:
    return Family(f"inferwatch_target_cgroup_{name}", f"{text}, from {source}.", Kind.COUNTER, unit, (*TARGET, *labels))


USAGE: Final = _gauge(
    "memory_usage_bytes",
    "Memory charged to the target's cgroup, page cache and kernel memory included",
    "memory.current (v2) or memory.usage_in_bytes (v1)",
)
WORKING_SET: Final = _gauge(
    "memory_working_set_bytes",
    "Memory charged to the target's cgroup less the inactive page cache, which is given up first",
    "memory.current and memory.stat",
)
LIMIT: Final = _gauge(
    "memory_limit_bytes",
    "Lowest memory limit of the target's cgroup and its ancestors, absent when there is none",
    "memory.max (v2) or memory.limit_in_bytes (v1)",
)
HIGH: Final = _gauge(
    "memory_high_bytes",
    "Lowest value of the target's cgroup and its ancestors above which allocations are slowed down, absent when there"
    " is none",
    "memory.high (v2)",
)
PEAK: Final = _gauge(
    "memory_peak_bytes",
    "Most memory ever charged to the target's cgroup",
    "memory.peak (v2, since 5.19) or memory.max_usage_in_bytes (v1)",
)
SWAP: Final = _gauge(
    "swap_usage_bytes", "Swap charged to the target's cgroup", "memory.swap.current (v2) or memory.stat (v1)"
)
OOM_KILLS: Final = _counter(
    "oom_kills_total",
    "Processes in the target's cgroup, strangers too, that the kernel killed for want of memory",
    "memory.events (v2) or memory.oom_control (v1)",
)
MEMORY_EVENTS: Final = _counter(
    "memory_events_total",
    "Times that the target's cgroup was low, over high, at its limit (max) or without a way out (oom)",
    "memory.events (v2) or memory.failcnt (v1, max only)",
    "",
    "event",
)
CPU_SECONDS: Final = _counter(
    "cpu_seconds_total", "CPU time of the target's cgroup", "cpu.stat (v2) or cpuacct.usage (v1)", "seconds"
)
PERIODS: Final = _counter(
    "cpu_periods_total",
    "Quota periods in which threads of the target's cgroup, or of the ancestor with the lowest quota, wanted to run",
    "cpu.stat",
)
THROTTLED_PERIODS: Final = _counter(
    "cpu_throttled_periods_total", "Those of the quota periods in which they had to stop for want of quota", "cpu.stat"
)
THROTTLED_SECONDS: Final = _counter(
    "cpu_throttled_seconds_total",
    "Time that they had to stop for want of quota, added up over CPUs",
    "cpu.stat",
    "seconds",
)
QUOTA: Final = _gauge(
    "cpu_quota_cores",
    "Lowest CPU quota of the target's cgroup and its ancestors, in CPUs, absent when there is none",
    "cpu.max (v2) or cpu.cfs_quota_us (v1)",
    "",
)
PRESSURE: Final = _counter(
    "pressure_stall_seconds_total",
    "Time in which some or all (full) non-idle threads of the target's cgroup waited for a resource",
    "cpu.pressure, memory.pressure and io.pressure (v2)",
    "seconds",
    "resource",
    "share",
)
CPUSET_CPUS: Final = _gauge(
    "cpuset_cpus",
    "Number of CPUs that the target's cgroup may use",
    "cpuset.cpus.effective (v2) or cpuset.effective_cpus (v1)",
    "",
)
CPUSET_NODES: Final = _gauge(
    "cpuset_memory_nodes",
    "Number of NUMA nodes from which the target's cgroup may allocate",
    "cpuset.mems.effective (v2) or cpuset.effective_mems (v1)",
    "",
)

FAMILIES: Final = (
    USAGE,
    WORKING_SET,
    LIMIT,
    HIGH,
    PEAK,
    SWAP,
    OOM_KILLS,
    MEMORY_EVENTS,
    CPU_SECONDS,
    PERIODS,
    THROTTLED_PERIODS,
    THROTTLED_SECONDS,
    QUOTA,
    PRESSURE,
    CPUSET_CPUS,
    CPUSET_NODES,
)
