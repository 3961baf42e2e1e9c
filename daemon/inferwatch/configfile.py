"""Reads the configuration file: TOML to validated models, and mistakes to sentences that say what to do."""

import difflib
import json
import re
import stat
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from pydantic import BaseModel, ValidationError

from inferwatch.config import Config, SamplerOptions
from inferwatch.errors import ConfigError

SAMPLERS: Final = "samplers"
COMMAND_LINE: Final = "command line: "
BARE_KEY: Final = re.compile(r"[A-Za-z0-9_-]+\Z")
CREDENTIALS: Final = re.compile(r".*@", re.DOTALL)  # user name and password of an address in the wrong place
QUERY: Final = re.compile(r"\?.*", re.DOTALL)  # and its query, which may be a token
MAX_BYTES: Final = 1 << 20  # a file of thousands of engines is a tenth of it
BYTE_ORDER_MARK: Final = b"\xef\xbb\xbf"  # of editors on Windows; TOML has none
FILE_TYPES: Final = {stat.S_IFDIR: "Is a directory", stat.S_IFIFO: "a named pipe", stat.S_IFSOCK: "a socket"}
# what pydantic says in its own terms, in those of the file
MESSAGES: Final = {
    "missing": "must be set",
    "model_type": "a table expected",
    "tuple_type": "an array of tables expected",
}
NOT_TOML: Final = "expected a TOML file (see config.example.toml)"


@dataclass(frozen=True, slots=True)
class LoadedConfig:
    """A valid configuration.

    Args:
        config: Everything but the samplers' tables.
        options: Sampler name to its options; every known sampler is in it.
        path: Where it was read from, None for the defaults.
    """

    config: Config
    options: Mapping[str, SamplerOptions]
    path: Path | None = None


def load(path: Path | None, models: Mapping[str, type[SamplerOptions]], overrides: Mapping[str, Any]) -> LoadedConfig:
    """Read and validate a file, or take the defaults when `path` is None.

    Args:
        path: The file.
        models: Sampler name to the model of its table.
        overrides: Values given on the command line, nested as in the file; they win.

    Raises:
        ConfigError: With one sentence for every mistake in the file.
    """
    data = {} if path is None else _read(path)
    where = "" if path is None else f"{path}: "
    merged = _merge(data, overrides)
    problems: list[str] = []
    tables = merged.pop(SAMPLERS, {})
    config: Config | None = None
    try:
        config = Config.model_validate(merged)
    except ValidationError as error:
        problems += _sentences(error, Config, ())
    options, wrong = _validate_samplers(tables, models)
    problems += wrong
    if problems or config is None:
        given = _leaves(overrides)
        raise ConfigError([(COMMAND_LINE if p.partition(":")[0] in given else where) + p for p in problems])
    return LoadedConfig(config, options, path)


def _read(path: Path) -> dict[str, Any]:
    data = _read_bytes(path).removeprefix(BYTE_ORDER_MARK)
    try:
        return tomllib.loads(data.decode("utf-8"))
    except UnicodeDecodeError as error:
        raise ConfigError([f"{path}: byte {error.start} is not UTF-8; {NOT_TOML}"]) from error
    except ValueError as error:  # TOMLDecodeError is one; so is what int() says to a number of too many digits
        raise ConfigError([f"{path}: not TOML: {hide_secrets(str(error))}; {NOT_TOML}"]) from error
    except RecursionError as error:
        raise ConfigError([f"{path}: nested too deeply; {NOT_TOML}"]) from error


def _read_bytes(path: Path) -> bytes:
    try:
        mode = path.stat().st_mode
        if not stat.S_ISREG(mode):  # asked first: opening a pipe waits for whoever writes to it
            kind = FILE_TYPES.get(stat.S_IFMT(mode), "a device")
            raise ConfigError([f"{path}: can't be read: {kind}, a regular file expected; {NOT_TOML}"])
        with path.open("rb") as file:
            data = file.read(MAX_BYTES + 1)
    except OSError as error:
        raise ConfigError([f"{path}: can't be read: {error.strerror or error}; {NOT_TOML}"]) from error
    if len(data) > MAX_BYTES:
        raise ConfigError([f"{path}: larger than {MAX_BYTES} bytes, refused; {NOT_TOML}"])
    return data


def _merge(base: Mapping[str, Any], over: Mapping[str, Any]) -> dict[str, Any]:
    merged = dict(base)
    for key, value in over.items():
        below = merged.get(key)
        if isinstance(value, Mapping) and (below is None or isinstance(below, Mapping)):
            merged[key] = _merge(below or {}, value)
        elif not isinstance(value, Mapping):
            merged[key] = value
    return merged


def _leaves(tables: Mapping[str, Any], prefix: str = "") -> frozenset[str]:
    """Return the dotted names of all values."""
    names: set[str] = set()
    for key, value in tables.items():
        names |= _leaves(value, f"{prefix}{key}.") if isinstance(value, Mapping) else {f"{prefix}{key}"}
    return frozenset(names)


def _validate_samplers(
    tables: object, models: Mapping[str, type[SamplerOptions]]
) -> tuple[dict[str, SamplerOptions], list[str]]:
    if not isinstance(tables, Mapping):
        return {}, [f"{SAMPLERS}: a table expected, found {_short(tables)}"]
    problems = [
        f"{_dotted([SAMPLERS, name])}: unknown sampler{_did_you_mean(name, models)}"
        for name in tables
        if name not in models
    ]
    options: dict[str, SamplerOptions] = {}
    for name, model in models.items():
        try:
            options[name] = model.model_validate(tables.get(name, {}))
        except ValidationError as error:
            problems += _sentences(error, model, (SAMPLERS, name))
    return options, problems


def _sentences(error: ValidationError, model: type[BaseModel], prefix: tuple[str, ...]) -> Iterator[str]:
    for item in error.errors(include_url=False):
        location = [*prefix, *item["loc"]]
        name = _dotted(location)
        if item["type"] == "extra_forbidden":
            known = _fields_at(model, item["loc"][:-1])
            if location[:-1] == [] and prefix == ():
                known = [*known, SAMPLERS]
            yield f"{name}: unknown option{_did_you_mean(str(item['loc'][-1]), known)}"
            continue
        message = MESSAGES.get(item["type"], item["msg"].removeprefix("Value error, "))
        if isinstance(item["input"], str):
            message = message.replace(repr(item["input"]), _short(item["input"]))
        found = "" if item["type"] in {"value_error", "missing"} else f", found {_short(item['input'])}"
        yield f"{name}: {message}{found}" if name else message + found


def _fields_at(model: type[BaseModel], location: tuple[int | str, ...]) -> list[str]:
    """Return the option names of the table at `location`."""
    for step in location:
        if isinstance(step, int):
            continue
        annotation = model.model_fields[step].annotation if step in model.model_fields else None
        inner = next((part for part in _flatten(annotation) if issubclass(part, BaseModel)), None)
        if inner is None:
            return []
        model = inner
    return list(model.model_fields)


def _flatten(annotation: Any) -> Iterator[type]:  # noqa: ANN401 - a type annotation can be any object
    if isinstance(annotation, type) and not hasattr(annotation, "__args__"):
        yield annotation
    for part in getattr(annotation, "__args__", ()):
        yield from _flatten(part)


def _did_you_mean(name: str, known: Mapping[str, object] | list[str]) -> str:
    close = difflib.get_close_matches(name, list(known), n=1, cutoff=0.5)
    if close:
        return f"; did you mean {close[0]}?"
    return f"; known here: {', '.join(sorted(known))}" if known else ""


def _dotted(location: list[str | int]) -> str:
    text = ""
    for step in location:
        if isinstance(step, int):
            text += f"[{step}]"
            continue
        # a key can be any text: quoted as in the file, so that a line break in it does not make two problems of one
        key = step if BARE_KEY.match(step) else json.dumps(hide_secrets(step))
        text += f".{key}" if text else key
    return text


def _short(value: object) -> str:
    """Return what was found, on one line; of a table or an array only that it is one, since anything may be in it."""
    if isinstance(value, Mapping):
        return "a table"
    if isinstance(value, list | tuple):
        return "an array"
    text = repr(hide_secrets(value) if isinstance(value, str) else value)
    return text if len(text) <= 80 else text[:77] + "..."  # noqa: PLR2004 - one line of a terminal


def hide_secrets(text: str) -> str:
    """Replace what may be a secret in an address: user name, password and query."""
    return QUERY.sub("?...", CREDENTIALS.sub("...@", text, count=1))
