"""Names of targets that stay the same while a target lives and, as far as that goes, when it is started again."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import count
from typing import Final

CONTAINER_DIGITS: Final = 12


@dataclass(slots=True, eq=False)
class Named:
    """What a name is made of, and the name.

    Args:
        engine: The engine's name.
        rule: The user's name, which is the target's; otherwise empty.
        started: Orders targets, the oldest first.
        port: Port at which it is known: where it listens or did, before that where its command line says that it will.
        listening: Whether it listens there now.
        place: What tells it from one with the same port in another network namespace: its pod, its container or the
            namespace; empty in the agent's own.
        name: Its name, empty before it got one.
        base: What the name was made of.
        orphan: Whether the process that served clients is gone, or was never seen, and others are left of it.
        unreachable: Whether the agent can't reach it there.
    """

    engine: str
    rule: str
    started: tuple[int, int] = (0, 0)
    port: int | None = None
    listening: bool = False
    place: str = ""
    name: str = ""
    base: str = ""
    orphan: bool = False
    unreachable: bool = False


def assign_names(targets: Iterable[Named]) -> None:
    """Give every target a name of its own.

    Who listens comes before who does not, and a server before what is left of one (that must not keep its port's name
    from the new one), who has a name before who has none, who can be reached before who can't, the older before the
    younger.
    """
    targets = list(targets)
    taken = {target.rule for target in targets if target.rule}

    def rank(target: Named) -> tuple[bool, bool, bool, bool, tuple[int, int]]:
        new = target.base != _base(target)
        return target.orphan, not target.listening, new, target.unreachable, target.started

    for target in sorted(targets, key=rank):
        if target.rule:
            target.name = target.base = target.rule
            continue
        base = _base(target)
        wanted = [target.name] if target.name and target.base == base else []
        target.name = next(name for name in _candidates(target, wanted, base) if name not in taken)
        target.base = base
        taken.add(target.name)


def _base(target: Named) -> str:
    return target.rule or (target.engine if target.port is None else f"{target.engine}-{target.port}")


def _candidates(target: Named, wanted: Sequence[str], base: str) -> Iterator[str]:
    yield from wanted
    yield base
    if target.listening and target.place:
        base = f"{base}-{target.place}"
        yield base
    if target.orphan:
        base = f"{base}-orphan"
        yield base
    elif not target.listening:
        base = target.engine
        yield base
    yield from (f"{base}-{number}" for number in count(2))
