"""Sample TCP health and socket use of the host's network namespace, from /proc/net."""

import os
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Final

from inferwatch.errors import ParseError, SourceError
from inferwatch.model import Family, Kind, Sample
from inferwatch.samplers._support.parts import Parts
from inferwatch.sources.hostfs import HostFs, read_bytes
from inferwatch.sources.procfs.fields import excerpt, unsigned
from inferwatch.sources.procfs.snmp import parse_snmp
from inferwatch.sources.procfs.sockstat import SockStat, parse_sockstat
from inferwatch.spec import Context, SamplerSpec

PORT_RANGE: Final = "/proc/sys/net/ipv4/ip_local_port_range"
INIT: Final = "1"
SOCKET_PROTOCOLS: Final = ("TCP", "UDP", "UDPLITE", "RAW", "TCP6", "UDP6", "UDPLITE6", "RAW6")


def _counter(name: str, text: str, source: str, *labels: str) -> Family:
    return Family(name, f"{text}, from {source}.", Kind.COUNTER, "", labels)


SEGMENTS_SENT: Final = _counter(
    "inferwatch_tcp_segments_sent_total",
    "TCP segments sent, retransmitted ones not counted",
    "Tcp OutSegs in /proc/net/snmp",
)
SEGMENTS_RECEIVED: Final = _counter(
    "inferwatch_tcp_segments_received_total", "TCP segments received", "Tcp InSegs in /proc/net/snmp"
)
RETRANSMITS: Final = _counter(
    "inferwatch_tcp_retransmits_total", "TCP segments sent again", "Tcp RetransSegs in /proc/net/snmp"
)
RESETS_SENT: Final = _counter(
    "inferwatch_tcp_resets_sent_total", "TCP segments with the RST flag sent", "Tcp OutRsts in /proc/net/snmp"
)
ESTABLISHED_RESETS: Final = _counter(
    "inferwatch_tcp_established_resets_total",
    "TCP connections that went from ESTABLISHED or CLOSE-WAIT straight to CLOSED",
    "Tcp EstabResets in /proc/net/snmp",
)
OPENED: Final = _counter(
    "inferwatch_tcp_connections_opened_total",
    "TCP connections begun by this host (active) or accepted by it (passive)",
    "Tcp ActiveOpens and PassiveOpens in /proc/net/snmp",
    "direction",
)
FAILURES: Final = _counter(
    "inferwatch_tcp_connection_failures_total",
    "TCP connections that failed while being opened",
    "Tcp AttemptFails in /proc/net/snmp",
)
LISTEN_OVERFLOWS: Final = _counter(
    "inferwatch_tcp_listen_overflows_total",
    "Connections refused because a listening socket's accept queue was full",
    "TcpExt ListenOverflows in /proc/net/netstat",
)
LISTEN_DROPS: Final = _counter(
    "inferwatch_tcp_listen_drops_total",
    "Connections that listening sockets dropped for any reason, overflows included",
    "TcpExt ListenDrops in /proc/net/netstat",
)
TIMEOUTS: Final = _counter(
    "inferwatch_tcp_timeouts_total", "TCP retransmission timeouts", "TcpExt TCPTimeouts in /proc/net/netstat"
)
SYN_RETRANSMITS: Final = _counter(
    "inferwatch_tcp_syn_retransmits_total",
    "SYN and SYN/ACK segments sent again",
    "TcpExt TCPSynRetrans in /proc/net/netstat",
)
UDP_BUFFER_ERRORS: Final = _counter(
    "inferwatch_udp_receive_buffer_errors_total",
    "IPv4 UDP datagrams dropped because the receive buffer was full",
    "Udp RcvbufErrors in /proc/net/snmp",
)
CONNECTIONS: Final = Family(
    "inferwatch_tcp_connections",
    "Number of TCP connections in a state, IPv4 and IPv6, from CurrEstab in /proc/net/snmp and tw and orphan in"
    " /proc/net/sockstat.",
    Kind.GAUGE,
    "",
    ("state",),
)
SOCKETS: Final = Family(
    "inferwatch_sockets",
    "Number of sockets in use by protocol, from inuse in /proc/net/sockstat and sockstat6.",
    Kind.GAUGE,
    "",
    ("protocol",),
)
TCP_MEMORY: Final = Family(
    "inferwatch_tcp_memory_bytes",
    "Memory of all TCP buffers of the host, from TCP mem in /proc/net/sockstat.",
    Kind.GAUGE,
    "bytes",
)
EPHEMERAL_PORTS: Final = Family(
    "inferwatch_tcp_ephemeral_ports",
    f"Number of ports that outgoing connections can have, from {PORT_RANGE}.",
    Kind.GAUGE,
)

SNMP_FIELDS: Final = (
    (SEGMENTS_SENT, "Tcp", "OutSegs", ()),
    (SEGMENTS_RECEIVED, "Tcp", "InSegs", ()),
    (RETRANSMITS, "Tcp", "RetransSegs", ()),
    (RESETS_SENT, "Tcp", "OutRsts", ()),
    (ESTABLISHED_RESETS, "Tcp", "EstabResets", ()),
    (OPENED, "Tcp", "ActiveOpens", ("active",)),
    (OPENED, "Tcp", "PassiveOpens", ("passive",)),
    (FAILURES, "Tcp", "AttemptFails", ()),
    (CONNECTIONS, "Tcp", "CurrEstab", ("established",)),
    (UDP_BUFFER_ERRORS, "Udp", "RcvbufErrors", ()),
    (LISTEN_OVERFLOWS, "TcpExt", "ListenOverflows", ()),
    (LISTEN_DROPS, "TcpExt", "ListenDrops", ()),
    (TIMEOUTS, "TcpExt", "TCPTimeouts", ()),
    (SYN_RETRANSMITS, "TcpExt", "TCPSynRetrans", ()),
)


class NetworkSampler:
    """Reads snmp, netstat, sockstat and sockstat6 of one network namespace, and its range of ephemeral ports."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._page_bytes = os.sysconf("SC_PAGE_SIZE")

    async def sample(self) -> Sequence[Sample]:
        """Read once."""
        return await self._context.run_blocking(self._read)

    async def close(self) -> None:
        """Hold nothing."""

    def _read(self) -> Sequence[Sample]:
        _check_visible(self._context.hostfs)
        parts = Parts()
        parts.add(partial(self._snmp, "snmp"))
        parts.add(partial(self._snmp, "netstat"))
        parts.add(partial(self._sockstat, "sockstat"))
        parts.add(partial(self._sockstat, "sockstat6"), optional=True)  # absent without IPv6
        parts.add(self._ports, optional=True)  # absent where a sandbox shows no /proc/sys/net
        return parts.result()

    def _snmp(self, file: str) -> Iterator[Sample]:
        snmp = parse_snmp(read_bytes(self._context.hostfs.proc("net", file)), f"/proc/net/{file}")
        for family, protocol, field, labels in SNMP_FIELDS:
            value = snmp.value(protocol, field)
            if value is not None:
                yield family(value, *labels)

    def _sockstat(self, file: str) -> Iterator[Sample]:
        sockstat = parse_sockstat(read_bytes(self._context.hostfs.proc("net", file)), f"/proc/net/{file}")
        for protocol in SOCKET_PROTOCOLS:
            value = sockstat.value(protocol, "inuse")
            if value is not None:
                yield SOCKETS(value, protocol.lower())
        yield from self._tcp(sockstat)

    def _tcp(self, sockstat: SockStat) -> Iterator[Sample]:
        """Make samples of what only sockstat's TCP line has."""
        for field, state in (("tw", "time_wait"), ("orphan", "orphan")):
            value = sockstat.value("TCP", field)
            if value is not None:
                yield CONNECTIONS(value, state)
        pages = sockstat.value("TCP", "mem")
        if pages is not None:
            yield TCP_MEMORY(pages * self._page_bytes)

    def _ports(self) -> Iterator[Sample]:
        hostfs = self._context.hostfs
        if not hostfs.is_own_proc and _other_namespace(hostfs):
            return  # below /proc/sys/net everybody sees its own network namespace, whichever procfs it looks into
        data = read_bytes(hostfs.proc("sys", "net", "ipv4", "ip_local_port_range"))
        fields = [unsigned(field, PORT_RANGE) for field in data.split()]
        if len(fields) != 2 or fields[0] > fields[1]:  # noqa: PLR2004 - first and last port
            raise ParseError(f"{PORT_RANGE}: {excerpt(data)} found, expected the first and the last port")
        yield EPHEMERAL_PORTS(fields[1] - fields[0] + 1)


def _check_visible(hostfs: HostFs) -> None:
    """Tell that the host's first process, whose network namespace is read through a foreign procfs, is hidden.

    Raises:
        SourceError: It is.
    """
    directory = hostfs.proc("net", "snmp").parent.parent
    hidden = directory.name == INIT and not directory.exists() and hostfs.proc("uptime").exists()
    if hidden:
        message = f"{directory}: hidden ({hostfs.procfs} is mounted with hidepid); run as root or with CAP_SYS_PTRACE"
        raise SourceError(message, reason="permission_denied")


def _other_namespace(hostfs: HostFs) -> bool:
    """Return whether the host's first process is known to be in another network namespace than the agent."""
    try:
        return hostfs.proc("1", "ns", "net").readlink() != Path("/proc/self/ns/net").readlink()
    except OSError:
        return False


SAMPLER: Final = SamplerSpec(
    name="network",
    dimension="network",
    summary="Whether TCP retransmits, refuses or runs out of ports, and how many sockets are in use.",
    source="/proc/net/{snmp,netstat,sockstat,sockstat6}, /proc/sys/net/ipv4/ip_local_port_range",
    families=(
        SEGMENTS_SENT,
        SEGMENTS_RECEIVED,
        RETRANSMITS,
        RESETS_SENT,
        ESTABLISHED_RESETS,
        OPENED,
        FAILURES,
        LISTEN_OVERFLOWS,
        LISTEN_DROPS,
        TIMEOUTS,
        SYN_RETRANSMITS,
        UDP_BUFFER_ERRORS,
        CONNECTIONS,
        SOCKETS,
        TCP_MEMORY,
        EPHEMERAL_PORTS,
    ),
    create=NetworkSampler,
)
