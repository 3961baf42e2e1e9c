"""Which samplers there are: built-in ones, and those of other packages."""

import sys
from importlib.metadata import EntryPoint
from types import ModuleType

import pytest

from inferwatch.model import Family, Kind
from inferwatch.samplers import ENTRY_POINT_GROUP, builtin_specs, discover
from inferwatch.spec import SamplerSpec

MODULE = "module_of_another_package"


def spec(name: str, *families: str) -> SamplerSpec:
    made = tuple(Family(family, "A thing.", Kind.GAUGE) for family in families)
    return SamplerSpec(name, "cpu", "It tells.", "/proc", made, lambda _context: pytest.fail("not run"))


def entry(name: str, attribute: str = "SAMPLER", module: str = MODULE) -> EntryPoint:
    return EntryPoint(name, f"{module}:{attribute}", ENTRY_POINT_GROUP)


@pytest.fixture(name="module")
def _module(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    module = ModuleType(MODULE)
    monkeypatch.setitem(sys.modules, MODULE, module)
    return module


def test_builtin_samplers_are_found_by_their_files() -> None:
    names = [found.name for found in builtin_specs()]

    assert names == sorted(names)
    assert {"cpu", "memory", "network", "pressure", "schedstat"} <= set(names)
    assert not any(name.startswith("_") for name in names)


def test_builtin_samplers_have_no_clash() -> None:
    assert discover(third_party=[]).problems == ()


@pytest.mark.parametrize("found", builtin_specs(), ids=lambda found: found.name)
def test_builtin_sampler_is_named_like_its_file_and_its_metrics_like_the_project(found: SamplerSpec) -> None:
    module = sys.modules[f"inferwatch.samplers.{found.name}"]

    assert module.SAMPLER is found
    assert found.summary.endswith(".")
    assert all(family.name.startswith("inferwatch_") for family in found.families)


def test_sampler_of_another_package_joins(module: ModuleType) -> None:
    module.__dict__["SAMPLER"] = spec("mine", "inferwatch_mine")

    found = discover([spec("cpu")], [entry("mine")])

    assert list(found.specs) == ["cpu", "mine"]
    assert found.problems == ()


def test_package_that_can_not_be_imported_is_left_out_with_the_reason() -> None:
    found = discover([spec("cpu")], [entry("mine", module="no_such_package")])

    assert list(found.specs) == ["cpu"]
    assert found.problems == (
        "mine (no_such_package:SAMPLER): can't be loaded: ModuleNotFoundError: No module named 'no_such_package'",
    )


def test_missing_attribute_and_wrong_type_are_left_out_with_the_reason(module: ModuleType) -> None:
    module.__dict__["SAMPLER"] = 3

    found = discover([spec("cpu")], [entry("a", "NOTHING"), entry("b")])

    assert list(found.specs) == ["cpu"]
    assert "can't be loaded: AttributeError" in found.problems[0]
    assert found.problems[1] == f"b ({MODULE}:SAMPLER): is a int, expected a SamplerSpec"


@pytest.mark.parametrize(
    ("foreign", "reason"),
    [
        (spec("cpu"), "there is a sampler named cpu already"),
        (spec("agent"), "there is a sampler named agent already"),
        (spec("mine", "inferwatch_x"), "sampler mine declares inferwatch_x, which belongs to sampler cpu"),
    ],
)
def test_name_or_metric_that_is_taken_is_left_out(module: ModuleType, foreign: SamplerSpec, reason: str) -> None:
    module.__dict__["SAMPLER"] = foreign

    found = discover([spec("cpu", "inferwatch_x")], [entry("mine")])

    assert list(found.specs) == ["cpu"]
    assert found.problems == (f"mine ({MODULE}:SAMPLER): {reason}",)


def test_broken_package_does_not_keep_a_good_one_away(module: ModuleType) -> None:
    module.__dict__["SAMPLER"] = spec("mine")

    found = discover([spec("cpu")], [entry("broken", module="no_such_package"), entry("mine")])

    assert list(found.specs) == ["cpu", "mine"]
    assert len(found.problems) == 1


def test_clash_of_builtin_samplers_is_a_mistake_of_ours() -> None:
    with pytest.raises(ValueError, match="belongs to sampler a"):
        discover([spec("a", "inferwatch_x"), spec("b", "inferwatch_x")], [])


def test_metric_of_the_agent_or_line_of_a_histogram_is_taken(module: ModuleType) -> None:
    wait = Family("inferwatch_wait_seconds", "A wait.", Kind.HISTOGRAM, "seconds")
    reserved = Family("inferwatch_sampler_up", "Up.", Kind.GAUGE)
    builtin = SamplerSpec("cpu", "cpu", "A test.", "nowhere", (wait,), lambda _context: None)  # type: ignore[arg-type, return-value] # never made
    for name, owner in (("inferwatch_wait_seconds_bucket", "cpu"), ("inferwatch_sampler_up", "agent")):
        module.__dict__["SAMPLER"] = spec("mine", name)

        found = discover([builtin], [entry("mine")], reserved=[reserved])

        assert found.problems == (
            f"mine ({MODULE}:SAMPLER): sampler mine declares {name}, which belongs to sampler {owner}",
        )
