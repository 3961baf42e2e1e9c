"""Names of targets that stay the same while a target lives and, as far as that goes, when it is started again."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import count
from typing import Final

CONTAINER_DIGITS: Final = 12
REMEMBERED: Final = 1000

Places = dict[tuple[str, str], str]


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
        stray: Whether nobody is above what is left, so that there was a server once.
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
    stray: bool = False
    unreachable: bool = False


def assign_names(targets: Iterable[Named], remembered: Places | None = None) -> None:
    """Give every target a name of its own.

    Who listens comes before who does not, and a server before what is left of one (that must not keep its port's name
    from the new one), who has a name or had one before who has none, who can be reached before who can't, the older
    before the younger.

    Args:
        targets: All that there are.
        remembered: What a name was made of and its place, to the name that a target had there: the one that follows it,
            in the same pod, gets it again. Brought up to date.
    """
    targets = list(targets)
    remembered = {} if remembered is None else remembered
    taken = {target.rule for target in targets if target.rule}

    def rank(target: Named) -> tuple[bool, bool, bool, bool, tuple[int, int]]:
        new = not _wanted(target, remembered)
        return target.orphan, not target.listening, new, target.unreachable, target.started

    for target in sorted(targets, key=rank):
        if target.rule:
            target.name = target.base = target.rule
            continue
        base = _base(target)
        candidates = _candidates(target, _wanted(target, remembered), base)
        target.name = next(name for name in candidates if name not in taken)
        target.base = base
        taken.add(target.name)
        if target.place and target.name.startswith(base) and not target.orphan:
            remembered.pop((base, target.place), None)  # so that the latest are at the end
            remembered[base, target.place] = target.name
    for place in list(remembered)[: max(len(remembered) - REMEMBERED, 0)]:
        del remembered[place]


def _base(target: Named) -> str:
    return target.rule or (target.engine if target.port is None else f"{target.engine}-{target.port}")


def _wanted(target: Named, remembered: Places) -> Sequence[str]:
    """Return the name that it has or, without one, that its place had.

    A makeshift that it got while another had the port is none to keep once it listens there.
    """
    base = _base(target)
    if target.name and target.base == base and (target.name.startswith(base) or not target.listening):
        return [target.name]
    name = remembered.get((base, target.place))
    return [name] if name else []


def _candidates(target: Named, wanted: Sequence[str], base: str) -> Iterator[str]:
    yield from wanted
    if not (target.stray and target.port is None):  # without a port it never was seen with its server
        yield base
    if target.orphan:
        base = f"{base}-orphan"
        yield base
    elif target.place:
        base = f"{base}-{target.place}"
        yield base
    elif not target.listening:
        base = target.engine
        yield base
    yield from (f"{base}-{number}" for number in count(2))
