"""The generated part of an engine's page: what is mapped from which series, what can't be filled, what is left out."""

from collections.abc import Iterator

from inferwatch.engines.rules import OTHER, Combine, EngineTable, Ignore, LabelFrom, Rule, Take
from inferwatch.render.markdown import code, table


def mapping_part(engine: EngineTable) -> str:
    """Return the three tables of an engine, each ordered by name."""
    prefix = engine.prefixes[0] if engine.prefixes else ""
    mapped = table(
        ("metric", "series of the engine, newest name first", "how it is read"),
        sorted(
            (code(rule.family.name), _names(rule, prefix), "; ".join([*_reading(rule, prefix), *_note(rule)]))
            for rule in engine.rules
        ),
    )
    parts = [mapped]
    if engine.absent:
        rows = sorted((code(family.name), sentence) for family, sentence in engine.absent.items())
        parts.append(f"{engine.title} can't fill these:\n\n" + table(("metric", "why not"), rows))
    if engine.ignores:
        rows = sorted((_ignored(ignore, prefix), _why(ignore)) for ignore in engine.ignores)
        parts.append("Knowingly left out:\n\n" + table(("series of the engine", "why"), rows))
    return "\n\n".join(parts)


def _names(rule: Rule, prefix: str) -> str:
    return ", ".join(code(prefix + name) for name in rule.upstream)


def _reading(rule: Rule, prefix: str) -> Iterator[str]:
    """Yield what a rule does to a value, one phrase each; nothing for a series that is taken as it is."""
    if rule.scale != 1:
        yield f"times {rule.scale:g}"
    if rule.take is Take.COUNT:
        yield "number of observations of the histogram"
    if rule.take is Take.LABELS:
        yield "product of the labels " + " or ".join(" x ".join(map(code, names)) for names in rule.products)
    if rule.plus:
        yield "plus " + ", ".join(code(prefix + name) for name in rule.plus)
    for name, value in sorted(rule.where.items()):
        yield f"where {code(f'{name}={value}')}"
    for name, source in sorted(rule.labels.items()):
        yield _label(name, source)
    if rule.combine is not Combine.SUM:
        yield {Combine.MAX: "the largest of several", Combine.FIRST: "the first of several"}[rule.combine]


def _label(name: str, source: LabelFrom | str) -> str:
    if isinstance(source, str):
        return code(f"{name}={source}")
    values = [f"{ours} from {theirs}" for theirs, ours in sorted(source.values.items())]
    rest = [f"{OTHER} from any other"] if values else []
    return f"{code(name)} from {code(source.upstream)}" + (f" ({', '.join([*values, *rest])})" if values else "")


def _note(rule: Rule) -> list[str]:
    return [rule.note] if rule.note else []


def _ignored(ignore: Ignore, prefix: str) -> str:
    return ", ".join(code(name if ignore.foreign else prefix + name) for name in sorted(ignore.names))


def _why(ignore: Ignore) -> str:
    reason = f"duplicate of {ignore.duplicate_of}" if ignore.duplicate_of else ignore.reason.value
    return f"{reason}: {ignore.sentence}" if ignore.sentence else reason
