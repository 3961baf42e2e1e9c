"""What the configuration's models accept and refuse."""

from pathlib import Path

import pytest
from pydantic import BaseModel, ValidationError

from inferwatch.config import Config, Paths, SamplerOptions, parse_listen_address
from inferwatch.config_engines import EngineConfig, TlsConfig
from inferwatch.config_targets import DiscoveryConfig, TargetMatch


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("127.0.0.1:10940", ("127.0.0.1", 10940)),
        ("localhost:0", ("localhost", 0)),
        ("[::1]:80", ("::1", 80)),
        (":9100", ("0.0.0.0", 9100)),
    ],
)
def test_listen_address_is_host_and_port(text: str, expected: tuple[str, int]) -> None:
    assert parse_listen_address(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        "",
        "localhost",
        "127.0.0.1:",
        "127.0.0.1:65536",
        "h:-1",
        "h:1e3",
        "h:٣",
        "::1:80",
        "[::1:80",
        "::1]:80",
        " h:80",
        "h :80",
        "a b:80",
        "h\t:80",
        "h\0:80",
        "[:: 1]:80",
    ],
)
def test_anything_else_is_no_listen_address(text: str) -> None:
    with pytest.raises(ValueError, match="is not an address to listen on"):
        parse_listen_address(text)


def test_default_listens_on_loopback_only() -> None:
    host, port = parse_listen_address(Config().web.listen_address)

    assert (host, port) == ("127.0.0.1", 10940)


@pytest.mark.parametrize(
    "url",
    [
        "http://h:8000/metrics",
        "https://h/metrics",
        "http://[::1]:8000/metrics",
        "http://[fe80::1%eth0]:8000/metrics",
        "http://a_b.svc.cluster.local./metrics?key=x",
        "http://münchen.example/",
        f"http://{'a' * 63}.example/",
    ],
)
def test_engine_address_is_http_or_https(url: str) -> None:
    assert EngineConfig(url=url).url == url


@pytest.mark.parametrize(
    "url",
    [
        "",
        "h:8000",
        "ftp://h/",
        "http://",
        "http:///metrics",
        "http://h:x/",
        "http://h:99999/",
        "http://h:0/",
        "http://[::1/",
        "http://[v1.x]/",
        "http://a..b:1/",
        "http://.a/",
        f"http://{'a' * 64}:1/",
        f"http://{'a.' * 127}aa/",
        "http://a\\n:1/",
        "http://a\n:1/",
        "http://a b/",
        "http://a%20b/",
        "http://a\u200bb/",
        "http://a/b c",
        "http://a/\0",
    ],
)
def test_other_engine_addresses_are_refused(url: str) -> None:
    with pytest.raises(ValidationError, match="not an"):
        EngineConfig(url=url)


def test_target_is_host_and_port_unless_named() -> None:
    assert EngineConfig(url="http://h:8000/metrics").target_name == "h:8000"
    assert EngineConfig(url="http://h:8000/metrics", target="chat").target_name == "chat"


@pytest.mark.parametrize("target", ["", " chat", "a b", "chat\n", 'a"b', "x" * 129])
def test_target_is_a_plain_word(target: str) -> None:
    with pytest.raises(ValidationError, match="can't be a target"):
        EngineConfig(url="http://h/", target=target)


def test_two_engines_with_one_target_are_refused() -> None:
    engine = {"url": "http://h:8000/metrics"}

    with pytest.raises(ValidationError, match=r"target 'h:8000' is named twice; give each entry its own"):
        Config.model_validate({"engines": [engine, engine]})


def test_same_page_twice_under_different_targets_is_fine() -> None:
    engines = [{"url": "http://h/metrics", "target": name} for name in ("a", "b")]

    config = Config.model_validate({"engines": engines})

    assert [engine.target_name for engine in config.engines] == ["a", "b"]


def test_key_without_certificate_is_refused() -> None:
    with pytest.raises(ValidationError, match="cert_file is not"):
        TlsConfig.model_validate({"key_file": "/k.pem"})


@pytest.mark.parametrize("name", ["", ".x", "a b", "a\0b", "a" * 64])
def test_name_that_no_certificate_can_have_is_refused(name: str) -> None:
    with pytest.raises(ValidationError, match="can't be the name in a certificate"):
        TlsConfig(server_name=name)


@pytest.mark.parametrize("kind", ["", "http://h/?key=x", "a b", "x" * 65])
def test_kind_is_a_plain_word(kind: str) -> None:
    with pytest.raises(ValidationError, match="is not the name of an engine"):
        EngineConfig(url="http://h/", kind=kind)


@pytest.mark.parametrize("value", ["1", True, "true", [1]])
@pytest.mark.parametrize(
    ("model", "option", "others"),
    [
        (EngineConfig, "timeout_seconds", {"url": "http://h/"}),
        (EngineConfig, "interval_seconds", {"url": "http://h/"}),
        (DiscoveryConfig, "max_targets", {}),
        (DiscoveryConfig, "max_processes_per_target", {}),
        (DiscoveryConfig, "probe_timeout_seconds", {}),
        (TargetMatch, "port", {}),
    ],
)
def test_number_is_a_number_and_nothing_that_can_be_read_as_one(
    model: type[BaseModel], option: str, others: dict[str, object], value: object
) -> None:
    with pytest.raises(ValidationError, match=option):
        model.model_validate({option: value, **others})


def test_whole_number_is_taken_where_a_fraction_may_stand() -> None:
    assert EngineConfig.model_validate({"url": "http://h/", "timeout_seconds": 3}).timeout_seconds == 3.0


@pytest.mark.parametrize("path", ["", "/proc\0", Path()])
@pytest.mark.parametrize(
    ("model", "option", "others"),
    [
        (Paths, "procfs", {}),
        (Paths, "sysfs", {}),
        (Paths, "rootfs", {}),
        (TlsConfig, "ca_file", {}),
        (TlsConfig, "cert_file", {}),
        (EngineConfig, "bearer_token_file", {"url": "http://h/"}),
    ],
)
def test_path_that_is_empty_or_has_a_nul_is_refused(
    model: type[BaseModel], option: str, others: dict[str, object], path: object
) -> None:
    with pytest.raises(ValidationError, match="an absolute path expected"):
        model.model_validate({option: path, **others})


@pytest.mark.parametrize("seconds", [0, -1, 0.09, 86_401, float("nan"), float("inf")])
def test_interval_has_limits(seconds: float) -> None:
    with pytest.raises(ValidationError):
        SamplerOptions(interval_seconds=seconds)


def test_values_can_not_be_changed_afterwards() -> None:
    config = Config()

    with pytest.raises(ValidationError, match="frozen"):
        config.agent.interval_seconds = 1.0  # type: ignore[misc] # that it is an error is what is tested
