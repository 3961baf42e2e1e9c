"""The families of the sampler `numa`."""

from typing import Final

from inferwatch.model import Family, Kind

NODE: Final = ("numa_node",)
TARGET: Final = ("target",)
TARGET_NODE: Final = ("target", "numa_node")


def _gauge(name: str, text: str, unit: str, *labels: str) -> Family:
    return Family(f"inferwatch_{name}", f"{text}.", Kind.GAUGE, unit, labels)


def _counter(name: str, text: str, unit: str, *labels: str) -> Family:
    return Family(f"inferwatch_{name}", f"{text}.", Kind.COUNTER, unit, labels)


TOTAL: Final = _gauge(
    "numa_memory_total_bytes",
    "Memory of a NUMA node that the kernel manages, from MemTotal in nodeN/meminfo",
    "bytes",
    *NODE,
)
FREE: Final = _gauge(
    "numa_memory_free_bytes", "Memory of a NUMA node in no use at all, from MemFree in nodeN/meminfo", "bytes", *NODE
)
USED: Final = _gauge(
    "numa_memory_used_bytes",
    "Memory of a NUMA node by use, page cache (file) without shared memory, from nodeN/meminfo",
    "bytes",
    *NODE,
    "kind",
)
NODE_CPUS: Final = _gauge(
    "numa_cpus",
    "Online CPUs of a NUMA node, 0 for one that has memory only (HBM, CXL), from nodeN/cpulist",
    "",
    *NODE,
)
ALLOCATIONS: Final = _counter(
    "numa_allocations_total",
    "Pages allocated on a NUMA node since boot by outcome: as wanted (hit), instead of another node (miss), elsewhere"
    " though wanted here (foreign), by a thread of this node (local) or of another (other), from nodeN/numastat",
    "",
    *NODE,
    "outcome",
)
BALANCING: Final = _gauge(
    "numa_balancing_enabled",
    "Whether the kernel moves pages towards the threads that use them, from /proc/sys/kernel/numa_balancing",
    "",
)
MIGRATED: Final = _counter(
    "numa_migrated_pages_total",
    "Pages that automatic NUMA balancing moved since boot, from numa_pages_migrated in /proc/vmstat",
    "pages",
)
HINT_FAULTS: Final = _counter(
    "numa_hint_faults_total",
    "Faults by which NUMA balancing learns who uses a page since boot, by whether the page was on the thread's node,"
    " from numa_hint_faults in /proc/vmstat",
    "",
    "locality",
)
HUGE_PAGES: Final = Family(
    "inferwatch_transparent_huge_pages_info",
    "When anonymous memory gets transparent huge pages and what a fault does to make one, from"
    " /sys/kernel/mm/transparent_hugepage.",
    Kind.INFO,
    "",
    ("enabled", "defrag"),
)
TARGET_MEMORY: Final = _gauge(
    "target_numa_memory_bytes",
    "Resident memory of a target on a NUMA node, a page that several processes map counted in each, from"
    " /proc/PID/numa_maps (/proc/PID/status on a host with one node)",
    "bytes",
    *TARGET_NODE,
)
REMOTE: Final = _gauge(
    "target_numa_remote_ratio",
    "Resident memory of a target on other NUMA nodes than those its CPUs are on by all of it: the nodes on which its"
    " processes ran lately, or may run while that is unknown",
    "ratio",
    *TARGET,
)
REMOTE_ACCESS: Final = _gauge(
    "target_numa_remote_access_ratio",
    "Share of a target's accesses that would go to another NUMA node if all its pages were used alike, from the nodes"
    " of its CPU time and of its memory",
    "ratio",
    *TARGET,
)
ALLOWED_CPUS: Final = _gauge(
    "target_numa_allowed_cpus",
    "CPUs of a NUMA node on which processes of a target may run, from Cpus_allowed_list in /proc/PID/status",
    "",
    *TARGET_NODE,
)
ALLOWED_NODES: Final = _gauge(
    "target_numa_allowed_memory_nodes",
    "NUMA nodes from which processes of a target may allocate, from Mems_allowed_list in /proc/PID/status",
    "",
    *TARGET,
)
TARGET_CPU: Final = _counter(
    "target_numa_cpu_seconds_total",
    "CPU time of a target's threads since the agent saw them, on the NUMA node where a sample found them; sampled, from"
    " /proc/PID/task/TID/stat (/proc/PID/stat on a host with one node)",
    "seconds",
    *TARGET_NODE,
)
ALIGNED: Final = _gauge(
    "target_numa_aligned",
    "Whether the CPUs that each process of a target may use are on one NUMA node from which it may allocate, 1 or 0",
    "",
    *TARGET,
)

FAMILIES: Final = (
    TOTAL,
    FREE,
    USED,
    NODE_CPUS,
    ALLOCATIONS,
    BALANCING,
    MIGRATED,
    HINT_FAULTS,
    HUGE_PAGES,
    TARGET_MEMORY,
    REMOTE,
    REMOTE_ACCESS,
    ALLOWED_CPUS,
    ALLOWED_NODES,
    TARGET_CPU,
    ALIGNED,
)
