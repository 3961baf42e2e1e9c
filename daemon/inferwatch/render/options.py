"""What a model of the configuration says of its options, read from its JSON schema."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from pydantic import BaseModel

UNITS: Final = ("seconds", "bytes", "ratio", "tokens")


@dataclass(frozen=True, slots=True)
class Option:
    """One option.

    Args:
        name: Its key.
        sentence: What it is.
        limits: Unit, range or choices, empty when there are none.
        default: The default as TOML; None when it is not set by default.
        example: A value that can be set, as TOML: the default, where there is one.
        required: Whether it must be set.
    """

    name: str
    sentence: str
    limits: str
    default: str | None
    example: str
    required: bool


@dataclass(frozen=True, slots=True)
class Section:
    """One table of the file.

    Args:
        name: Dotted name.
        sentence: What it holds.
        is_array: Whether it can be given many times, as `[[name]]`.
        options: Its own options.
        sections: The tables in it.
    """

    name: str
    sentence: str
    is_array: bool
    options: tuple[Option, ...]
    sections: tuple["Section", ...]

    def walk(self) -> Iterator["Section"]:
        """Yield this table and those in it, outermost first."""
        yield self
        for section in self.sections:
            yield from section.walk()


def section_of(model: type[BaseModel], name: str, sentence: str) -> Section:
    """Describe a model as the table `name`; an empty name is the file itself."""
    schema = model.model_json_schema()
    return _section(schema, schema.get("$defs", {}), name, sentence, is_array=False)


def toml_value(value: object) -> str:
    """Write a value as TOML; JSON writes text, numbers and lists the same way.

    Raises:
        TypeError: When TOML has no such value.
    """
    if value is None or isinstance(value, Mapping):
        msg = f"TOML can't hold {value!r} as the value of an option"
        raise TypeError(msg)
    if isinstance(value, list):
        return "[" + ", ".join(map(toml_value, value)) + "]"
    return json.dumps(value, ensure_ascii=False)


def _section(
    schema: Mapping[str, Any], definitions: Mapping[str, Any], name: str, about: str, *, is_array: bool
) -> Section:
    required = schema.get("required", ())
    options: list[Option] = []
    sections: list[Section] = []
    for key, value in schema.get("properties", {}).items():
        inner = _table(value, definitions)
        if inner is None:
            options.append(_option(key, value, definitions, required=key in required))
            continue
        dotted, array = f"{name}.{key}".lstrip("."), value.get("type") == "array"
        sentence = value.get("description", inner.get("description", ""))
        sections.append(_section(inner, definitions, dotted, sentence, is_array=array))
    return Section(name, about, is_array, tuple(options), tuple(sections))


def _table(value: Mapping[str, Any], definitions: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """Return the schema of the table that a property is, or is a list of; None when it is neither."""
    item = value.get("items", value)
    schema = _resolve(item, definitions)
    return schema if "properties" in schema else None


def _resolve(value: Mapping[str, Any], definitions: Mapping[str, Any]) -> Mapping[str, Any]:
    """Follow a reference to where the type is defined; what stands beside the reference wins."""
    name = str(value.get("$ref", "")).rpartition("/")[2]
    return {**definitions[name], **value} if name else value


def _option(key: str, value: Mapping[str, Any], definitions: Mapping[str, Any], *, required: bool) -> Option:
    kind = next((part for part in value.get("anyOf", [value]) if part.get("type") != "null"), value)
    kind = _resolve(kind, definitions)
    default = value.get("default")
    example = default if default is not None else next(iter(value.get("examples", ())), _any_value(kind))
    return Option(
        name=key,
        sentence=value.get("description", ""),
        limits=_limits(key, kind),
        default=None if default is None else toml_value(default),
        example=toml_value(example),
        required=required,
    )


def _limits(key: str, kind: Mapping[str, Any]) -> str:
    unit = next((unit for unit in UNITS if key.endswith(f"_{unit}")), "")
    parts = [unit] if unit else []
    if "enum" in kind:
        parts.append("one of " + ", ".join(map(toml_value, kind["enum"])))
    low = kind.get("minimum", kind.get("exclusiveMinimum"))
    high = kind.get("maximum", kind.get("exclusiveMaximum"))
    if low is not None and high is not None:
        parts.append(f"{low:g} to {high:g}")
    elif low is not None or high is not None:
        parts.append(f"{low:g} at least" if low is not None else f"{high:g} at most")
    return ", ".join(parts)


def _any_value(kind: Mapping[str, Any]) -> object:
    """Return a value of the right type, for an option that gives neither a default nor an example."""
    if "enum" in kind:
        return kind["enum"][0]
    match kind.get("type"):
        case "boolean":
            return True
        case "array":
            return []
        case "integer" | "number":
            wanted = max(1, kind.get("minimum", 1))
            return min(wanted, kind.get("maximum", wanted))
        case _:
            return "/path/to/file" if kind.get("format") in {"path", "file-path"} else "text"
