"""The code in docs/add-a-sampler.md does what the page says."""

import inspect
import re
import sys
from pathlib import Path
from types import ModuleType

import pytest

from inferwatch.cli.listing import unmet_requirements
from inferwatch.model import Family
from inferwatch.samplers import builtin_specs, discover
from inferwatch.sources.hostfs import HostFs
from inferwatch.spec import SamplerSpec
from support import LIVE

PAGE = Path(__file__).parent.parent / "docs" / "add-a-sampler.md"
NAME = "example_of_the_page"


@pytest.fixture(name="example")
def _example(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    code = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    module = ModuleType(NAME)
    monkeypatch.setitem(sys.modules, NAME, module)
    for block in code:
        exec(compile(block, str(PAGE), "exec"), module.__dict__)  # noqa: S102 - the page's own code is what is tested
    return module


async def test_its_tests_pass(example: ModuleType, tmp_path: Path) -> None:
    tests = {name: function for name, function in vars(example).items() if name.startswith("test_")}
    for function in tests.values():
        result = function(tmp_path) if inspect.signature(function).parameters else function()
        if inspect.isawaitable(result):
            await result

    assert len(tests) == 2


def test_its_sampler_joins_the_others(example: ModuleType) -> None:
    found = discover([*builtin_specs(), example.SAMPLER], [])

    assert isinstance(found.specs["file_handles"], SamplerSpec)
    assert all(isinstance(family, Family) for family in found.specs["file_handles"].families)


def test_its_requirement_is_met_here_and_not_in_an_empty_tree(example: ModuleType, tmp_path: Path) -> None:
    nowhere = HostFs(tmp_path, tmp_path, tmp_path)

    assert unmet_requirements([example.SAMPLER], LIVE) == {}
    assert unmet_requirements([example.SAMPLER], nowhere) == {"file_handles": f"there is no {tmp_path}/sys/fs/file-nr"}
