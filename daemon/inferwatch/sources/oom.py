"""Understand what the kernel logs about OOM kills (mm/oom_kill.c); pure.

A kill makes two lines that are of use. `Memory cgroup out of memory: Killed process 13509 (python3) total-vm:...` is
there for every kill. `oom-kill:constraint=...,task_memcg=...` before it tells the control groups, but not always: it is
limited to ten in five seconds, and processes that die as members of a group (memory.oom.group) have none.
"""

import re
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, TypeVar

T = TypeVar("T")

KILLED: Final = re.compile(
    rb"(?:(?P<message>[^:]{1,80}): )?Killed process (?P<pid>[0-9]{1,10}) \((?P<comm>.*)\),? "
    rb"(?P<facts>(?:UID |total-vm:).*)",
    re.DOTALL,
)
CHOSEN: Final = re.compile(  # before 4.20 the score was told; the kill itself followed
    rb"[^:]{1,80}: Kill process (?P<pid>[0-9]{1,10}) \(.*\) score (?P<score>[0-9]{1,6}) or sacrifice child",
    re.DOTALL,
)
CONTEXT: Final = re.compile(
    rb"oom-kill:constraint=(?P<constraint>CONSTRAINT_[A-Z_]{1,32}),nodemask=.*?,cpuset=.*?,mems_allowed=[0-9,-]*,"
    rb"(?:oom_memcg=(?P<limit>.*?)|global_oom),task_memcg=(?P<group>.*),task=(?P<comm>.*),pid=(?P<pid>[0-9]{1,10}),"
    rb"uid=[0-9]{1,10}",
    re.DOTALL,
)
FACT: Final = re.compile(rb"([a-zA-Z_-]{1,32})[: ](-?[0-9]{1,20})(kB)?(?:[, ]|\Z)")
CONSTRAINTS: Final = {
    b"CONSTRAINT_NONE": "host",
    b"CONSTRAINT_CPUSET": "cpuset",
    b"CONSTRAINT_MEMORY_POLICY": "memory_policy",
    b"CONSTRAINT_MEMCG": "cgroup",
}
KIBIBYTE: Final = 1024
PENDING: Final = 64


@dataclass(frozen=True, slots=True)
class OomKill:
    """A process that the kernel killed for want of memory; None is what the log does not tell.

    Args:
        pid: In the host's pid namespace.
        comm: Name of its main thread.
        constraint: What was short: `host`, `cgroup` (a limit), `cpuset`, `memory_policy`.
        cgroup: Its memory control group.
        limit_cgroup: The group whose limit was reached; it or an ancestor of it.
        facts: Sizes in bytes as `anonymous_bytes`, `file_bytes`, `shared_bytes`, `virtual_bytes`,
            `page_table_bytes`, and `uid`, `oom_score_adj`, `oom_score`.
    """

    pid: int
    comm: str
    constraint: str
    cgroup: str | None
    limit_cgroup: str | None
    facts: Mapping[str, int]


FACT_NAMES: Final = {
    b"total-vm": "virtual_bytes",
    b"anon-rss": "anonymous_bytes",
    b"file-rss": "file_bytes",
    b"shmem-rss": "shared_bytes",
    b"pgtables": "page_table_bytes",
    b"UID": "uid",
    b"oom_score_adj": "oom_score_adj",
}


@dataclass(frozen=True, slots=True)
class _Context:
    constraint: str
    cgroup: str
    limit_cgroup: str | None


class OomLog:
    """Puts the lines of each kill together; hand it the kernel's lines in their order."""

    def __init__(self) -> None:
        self._contexts: OrderedDict[int, _Context] = OrderedDict()
        self._scores: OrderedDict[int, int] = OrderedDict()

    def feed(self, text: bytes) -> OomKill | None:
        """Take in a line; return the kill that it completes."""
        if match := CONTEXT.fullmatch(text):
            constraint = CONSTRAINTS.get(match["constraint"], "unknown")
            limit = None if match["limit"] is None else _text(match["limit"])
            _keep(self._contexts, int(match["pid"]), _Context(constraint, _text(match["group"]), limit))
        elif match := CHOSEN.fullmatch(text):
            _keep(self._scores, int(match["pid"]), int(match["score"]))
        elif match := KILLED.fullmatch(text):
            return self._kill(match)
        return None

    def _kill(self, match: re.Match[bytes]) -> OomKill:
        pid = int(match["pid"])
        context = self._contexts.pop(pid, None)
        facts = _facts(match["facts"])
        if (score := self._scores.pop(pid, None)) is not None:
            facts["oom_score"] = score
        by_message = "cgroup" if (match["message"] or b"").startswith(b"Memory cgroup") else "unknown"
        return OomKill(
            pid=pid,
            comm=_text(match["comm"]),
            constraint=context.constraint if context else by_message,
            cgroup=context.cgroup if context else None,
            limit_cgroup=context.limit_cgroup if context else None,
            facts=facts,
        )


def _facts(text: bytes) -> dict[str, int]:
    return {
        FACT_NAMES[name]: int(number) * (KIBIBYTE if unit else 1)
        for name, number, unit in FACT.findall(text)
        if name in FACT_NAMES
    }


def _text(data: bytes) -> str:
    return data.decode("utf-8", "replace")


def _keep(store: OrderedDict[int, T], pid: int, entry: T) -> None:
    """Keep an entry until its kill comes; one whose kill never does must not stay for ever."""
    store[pid] = entry
    while len(store) > PENDING:
        store.popitem(last=False)
