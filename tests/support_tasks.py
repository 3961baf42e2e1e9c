"""Processes whose threads do something known, and the /proc files to compare them with; each ends with its test."""

import contextlib
import os
import select
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from inferwatch.sources.hostfs import HostFs
from inferwatch.sources.procfs.task import TaskStat, parse_task_stat

LIVE = HostFs(procfs=Path("/proc"), sysfs=Path("/sys"), rootfs=Path("/"))
LIMIT_SECONDS = 20.0
USER_HZ = os.sysconf("SC_CLK_TCK")

# What every worker has: `name(text)` names the calling thread, `burn(seconds)` uses CPU time, `tell(...)` writes a
# line, `wait()` reads one. A worker whose standard input is closed ends.
PRELUDE = """
import ctypes, os, resource, sys, threading, time
libc = ctypes.CDLL(None)
def name(text): libc.prctl(15, text.encode(), 0, 0, 0)
def burn(seconds):
    end = time.thread_time() + seconds
    while time.thread_time() < end: pass
def tell(*words): print(*words, flush=True)
def wait():
    if not sys.stdin.readline(): os._exit(0)
def start(function, *arguments): threading.Thread(target=function, args=arguments, daemon=True).start()
"""


class Worker:
    """A running worker."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self._process = process
        self.pid = process.pid
        self.first: list[str] = []  # the words of its first line

    def line(self) -> list[str]:
        """Wait for a line and return its words."""
        assert self._process.stdout
        ready, _, _ = select.select([self._process.stdout], [], [], LIMIT_SECONDS)
        assert ready, f"worker {self.pid} said nothing for {LIMIT_SECONDS} s"
        return self._process.stdout.readline().decode().split()

    def go_on(self) -> None:
        assert self._process.stdin
        self._process.stdin.write(b"\n")
        self._process.stdin.flush()

    def freeze(self) -> None:
        """Stop it and wait until all its threads have stopped."""
        os.kill(self.pid, signal.SIGSTOP)
        os.waitid(os.P_PID, self.pid, os.WSTOPPED | os.WNOWAIT)

    def end(self) -> None:
        self._process.kill()
        self._process.wait()

    def stat(self) -> TaskStat:
        """Return /proc/PID/stat, the independent reading."""
        return parse_task_stat(Path(f"/proc/{self.pid}/stat").read_bytes())

    def cpu_seconds(self) -> float:
        stat = self.stat()
        return (stat.user_ticks + stat.system_ticks) / USER_HZ


@contextlib.contextmanager
def worker(code: str, *arguments: str) -> Iterator[Worker]:
    """Run a worker that has told its first line."""
    command = [sys.executable, "-c", PRELUDE + code, *arguments]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        one = Worker(process)
        try:
            one.first = one.line()
            yield one
        finally:
            one.end()


# Three threads that used 0.15 s of CPU time each and two that did nothing; all of them sleep now.
THREADS = """
done = threading.Barrier(6)
def work(text, seconds):
    name(text)
    burn(seconds)
    done.wait()
    time.sleep(1e6)
for index in range(3): start(work, f"worker-{index + 8}", 0.15)
for index in range(2): start(work, "idle (a) b", 0)
done.wait()
time.sleep(0.2)
tell("ready")
wait()
"""

# 100 threads a second, each of which ends at once; says when all have ended what the kernel counted for them: CPU
# seconds, voluntary and involuntary context switches, minor faults.
CHURN = """
seconds = float(sys.argv[1])
def brief():
    name("brief")
    burn(0.004)
    time.sleep(0)
    time.sleep(0.0005)
tell("ready")
began = time.monotonic()
threads = []
for index in range(int(seconds * 100)):
    threads.append(threading.Thread(target=brief))
    threads[-1].start()
    time.sleep(max(0, began + index / 100 - time.monotonic()))
for thread in threads: thread.join()
used = resource.getrusage(resource.RUSAGE_SELF)
tell(used.ru_utime + used.ru_stime, used.ru_nvcsw, used.ru_nivcsw, used.ru_minflt)
wait()
"""

# argv[1] round trips between two processes on one CPU: each must leave the CPU once a round trip.
PING_PONG = """
os.sched_setaffinity(0, [max(os.sched_getaffinity(0))])
to_child, from_child = os.pipe(), os.pipe()
def play(source, drain, times):
    for _ in range(times):
        os.read(source, 1)
        os.write(drain, b"x")
times = int(sys.argv[1])
child = os.fork()
if not child:
    play(to_child[0], from_child[1], times)
    os._exit(0)
tell("ready")
wait()
os.write(to_child[1], b"x")
play(from_child[0], to_child[1], times - 1)
os.read(from_child[0], 1)
tell("done")
wait()
"""

# One thread that computes for ever on the CPU argv[1].
SPIN = """
os.sched_setaffinity(0, [int(sys.argv[1])])
tell("ready")
while True: pass
"""

# Works in 20 children, one after the other, and waits for each; tells the CPU seconds of all, and CPU seconds, context
# switches and minor faults of the children.
FORKS = """
tell("ready")
wait()
for _ in range(20):
    child = os.fork()
    if not child:
        burn(0.02)
        os._exit(0)
    os.waitpid(child, 0)
own, used = resource.getrusage(resource.RUSAGE_SELF), resource.getrusage(resource.RUSAGE_CHILDREN)
children = used.ru_utime + used.ru_stime
tell(own.ru_utime + own.ru_stime + children, children, used.ru_nvcsw + used.ru_nivcsw, used.ru_minflt)
wait()
"""
