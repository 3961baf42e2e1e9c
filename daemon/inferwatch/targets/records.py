"""What is remembered of a process from round to round, and how it came to its target."""

from dataclasses import dataclass, field

from inferwatch.targets.model import ProcessId
from inferwatch.targets.rules import Match


@dataclass(frozen=True, slots=True)
class Key:
    """What a target is known by as long as it lives; one of the three is set.

    Args:
        rule: Name of the user's rule: all its processes are one target.
        root: The process that it began with.
        siblings: Engine and parent of processes that have no process of the engine above them.
    """

    rule: str = ""
    root: ProcessId | None = None
    siblings: tuple[str, int] | None = None


@dataclass(frozen=True, slots=True)
class Joined:
    """How a process came to a target that it does not match itself: by a parent."""

    key: Key
    ppid: int


@dataclass(slots=True, eq=False)
class Record:
    """What is remembered of a process.

    Args:
        pid: Its pid.
        inode: Of its directory in procfs.
        id: Its identity, None when its stat can't be read.
        ppid: Its parent's pid.
        comm: Name of its main thread.
        alive: Whether it is a process of user space that has not ended.
        young: Whether it began less than a minute ago.
        denied: What of it could not be read.
        match: What it is by itself.
        fingerprint: Of its name and command line.
        next_read_ns: When it is to be read again.
        next_words_ns: When its command line is, though it has the same name.
        is_target: Whether it belonged to a target in the last round.
        joined: How it came to the target that it is in, None when by itself or in none.
    """

    pid: int
    inode: int
    id: ProcessId | None = None
    ppid: int = 0
    comm: str = ""
    alive: bool = False
    young: bool = False
    denied: set[str] = field(default_factory=set)
    match: Match | None = None
    fingerprint: int | None = None
    next_read_ns: int = 0
    next_words_ns: int = 0
    is_target: bool = False
    joined: Joined | None = None
