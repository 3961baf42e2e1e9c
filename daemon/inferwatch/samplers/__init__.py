"""The samplers: one file each, found by its name, plus those that other packages bring."""

import importlib
import pkgutil
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from importlib.metadata import EntryPoint, entry_points
from typing import Final

from inferwatch.model import Family
from inferwatch.spec import SamplerSpec

ENTRY_POINT_GROUP: Final = "inferwatch.samplers"


@dataclass(frozen=True, slots=True)
class Discovery:
    """What was found.

    Args:
        specs: Sampler name to its declaration, built-in ones first.
        problems: One sentence for each third-party sampler that can't be used.
    """

    specs: Mapping[str, SamplerSpec]
    problems: tuple[str, ...]


def builtin_specs() -> list[SamplerSpec]:
    """Import every module of this package and return its `SAMPLER`, ordered by name."""
    names = sorted(module.name for module in pkgutil.iter_modules(__path__) if not module.name.startswith("_"))
    return [importlib.import_module(f"{__name__}.{name}").SAMPLER for name in names]


def discover(
    builtin: Iterable[SamplerSpec] | None = None,
    third_party: Iterable[EntryPoint] | None = None,
    reserved: Iterable[Family] = (),
) -> Discovery:
    """Return all samplers.

    Args:
        builtin: The built-in declarations; found by importing the package when not given.
        third_party: Entry points of other packages; found among the installed ones when not given.
        reserved: Families of the agent itself, which no sampler may declare.

    A third-party sampler that can't be loaded, or that takes a name that is in use, is left out with a reason: it must
    not keep the agent from starting.

    Raises:
        ValueError: When two built-in samplers share a name or a metric family.
    """
    specs: dict[str, SamplerSpec] = {}
    taken = {line: "agent" for family in reserved for line in family.line_names}
    for spec in builtin_specs() if builtin is None else builtin:
        if clash := _clash(spec, specs, taken):
            raise ValueError(clash)
        _take(spec, specs, taken)
    problems = []
    for entry in entry_points(group=ENTRY_POINT_GROUP) if third_party is None else third_party:
        try:
            spec = entry.load()
        except (Exception, SystemExit) as error:  # noqa: BLE001 - foreign code; importing it can raise anything
            problems.append(f"{entry.name} ({entry.value}): can't be loaded: {type(error).__name__}: {error}")
            continue
        if not isinstance(spec, SamplerSpec):
            problems.append(f"{entry.name} ({entry.value}): is a {type(spec).__name__}, expected a SamplerSpec")
        elif clash := _clash(spec, specs, taken):
            problems.append(f"{entry.name} ({entry.value}): {clash}")
        else:
            _take(spec, specs, taken)
    return Discovery(specs, tuple(problems))


def _take(spec: SamplerSpec, specs: dict[str, SamplerSpec], taken: dict[str, str]) -> None:
    specs[spec.name] = spec
    taken.update({line: spec.name for family in spec.families for line in family.line_names})


def _clash(spec: SamplerSpec, specs: Mapping[str, SamplerSpec], taken: Mapping[str, str]) -> str | None:
    """Return what is wrong with a name; a family clashes also with the lines of another's histogram."""
    if spec.name in specs or spec.name == "agent":
        return f"there is a sampler named {spec.name} already"
    for family in spec.families:
        for line in family.line_names:
            if line in taken:
                return f"sampler {spec.name} declares {family.name}, which belongs to sampler {taken[line]}"
    return None
