"""Parse /proc/net/sockstat and sockstat6 (net/ipv4/proc.c, net/ipv6/proc.c)."""

from collections.abc import Mapping
from dataclasses import dataclass

from inferwatch.errors import ParseError
from inferwatch.sources.procfs.fields import excerpt, name, signed


@dataclass(frozen=True, slots=True)
class SockStat:
    """Values by protocol (sockets, TCP, UDP, RAW, FRAG, TCP6, ...) and name (inuse, orphan, tw, alloc, mem).

    `mem` is in pages. orphan, alloc and mem are of the whole host, the rest of one network namespace
    (sockstat_seq_show()).
    """

    protocols: Mapping[str, Mapping[str, int]]

    def value(self, protocol: str, field: str) -> int | None:
        """Return a value, None where this kernel has no such field."""
        return self.protocols.get(protocol, {}).get(field)


def parse_sockstat(data: bytes, file: str = "/proc/net/sockstat") -> SockStat:
    """Parse either file.

    Args:
        data: The file.
        file: Its name in messages.

    Raises:
        ParseError: When a line is not a protocol followed by pairs of a name and a number, or there is none.
    """
    protocols: dict[str, dict[str, int]] = {}
    for line in data.splitlines():
        label, colon, rest = line.partition(b":")
        protocol = name(label, f"{file}: protocol in {excerpt(line)}")
        fields = rest.split()
        if not colon or len(fields) % 2:
            raise ParseError(
                f"{file}: {excerpt(line)} found, expected a protocol, a colon and pairs of name and number"
            )
        protocols[protocol] = {
            name(key, f"{file}: name of {protocol}"): signed(value, f"{file}: value of {protocol}")
            for key, value in zip(fields[::2], fields[1::2], strict=True)
        }
    if not protocols:
        raise ParseError(f"{file}: empty, expected one line per protocol")
    return SockStat(protocols)
