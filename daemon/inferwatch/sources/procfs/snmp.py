"""Parse /proc/net/snmp and /proc/net/netstat (net/ipv4/proc.c): pairs of a line of names and a line of values."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from inferwatch.errors import ParseError
from inferwatch.sources.procfs.fields import excerpt, name, signed

NAMES: Final = re.compile(rb"(?: [!-~]+)+")
NUMBERS: Final = re.compile(rb"(?: -?[0-9]{1,20})+")
LINES_OF_A_PAIR: Final = 2


@dataclass(frozen=True, slots=True)
class Snmp:
    """Values by protocol (Ip, Tcp, Udp, TcpExt, ...) and name; which names there are depends on the kernel."""

    protocols: Mapping[str, Mapping[str, int]]

    def value(self, protocol: str, field: str) -> int | None:
        """Return a value, None where this kernel has no such field."""
        return self.protocols.get(protocol, {}).get(field)


def parse_snmp(data: bytes, file: str = "/proc/net/snmp") -> Snmp:
    """Parse either file; values may be negative (Tcp MaxConn is -1), a protocol may have several pairs (IcmpMsg).

    Args:
        data: The file.
        file: Its name in messages.

    Raises:
        ParseError: When names and values don't pair up, or there is nothing.
    """
    lines = data.splitlines()
    if not lines or len(lines) % LINES_OF_A_PAIR:
        raise ParseError(f"{file}: {len(lines)} lines, expected pairs of a line of names and one of values")
    protocols: dict[str, dict[str, int]] = {}
    for names, values in zip(lines[::2], lines[1::2], strict=True):
        label, fields = _pair(names, values, file)
        protocols.setdefault(label, {}).update(fields)
    return Snmp(protocols)


def _pair(names: bytes, values: bytes, file: str) -> tuple[str, dict[str, int]]:
    """Join `Tcp: OutSegs ...` with `Tcp: 37699 ...`."""
    label, _, name_fields = names.partition(b":")
    value_label, _, value_fields = values.partition(b":")
    protocol = name(label, f"{file}: protocol in {excerpt(names)}")
    keys, numbers = name_fields.split(), value_fields.split()
    if label != value_label or len(keys) != len(numbers):
        raise ParseError(
            f"{file}: {len(keys)} names of {excerpt(label)} but {len(numbers)} values of {excerpt(value_label)},"
            " expected as many of the same protocol"
        )
    if NAMES.fullmatch(name_fields) and NUMBERS.fullmatch(value_fields):  # as ever; see WELL_FORMED of vmstat
        return protocol, dict(zip(name_fields.decode("ascii").split(), map(int, numbers), strict=True))
    fields = ((name(key, f"{file}: name of {protocol}"), number) for key, number in zip(keys, numbers, strict=True))
    return protocol, {key: signed(number, f"{file}: {protocol} {key}") for key, number in fields}
