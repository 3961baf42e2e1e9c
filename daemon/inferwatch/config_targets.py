"""The options of targets: `[[targets]]`, a user's own rules, and `[discovery]`."""

from typing import Annotated, Final, Literal

from pydantic import AfterValidator, Field, field_validator, model_validator

from inferwatch.config_table import LABEL_VALUE, Table
from inferwatch.pattern import Pattern

REST_OF_THE_NODE: Final = "other"


def _check_pattern(value: str) -> str:
    Pattern(value)
    return value


Regex = Annotated[str, AfterValidator(_check_pattern)]


class TargetMatch(Table):
    """Which processes a `[[targets]]` entry means: all keys that are given must hold."""

    cmdline: Regex | None = Field(
        default=None,
        examples=["python .*serve\\.py"],
        description="Regular expression found in the command line, its arguments joined by blanks.",
    )
    exe: Regex | None = Field(
        default=None,
        examples=["/opt/engine/bin/serve$"],
        description="Regular expression found in the path of the executable.",
    )
    comm: Regex | None = Field(
        default=None,
        examples=["^my-engine$"],
        description="Regular expression found in the name of the main thread, of which the kernel keeps 15 bytes.",
    )
    cgroup: Regex | None = Field(
        default=None,
        examples=["/system\\.slice/my-engine\\.service"],
        description="Regular expression found in a path of /proc/PID/cgroup.",
    )
    user: str | Annotated[int, Field(strict=True, ge=0)] | None = Field(
        default=None,
        examples=["inference"],
        description="Name (of the host's /etc/passwd) or number of the user that it runs as.",
    )
    port: int | None = Field(
        default=None,
        ge=1,
        le=65_535,
        strict=True,
        examples=[8000],
        description="TCP port on which the process itself listens.",
    )

    @model_validator(mode="after")
    def _some(self) -> "TargetMatch":
        if not self.model_fields_set or self == TargetMatch.model_construct():
            msg = "match is empty; give at least one of cmdline, exe, comm, cgroup, user, port"
            raise ValueError(msg)
        return self


class TargetConfig(Table):
    """One `[[targets]]` entry: processes that are one target, whatever they are; their children come with them."""

    name: str = Field(examples=["my-service"], description="Value of the label `target`.")
    match: TargetMatch = Field(description="Which processes are meant; all keys that are given must hold.")

    @field_validator("name")
    @classmethod
    def _check_name(cls, value: str) -> str:
        if not LABEL_VALUE.match(value):
            msg = f"{value!r} can't be a target: letters, digits and . _ : / - expected, 128 at most"
            raise ValueError(msg)
        if value == REST_OF_THE_NODE:
            msg = f"{value!r} can't be a target: it stands for the rest of the node"
            raise ValueError(msg)
        return value


class DiscoveryConfig(Table):
    """`[discovery]`: what the agent finds by itself."""

    processes: Literal["on", "off"] = Field(
        default="on", description="Whether known engines are found among the processes; [[targets]] always are."
    )
    engines: Literal["on", "off"] = Field(
        default="on", description="Whether metrics pages of targets are found and scraped without an [[engines]] entry."
    )
    max_targets: int = Field(
        default=50, ge=1, le=1000, strict=True, description="Most targets; what is over is counted."
    )
    max_processes_per_target: int = Field(
        default=500,
        ge=1,
        le=10_000,
        strict=True,
        description="Most processes shown of one target; what is over is counted.",
    )
    probe_timeout_seconds: float = Field(
        default=2.0, ge=0.1, le=30, strict=True, description="Limit of one try to find the metrics page of a port."
    )
