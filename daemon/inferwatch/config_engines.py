"""The options of engines' metrics pages: `[[engines]]` and their TLS."""

import ipaddress
import re
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from pydantic import Field, StrictBool, field_validator, model_validator

from inferwatch.config_table import LABEL_VALUE, Interval, Table, check_path

ENGINE_NAME: Final = re.compile(r"[A-Za-z0-9._-]{1,64}\Z")
HOST_LABEL: Final = re.compile(r"[A-Za-z0-9_-]{1,63}\Z")  # of the name as DNS has it; `_` is in names of services
LONGEST_HOST: Final = 253  # RFC 1035, without the final dot


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
