"""Reading the configuration: files to models, and mistakes to sentences."""

import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import Field

from inferwatch.config import SamplerOptions
from inferwatch.configfile import LoadedConfig, load
from inferwatch.errors import ConfigError
from support import fail_open


class CpuOptions(SamplerOptions):
    softirqs: bool = Field(default=True, description="Whether soft interrupts are counted.")


MODELS: dict[str, type[SamplerOptions]] = {"cpu": CpuOptions, "memory": SamplerOptions}
ENGINE_OPTIONS = "bearer_token_file, interval_seconds, kind, model, target, timeout_seconds, tls, url"
SECRET = "hunter2"  # noqa: S105 - no secret; the tests look for it in messages


@pytest.fixture(name="file")
def _file(tmp_path: Path) -> Path:
    return tmp_path / "config.toml"


def loaded(file: Path, text: str, **overrides: Any) -> LoadedConfig:  # noqa: ANN401 - values of any type, as in a file
    file.write_text(text, encoding="utf-8")
    return load(file, MODELS, overrides)


def problems(file: Path, text: str, **overrides: Any) -> list[str]:  # noqa: ANN401 - values of any type, as in a file
    with pytest.raises(ConfigError) as caught:
        loaded(file, text, **overrides)
    return [problem.removeprefix(f"{file}: ") for problem in caught.value.problems]


def test_no_file_is_the_defaults() -> None:
    config = load(None, MODELS, {})

    assert config.path is None
    assert config.config.agent.interval_seconds == 5.0
    assert config.options == {"cpu": CpuOptions(), "memory": SamplerOptions()}


def test_file_sets_what_it_names_and_leaves_the_rest(file: Path) -> None:
    config = loaded(file, "[agent]\nlog_level = 'debug'\n[samplers.cpu]\nsoftirqs = false\n")

    assert config.config.agent.log_level == "debug"
    assert config.config.agent.interval_seconds == 5.0
    assert config.options["cpu"] == CpuOptions(softirqs=False)
    assert config.path == file


def test_overrides_win_over_the_file_and_leave_its_other_values(file: Path) -> None:
    text = "[agent]\nlog_level = 'debug'\nevent_limit = 10\n[agent.paths]\nprocfs = '/a'\nsysfs = '/b'\n"

    config = loaded(file, text, agent={"log_level": "error", "paths": {"procfs": Path("/c")}})

    assert config.config.agent.log_level == "error"
    assert config.config.agent.event_limit == 10
    assert (config.config.agent.paths.procfs, config.config.agent.paths.sysfs) == (Path("/c"), Path("/b"))


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("[agnet]", "agnet: unknown option; did you mean agent?"),
        ("[sampler.cpu]", "sampler: unknown option; did you mean samplers?"),
        ("[agent]\nintervall = 1", "agent.intervall: unknown option; did you mean interval_seconds?"),
        ("[agent.paths]\nproc = 1", "agent.paths.proc: unknown option; did you mean procfs?"),
        ("[web]\nlisten = 1", "web.listen: unknown option; did you mean listen_address?"),
        ("[samplers.cpuu]", "samplers.cpuu: unknown sampler; did you mean cpu?"),
        ("[samplers.cpu]\nenabeld = 1", "samplers.cpu.enabeld: unknown option; did you mean enabled?"),
        ("[samplers.cpu]\nsoftirq = 1", "samplers.cpu.softirq: unknown option; did you mean softirqs?"),
        ("[[engines]]\nurl = 'http://h'\nname = 1", f"engines[0].name: unknown option; known here: {ENGINE_OPTIONS}"),
        (
            "[[engines]]\nurl = 'http://h'\n[engines.tls]\nverfy = 1",
            "engines[0].tls.verfy: unknown option; did you mean verify?",
        ),
        ("[samplers.zzzzzz]", "samplers.zzzzzz: unknown sampler; known here: cpu, memory"),
    ],
)
def test_unknown_key_is_named_with_what_was_meant(file: Path, text: str, problem: str) -> None:
    assert problems(file, text) == [problem]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("agent = 3", "agent: a table expected, found 3"),
        ("samplers = 3", "samplers: a table expected, found 3"),
        ("[samplers]\ncpu = 3", "samplers.cpu: a table expected, found 3"),
        ("engines = 3", "engines: an array of tables expected, found 3"),
        ("[engines]\nurl = 'http://h'", "engines: an array of tables expected, found a table"),
        ("[[engines]]", "engines[0].url: must be set"),
        ("[[engines]]\nurl = ['http://h']", "engines[0].url: Input should be a valid string, found an array"),
        (
            "[[engines]]\nurl = 'http://h'\ntimeout_seconds = '1'",
            "engines[0].timeout_seconds: Input should be a valid number, found '1'",
        ),
        (
            "[[engines]]\nurl = 'http://h'\ntimeout_seconds = true",
            "engines[0].timeout_seconds: Input should be a valid number, found True",
        ),
        ("[agent.paths]\nprocfs = ''", "agent.paths.procfs: the path is empty; an absolute path expected"),
        (
            "[agent]\nlog_level = 'loud'",
            "agent.log_level: Input should be 'debug', 'info', 'warning' or 'error', found 'loud'",
        ),
        ("[web]\nlisten_address = 1", "web.listen_address: Input should be a valid string, found 1"),
    ],
)  # fmt: skip
def test_wrong_type_is_named_with_what_was_expected_and_found(file: Path, text: str, problem: str) -> None:
    assert problems(file, text) == [problem]


def test_every_mistake_is_reported_in_one_go(file: Path) -> None:
    found = problems(file, "[agent]\nx = 1\n[web]\nlisten_address = 'x'\n[samplers.cpu]\ny = 1\n[samplers.z]\n")

    assert [problem.split(":")[0] for problem in found] == [
        "agent.x", "web.listen_address", "samplers.z", "samplers.cpu.y",
    ]  # fmt: skip


def test_problem_names_the_file_or_the_command_line_that_it_stands_in(file: Path) -> None:
    file.write_text("[agent]\nx = 1\n", encoding="utf-8")

    with pytest.raises(ConfigError) as caught:
        load(file, MODELS, {"web": {"listen_address": "nonsense"}})

    assert caught.value.problems[0].startswith(f"{file}: agent.x: ")
    assert caught.value.problems[1].startswith("command line: web.listen_address: 'nonsense' is not an address")


@pytest.mark.parametrize(
    ("data", "sentence"),
    [
        (b"agent", "not TOML: "),
        (b"a = 1\na = 2", "not TOML: "),
        (b"a = " + b"9" * 5000, "not TOML: "),
        (b"a = '\xff'", "byte 5 is not UTF-8"),
        (b"a = " + b"[" * 20_000, "nested too deeply"),
    ],
)
def test_file_that_is_not_toml_is_a_problem(file: Path, data: bytes, sentence: str) -> None:
    file.write_bytes(data)

    with pytest.raises(ConfigError, match=sentence):
        load(file, MODELS, {})


def test_missing_file_and_directory_are_problems(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="No such file"):
        load(tmp_path / "missing", MODELS, {})
    with pytest.raises(ConfigError, match="Is a directory, a regular file expected"):
        load(tmp_path, MODELS, {})


def test_pipe_is_refused_without_waiting_for_its_writer(file: Path) -> None:
    os.mkfifo(file)

    with pytest.raises(ConfigError, match="a named pipe, a regular file expected"):
        load(file, MODELS, {})


def test_device_is_refused() -> None:
    with pytest.raises(ConfigError, match="a device, a regular file expected"):
        load(Path("/dev/zero"), MODELS, {})


def test_file_larger_than_its_limit_is_refused(file: Path) -> None:
    file.write_bytes(b"#" * (1 << 20))
    assert load(file, MODELS, {}).path == file
    file.write_bytes(b"#" * ((1 << 20) + 1))

    with pytest.raises(ConfigError, match="larger than 1048576 bytes, refused"):
        load(file, MODELS, {})


def test_byte_order_mark_is_accepted(file: Path) -> None:
    file.write_bytes(b"\xef\xbb\xbf[agent]\r\nlog_level = 'debug'\r\n")

    assert load(file, MODELS, {}).config.agent.log_level == "debug"


def test_unreadable_file_is_a_problem(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file.write_text("")
    fail_open(monkeypatch, {"config.toml": 13})

    with pytest.raises(ConfigError, match="can't be read: Permission denied"):
        load(file, MODELS, {})


@pytest.mark.parametrize(
    "text",
    [
        f"[[engines]]\nurl = 'http://user:{SECRET}@h/'",
        f"[[engines]]\nurl = 'http://{SECRET}@h/'",
        f"[[engines]]\nurl = 'ftp://user:{SECRET}@h/'",
        f"[[engines]]\nurl = 'user:{SECRET}@h'",
        f"[[engines]]\nurl = 'http://user:{SECRET}\u2100@h/'",
        f"[[engines]]\nurl = 'http://h:{SECRET}/'",
        f"[[engines]]\nurl = ['http://user:{SECRET}@h/']",
        f"engines = ['http://user:{SECRET}@h/']",
        f"engines = 'http://user:{'x' * 80}{SECRET}@h/'",
        f"engines = ['http://h/?key={SECRET}']",
        f"engines = 'http://h/?key={SECRET}'",
        f"[engines]\nurl = 'http://h/?key={SECRET}'",
        f"[[engines]]\nurl = ['http://h/?key={SECRET}']",
        f"[[engines]]\nurl = {{a = 'http://h/?key={SECRET}'}}",
        f"[[engines]]\nurl = 'http://a..b/?key={SECRET}'",
        f"[[engines]]\nurl = 'http://h/x y?key={SECRET}'",
        f"[[engines]]\nurl = 'http://h'\ntarget = 'http://h/?a=b&key={SECRET}'",
        f"[[engines]]\nurl = 'http://h'\ntarget = 'http://user:pass {SECRET}@h/'",
        f"[[engines]]\nurl = 'http://h'\nkind = 'http://h/?key={SECRET}'",
        f"[[engines]]\nurl = 'http://h'\ninterval_seconds = 'http://h/?key={SECRET}'",
        f"[[engines]]\nurl = 'http://h'\n'http://h/?key={SECRET}' = 1",
        f"[[targets]]\nname = 'http://h/?key={SECRET}'\nmatch.port = 1",
        f"[web]\nlisten_address = 'http://user:{SECRET}@h/'",
        f"[web]\nlisten_address = 'user:{SECRET}@h:1 '",
        f"[web]\nlisten_address = 'http://h/?key={SECRET}'",
        f"[samplers]\n'http://h/?key={SECRET}' = 1",
        f"[a.'http://h/?key={SECRET}']\n[a.'http://h/?key={SECRET}']",
        f"[[engines]]\nurl = 'http://h'\nbearer_token = '{SECRET}'",
        f"[[engines]]\nurl = 'http://h'\npassword = '{SECRET}'",
    ],
)
def test_secret_in_the_wrong_place_is_refused_and_not_shown(file: Path, text: str) -> None:
    found = problems(file, text)

    assert found
    assert SECRET not in "\n".join(found)


def test_address_with_a_password_is_told_where_it_belongs(file: Path) -> None:
    found = problems(file, f"[[engines]]\nurl = 'http://user:{SECRET}@h/'")

    assert found == ["engines[0].url: the address holds a user name or password; use bearer_token_file instead"]


def test_line_break_in_a_key_or_value_does_not_make_two_problems(file: Path) -> None:
    found = problems(file, '[samplers]\n"a\\nb" = 1\n[agent]\n"c\\nd" = 1\nlog_level = "e\\nf"\n')

    assert len(found) == 3
    assert not any("\n" in problem for problem in found)


def test_deep_but_readable_value_in_the_wrong_place_is_one_line(file: Path) -> None:
    found = problems(file, f"[agent]\ninterval_seconds = {'[' * 100}{']' * 100}\n")

    assert len(found) == 1
    assert len(found[0]) < 200


toml_like = st.text(alphabet=st.sampled_from("[]{}=.,'\"#\n\\ _-+:0159eEnaifTtruds\u0000\u2028é"), max_size=200)
key = st.sampled_from(
    ["agent", "web", "engines", "samplers", "cpu", "paths", "url", "tls", "enabled", "x", '"\\n"', "''"]
)
value = st.sampled_from(["1", "-1", "nan", "inf", "1e400", "9" * 400, "true", "''", "[]", "{}", "[[1]]", "1979-05-27"])


def problems_of_any(directory: Path, data: bytes) -> list[str]:
    """Return what is wrong with any bytes; anything but a ConfigError gets through."""
    file = directory / "any.toml"
    file.write_bytes(data)
    try:
        load(file, MODELS, {})
    except ConfigError as error:
        return error.problems
    return []


@given(text=toml_like | st.text(max_size=100))
def test_no_text_raises_anything_but_a_config_error(tmp_path_factory: pytest.TempPathFactory, text: str) -> None:
    found = problems_of_any(tmp_path_factory.getbasetemp(), text.encode("utf-8", "surrogatepass"))

    assert all(found)


@given(lines=st.lists(st.tuples(st.lists(key, min_size=1, max_size=4), value), max_size=6))
def test_no_tables_raise_anything_but_a_config_error(
    tmp_path_factory: pytest.TempPathFactory, lines: list[tuple[list[str], str]]
) -> None:
    text = "\n".join(f"{'.'.join(keys)} = {found}" for keys, found in lines)

    found = problems_of_any(tmp_path_factory.getbasetemp(), text.encode())

    assert not any("\n" in problem for problem in found)
