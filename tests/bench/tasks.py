"""What reading all threads costs: the BPF iterator, the /proc files, psutil, and Debian's prometheus-process-exporter.

`python -m bench.tasks` (in tests/, by the project's interpreter) prints JSON. Seconds are CPU time: of the calling
thread for what runs here, of its process for the exporter. Medians, the first reading by itself.
"""

import argparse
import contextlib
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psutil

from inferwatch.sources.bpf.tasks import TaskIterator
from inferwatch.sources.hostfs import HostFs
from inferwatch.sources.tasks_proc import TaskFiles
from support_process import free_port

LIVE = HostFs(procfs=Path("/proc"), sysfs=Path("/sys"), rootfs=Path("/"))
THREADS = 8000
PROCESSES = 1000
ITERATOR_TIMES = 15
READY_SECONDS = 60.0

# One process of argv[1] threads that sleep, or argv[2] processes of one thread that sleep; all of them end with it.
SLEEPERS = """
import ctypes, os, signal, sys, threading, time
threads, processes = int(sys.argv[1]), int(sys.argv[2])
threading.stack_size(65536)
for _ in range(threads - 1): threading.Thread(target=time.sleep, args=(1e6,), daemon=True).start()
pids = []
for _ in range(processes):
    pid = os.fork()
    if not pid:
        ctypes.CDLL(None).prctl(1, signal.SIGKILL, 0, 0, 0)  # PR_SET_PDEATHSIG
        signal.pause()
    pids.append(pid)
print(*(pids or [os.getpid()]), flush=True)
sys.stdin.read()
os._exit(0)
"""

EXPORTER_CONFIG = "process_names: [{name: bench, cmdline: ['threading.stack_size']}]\n"


@contextlib.contextmanager
def sleepers(threads: int, processes: int) -> Iterator[list[int]]:
    """Run sleeping threads or processes; yield the pids."""
    command = [sys.executable, "-c", SLEEPERS, str(threads), str(processes)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        try:
            assert process.stdout
            yield [int(pid) for pid in process.stdout.readline().split()]
        finally:
            process.kill()


@contextlib.contextmanager
def process_exporter() -> Iterator[tuple[psutil.Process, str]]:
    """Run Debian's prometheus-process-exporter with threads on; yield it and its URL."""
    url_host = f"127.0.0.1:{free_port()}"
    with tempfile.NamedTemporaryFile("w", suffix=".yml") as config:
        config.write(EXPORTER_CONFIG)
        config.flush()
        command = ["prometheus-process-exporter", f"-web.listen-address={url_host}", f"-config.path={config.name}"]
        with subprocess.Popen([*command, "-threads"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
            try:
                yield psutil.Process(process.pid), f"http://{url_host}/metrics"
            finally:
                process.kill()


def cpu_of(function: Callable[[], object], times: int) -> dict[str, float]:
    """Return CPU time of the first call and the median and worst of the others."""
    spent = []
    for _ in range(times + 1):
        began = time.thread_time()
        function()
        spent.append(time.thread_time() - began)
    first, *rest = spent
    return {"first_seconds": first, "median_seconds": statistics.median(rest), "worst_seconds": max(rest)}


def iterator(pids: list[int]) -> dict[str, float]:
    """Read with the BPF iterator, decoding included."""
    began = time.thread_time()
    with contextlib.closing(TaskIterator()) as tasks:
        load_seconds = time.thread_time() - began
        tasks.set_targets(pids)
        return {"load_seconds": load_seconds} | cpu_of(tasks.read, ITERATOR_TIMES)


def files(pids: list[int]) -> dict[str, float]:
    """Read /proc without the limit that it has in the agent."""
    tasks = TaskFiles(LIVE, max_threads=1_000_000)
    tasks.set_targets(pids)
    return cpu_of(tasks.read, 2)


def with_psutil(pids: list[int]) -> dict[str, float]:
    """Read the same figures, as far as psutil has them: CPU times and context switches of each thread."""

    def read() -> None:
        for pid in pids:
            for thread in psutil.Process(pid).threads():
                psutil.Process(thread.id).num_ctx_switches()

    began = time.thread_time()
    read()
    return {"median_seconds": time.thread_time() - began}


def exporter() -> dict[str, float]:
    """Scrape prometheus-process-exporter twice; the second scrape is what every later one costs."""
    with process_exporter() as (process, url):
        _until_ready(url)
        before = process.cpu_times()
        with urllib.request.urlopen(url, timeout=READY_SECONDS) as answer:  # noqa: S310 - our own loopback server
            size = len(answer.read())
        after = process.cpu_times()
    return {"median_seconds": after.user + after.system - before.user - before.system, "page_bytes": size}


def _until_ready(url: str) -> None:
    deadline = time.monotonic() + READY_SECONDS
    while True:
        try:
            with urllib.request.urlopen(url, timeout=READY_SECONDS) as answer:  # noqa: S310 - our own loopback server
                answer.read()
                return
        except OSError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.2)


def measure(threads: int, processes: int) -> dict[str, Any]:
    """Measure one shape of load: `threads` in one process, or `processes` of one thread."""
    with sleepers(threads, processes) as pids:
        report: dict[str, Any] = {
            "iterator": iterator(pids),
            "proc_files": files(pids),
            "psutil": with_psutil(pids),
            "process_exporter": exporter(),
        }
    ours = report["iterator"]["median_seconds"]
    for peer in ("proc_files", "psutil", "process_exporter"):
        report[f"{peer}_ratio"] = report[peer]["median_seconds"] / ours
    return report


def tasks() -> dict[str, Any]:
    """Measure both shapes."""
    return {"threads_8000": measure(THREADS, 0), "processes_1000": measure(1, PROCESSES)}


if __name__ == "__main__":
    argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0]).parse_args()
    json.dump(tasks() | {"load_average": os.getloadavg()}, sys.stdout, indent=1)
    sys.stdout.write("\n")
