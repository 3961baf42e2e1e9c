"""The configuration's models: every option with its default, its unit in the name and one sentence."""

import ipaddress
import re
from pathlib import Path
from typing import Final, Literal
from urllib.parse import urlsplit

from pydantic import Field, StrictBool, field_validator, model_validator

from inferwatch.config_table import LABEL_VALUE, Interval, Table
from inferwatch.config_targets import DiscoveryConfig, TargetConfig

DEFAULT_PORT: Final = 10940
ENGINE_NAME: Final = re.compile(r"[A-Za-z0-9._-]{1,64}\Z")
HOST_LABEL: Final = re.compile(r"[A-Za-z0-9_-]{1,63}\Z")  # of the name as DNS has it; `_` is in names of services
LONGEST_HOST: Final = 253  # RFC 1035, without the final dot


def check_path(value: object) -> object:
    """Refuse what can't be a path: an empty one would mean the directory that the agent was started in.

    Raises:
        ValueError: When it is empty or has a NUL in it.
    """
    if isinstance(value, str | Path) and str(value) in {"", "."}:
        msg = "the path is empty; an absolute path expected"
        raise ValueError(msg)
    if isinstance(value, str | Path) and "\0" in str(value):
        msg = "the path has a NUL in it; an absolute path expected"
        raise ValueError(msg)
    return value


class SamplerOptions(Table):
    """What every `[samplers.<name>]` table has; a sampler's own options are a subclass in its file."""

    enabled: StrictBool = Field(default=True, description="Whether the sampler runs.")
    interval_seconds: Interval | None = Field(
        default=None, examples=[5.0], description="Time between two runs; the agent's interval_seconds when not set."
    )


class Paths(Table):
    """Where the host's file systems are seen from; set by the --path options when the agent runs in a container."""

    procfs: Path = Field(default=Path("/proc"), description="Where the host's procfs is mounted.")
    sysfs: Path = Field(default=Path("/sys"), description="Where the host's sysfs is mounted.")
    rootfs: Path = Field(default=Path("/"), description="Where the host's root file system is mounted.")

    _check = field_validator("procfs", "sysfs", "rootfs", mode="before")(check_path)


class AgentConfig(Table):
    """Options of the agent itself."""

    interval_seconds: Interval = Field(default=5.0, description="Time between two runs of a sampler.")
    log_level: Literal["debug", "info", "warning", "error"] = Field(
        default="info", description="Least severity that is logged."
    )
    log_format: Literal["auto", "console", "json"] = Field(
        default="auto", description="Form of the log; auto is console on a terminal and JSON otherwise."
    )
    paths: Paths = Field(default_factory=Paths, description="Where the host's file systems are seen from.")
    event_limit: int = Field(default=1000, ge=10, le=100_000, description="Number of events kept in memory.")
    label_value_limit: int = Field(
        default=500,
        ge=10,
        le=100_000,
        description="Most different values of one open label of a sampler; what is over goes to `other`.",
    )


class WebConfig(Table):
    """Options of the web server."""

    listen_address: str = Field(
        default=f"127.0.0.1:{DEFAULT_PORT}",
        description="Address and port to listen on; loopback by default because the page tells much about the host.",
    )
    enable_reload: StrictBool = Field(
        default=False, description="Whether POST /-/reload reads the configuration again."
    )

    @field_validator("listen_address")
    @classmethod
    def _split(cls, value: str) -> str:
        parse_listen_address(value)
        return value


class TlsConfig(Table):
    """How the certificate of an engine's HTTPS page is judged."""

    ca_file: Path | None = Field(
        default=None,
        examples=["/etc/inferwatch/ca.pem"],
        description="CA bundle in PEM form; the system's when not set.",
    )
    cert_file: Path | None = Field(
        default=None, examples=["/etc/inferwatch/client.pem"], description="Client certificate in PEM form."
    )
    key_file: Path | None = Field(
        default=None, examples=["/etc/inferwatch/client.key"], description="Key of the client certificate in PEM form."
    )
    server_name: str | None = Field(
        default=None,
        examples=["vllm.example.com"],
        description="Name expected in the certificate; the URL's when not set.",
    )
    verify: StrictBool = Field(default=True, description="Whether the certificate is checked at all.")

    _check = field_validator("ca_file", "cert_file", "key_file", mode="before")(check_path)

    @field_validator("server_name")
    @classmethod
    def _check_name(cls, value: str | None) -> str | None:
        if value is not None and not is_host(value):
            msg = "can't be the name in a certificate; a host name or address expected"
            raise ValueError(msg)
        return value

    @model_validator(mode="after")
    def _pair(self) -> "TlsConfig":
        if self.key_file is not None and self.cert_file is None:
            msg = "key_file is set but cert_file is not; set both or neither"
            raise ValueError(msg)
        return self


class EngineConfig(Table):
    """One `[[engines]]` entry: a serving engine's metrics page."""

    url: str = Field(
        examples=["http://127.0.0.1:8000/metrics"], description="Address of the metrics page, http:// or https://."
    )
    kind: str = Field(default="auto", description="Which engine it is; auto recognises it by the names of its series.")
    target: str | None = Field(
        default=None,
        examples=["my-service"],
        description="Value of the label `target`; host and port of the URL when not set.",
    )
    model: str | None = Field(
        default=None,
        max_length=256,
        examples=["my-model"],
        description="Value of the label `model` where the page names none, as llama.cpp's.",
    )
    interval_seconds: Interval | None = Field(
        default=None, examples=[5.0], description="Time between two scrapes; the sampler's interval when not set."
    )
    timeout_seconds: float | None = Field(
        default=None,
        ge=0.1,
        le=300,
        strict=True,
        examples=[4.0],
        description="Limit of one scrape, name resolution included; four fifths of the interval when not set.",
    )
    bearer_token_file: Path | None = Field(
        default=None,
        examples=["/run/secrets/engine-token"],
        description="File whose content is sent as bearer token; read again at each scrape.",
    )
    tls: TlsConfig = Field(default_factory=TlsConfig, description="How an HTTPS page's certificate is judged.")

    _check = field_validator("bearer_token_file", mode="before")(check_path)

    @field_validator("url")
    @classmethod
    def _check_url(cls, value: str) -> str:
        # no message shows the address: what is malformed may hold a password in an unexpected place
        malformed = "not an address: the host or the port is malformed; http://host:port/metrics expected"
        try:
            parts = urlsplit(value)
            port = parts.port
        except ValueError:
            raise ValueError(malformed) from None
        if "@" in parts.netloc:
            msg = "the address holds a user name or password; use bearer_token_file instead"
            raise ValueError(msg)
        if parts.scheme not in {"http", "https"} or not parts.hostname:
            msg = "not an http:// or https:// address of a metrics page; http://host:port/metrics expected"
            raise ValueError(msg)
        bracketed = parts.netloc.startswith("[")  # only IPv6 is written so
        if port == 0 or bracketed != (":" in parts.hostname) or not is_host(parts.hostname):
            raise ValueError(malformed)
        if not value.isprintable() or " " in value:
            msg = "not an address: a blank or something that can't be printed is in it; write it as %XX"
            raise ValueError(msg)
        return value

    @field_validator("kind")
    @classmethod
    def _check_kind(cls, value: str) -> str:
        if not ENGINE_NAME.match(value):
            msg = f"{value!r} is not the name of an engine: letters, digits and . _ - expected, or auto"
            raise ValueError(msg)
        return value

    @field_validator("target")
    @classmethod
    def _check_target(cls, value: str | None) -> str | None:
        if value is not None and not LABEL_VALUE.match(value):
            msg = f"{value!r} can't be a target: letters, digits and . _ : / - expected, 128 at most"
            raise ValueError(msg)
        return value

    @property
    def target_name(self) -> str:
        """Return the value of the label `target`."""
        return self.target or urlsplit(self.url).netloc


class Config(Table):
    """The whole file, without the samplers' tables, which are validated by the samplers' own models."""

    agent: AgentConfig = Field(default_factory=AgentConfig, description="Options of the agent itself.")
    web: WebConfig = Field(default_factory=WebConfig, description="Options of the web server.")
    engines: tuple[EngineConfig, ...] = Field(default=(), description="Metrics pages of serving engines.")

    targets: tuple[TargetConfig, ...] = Field(default=(), description="Rules by which processes are targets.")
    discovery: DiscoveryConfig = Field(
        default_factory=DiscoveryConfig, description="What the agent finds by itself among the processes."
    )

    @model_validator(mode="after")
    def _distinct_targets(self) -> "Config":
        seen: set[str] = set()
        for engine in self.engines:
            if engine.target_name in seen:
                msg = f"engines: the target {engine.target_name!r} is named twice; give each entry its own `target`"
                raise ValueError(msg)
            seen.add(engine.target_name)
        return self


def is_host(text: str) -> bool:
    """Return whether a text can be the host of an address: a number, or a name that DNS can hold."""
    if ":" in text:
        try:
            ipaddress.IPv6Address(text)
        except ValueError:
            return False
        return text.isprintable()
    try:
        name = text.removesuffix(".").encode("idna").decode("ascii")
    except UnicodeError:  # an empty label, or one of more than 63 bytes
        return False
    return text.isprintable() and len(name) <= LONGEST_HOST and all(map(HOST_LABEL.match, name.split(".")))


def parse_listen_address(value: str) -> tuple[str, int]:
    """Split `host:port`, `[ipv6]:port` or `:port` (all addresses).

    Raises:
        ValueError: When it is none of these.
    """
    host, separator, port = value.rpartition(":")
    if not separator or not port.isascii() or not port.isdigit() or not 0 <= int(port) <= 65_535:  # noqa: PLR2004 - the largest port
        msg = f"{value!r} is not an address to listen on: host:port expected, for example 127.0.0.1:{DEFAULT_PORT}"
        raise ValueError(msg)
    if any(char.isspace() or not char.isprintable() for char in host):
        msg = f"{value!r} is not an address to listen on: the host has a blank or an unprintable character in it"
        raise ValueError(msg)
    if host.startswith("[") != host.endswith("]") or (":" in host and not host.startswith("[")):
        msg = f"{value!r} is not an address to listen on: an IPv6 address stands in brackets, for example [::1]:{port}"
        raise ValueError(msg)
    return host.strip("[]") or "0.0.0.0", int(port)  # noqa: S104 - the user asked for all addresses
