"""The configuration's models: every option with its default, its unit in the name and one sentence."""

from pathlib import Path
from typing import Final, Literal

from pydantic import Field, StrictBool, field_validator, model_validator

from inferwatch.config_engines import EngineConfig
from inferwatch.config_table import Interval, Table, check_path
from inferwatch.config_targets import DiscoveryConfig, TargetConfig

DEFAULT_PORT: Final = 10940


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
