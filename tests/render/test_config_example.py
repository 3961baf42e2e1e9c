"""The generated example of a configuration file."""

import re
import tomllib
from enum import StrEnum
from pathlib import Path
from typing import Literal

import pytest
from pydantic import Field

from inferwatch.config import Config, SamplerOptions
from inferwatch.config_table import Table
from inferwatch.configfile import load
from inferwatch.render.config_example import config_example
from inferwatch.render.options import section_of, toml_value
from inferwatch.samplers import builtin_specs
from inferwatch.spec import SamplerSpec

MODELS = {spec.name: spec.options for spec in builtin_specs()}


def uncommented(text: str) -> str:
    """Take the # of every option away, and leave the prose (##)."""
    return re.sub(r"^# (?=[\[a-z])", "", text, flags=re.MULTILINE)


def options_in(text: str) -> set[str]:
    """Return the dotted names of all options that stand in the example, set or not."""
    names, table = set(), ""
    for line in text.splitlines():
        if header := re.match(r"(?:# )?\[+([a-z_.]+)\]+$", line):
            table = header[1]
        elif option := re.match(r"# ([a-z_]+) = ", line):
            names.add(f"{table}.{option[1]}")
    return names


def test_as_it_is_it_changes_nothing(tmp_path: Path) -> None:
    file = tmp_path / "example.toml"
    file.write_text(config_example(builtin_specs()), encoding="utf-8")

    example = load(file, MODELS, {})

    assert example.config == Config()
    assert example.options == load(None, MODELS, {}).options


def test_with_every_option_set_it_is_valid(tmp_path: Path) -> None:
    file = tmp_path / "example.toml"
    file.write_text(uncommented(config_example(builtin_specs())), encoding="utf-8")

    example = load(file, MODELS, {})

    assert len(example.config.engines) == 1
    assert example.config.engines[0].tls.ca_file is not None


def test_with_every_option_set_each_default_is_what_the_model_says() -> None:
    data = tomllib.loads(uncommented(config_example(builtin_specs())))
    defaults = Config().model_dump(mode="json")
    del data["agent"]["paths"], defaults["agent"]["paths"]

    assert data["agent"] == defaults["agent"]
    assert data["web"] == defaults["web"]


def test_every_option_of_every_model_is_in_it() -> None:
    found = options_in(config_example(builtin_specs()))
    sections = [
        *section_of(Config, "", "").walk(),
        *(part for name, model in MODELS.items() for part in section_of(model, f"samplers.{name}", "").walk()),
    ]

    assert found == {f"{part.name}.{option.name}" for part in sections for option in part.options}


def test_every_option_has_a_sentence() -> None:
    sections = [section_of(Config, "", ""), *(section_of(model, name, "") for name, model in MODELS.items())]
    silent = [
        f"{part.name}.{option.name}"
        for section in sections
        for part in section.walk()
        for option in part.options
        if not option.sentence.endswith(".")
    ]

    assert silent == []


class Mode(StrEnum):
    A = "a"
    B = "b"


class Inner(Table):
    """Inner options."""

    depth: int = Field(default=3, le=9, description="How deep.")


class Rich(SamplerOptions):
    """One option of each sort."""

    mode: Mode = Field(default=Mode.B, description="An enumeration.")
    word: Literal["x", "y"] | None = Field(default=None, description="Perhaps a word.")
    file: Path | None = Field(default=None, description="Perhaps a file.")
    text: str = Field(default='a "b" \\ é\n', description="Awkward text.")
    count_limit: int | None = Field(default=None, ge=5, description="Perhaps a number.")
    names: tuple[str, ...] = Field(default=("a", "b"), description="A list.")
    patterns: tuple[str, ...] = Field(default=(), description="An empty list.")
    share_ratio: float = Field(default=0.5, gt=0, lt=1, description="A share.")
    flag: bool | None = Field(default=None, description="Perhaps a switch.")
    inner: Inner = Field(default_factory=Inner, description="A table in it.")
    entries: tuple[Inner, ...] = Field(default=(), description="Tables in it.")


def rich_spec() -> SamplerSpec:
    return SamplerSpec("rich", "cpu", "It tells.", "/proc", (), lambda _context: pytest.fail("not run"), options=Rich)


def test_options_of_all_sorts_survive_the_way_to_toml_and_back() -> None:
    data = tomllib.loads(uncommented(config_example([rich_spec()])))

    options = Rich.model_validate(data["samplers"]["rich"])

    assert options.text == 'a "b" \\ é\n'
    assert (options.mode, options.word, options.names) == (Mode.B, "x", ("a", "b"))
    assert (options.count_limit, options.flag, options.entries) == (5, True, (Inner(),))


def test_units_and_limits_stand_in_the_comment() -> None:
    text = config_example([rich_spec()])

    assert "## A share. (ratio, 0 to 1)\n# share_ratio = 0.5\n" in text
    assert "## Perhaps a number. (5 at least; not set by default)\n# count_limit = 5\n" in text
    assert '## An enumeration. (one of "a", "b")\n# mode = "b"\n' in text
    assert "## How deep. (9 at most)\n# depth = 3\n" in text
    assert "\n# [[samplers.rich.entries]]\n" in text
    assert "\n[samplers.rich.inner]\n" in text


@pytest.mark.parametrize("value", [None, {}, {"a": 1}, [None]])
def test_what_toml_does_not_have_is_an_error(value: object) -> None:
    with pytest.raises(TypeError, match="TOML can't hold"):
        toml_value(value)
