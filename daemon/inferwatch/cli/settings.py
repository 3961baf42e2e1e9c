"""What the options on the command line say, and the configuration that comes of it."""

import difflib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from inferwatch.errors import ConfigError

if TYPE_CHECKING:
    from inferwatch.configfile import LoadedConfig
    from inferwatch.samplers import Discovery


@dataclass(frozen=True, slots=True)
class Flags:
    """The options that several commands share; None where the option was not given."""

    config: Path | None = None
    procfs: Path | None = None
    sysfs: Path | None = None
    rootfs: Path | None = None
    log_level: str | None = None
    log_format: str | None = None
    listen_address: str | None = None

    def overrides(self) -> Mapping[str, Any]:
        """Return what was given, nested as in the file."""
        paths = _given(procfs=self.procfs, sysfs=self.sysfs, rootfs=self.rootfs)
        agent = _given(log_level=self.log_level, log_format=self.log_format, paths=paths or None)
        web = _given(listen_address=self.listen_address)
        return _given(agent=agent or None, web=web or None)


def load(flags: Flags, discovery: "Discovery") -> "LoadedConfig":
    """Return the configuration: the defaults, then the file, then the command line.

    Raises:
        ConfigError: When something in it is wrong.
    """
    from inferwatch import configfile  # noqa: PLC0415 - `inferwatch --version` needs no models

    models = {name: spec.options for name, spec in discovery.specs.items()}
    loaded = configfile.load(flags.config, models, flags.overrides())
    if problems := list(_unknown_kinds(loaded)):
        raise ConfigError(problems)
    return loaded


def _unknown_kinds(loaded: "LoadedConfig") -> Iterator[str]:
    """Yield a sentence for each engine of an unknown kind; the models are below the engines and don't know them."""
    from inferwatch.engines.registry import TABLES  # noqa: PLC0415 - `inferwatch --version` needs no engines

    names = ["auto", *(table.name for table in TABLES)]
    for number, engine in enumerate(loaded.config.engines):
        if engine.kind in names:
            continue
        close = difflib.get_close_matches(engine.kind, names, n=1)
        hint = f"; did you mean {close[0]}?" if close else ""
        expected = f"one of {', '.join(names)} expected, found {engine.kind!r}"
        yield f"{loaded.path}: engines[{number}].kind: {expected}{hint}"


def _given(**values: object) -> dict[str, Any]:
    return {key: value for key, value in values.items() if value is not None}
