import socket

import pytest

from inferwatch.errors import ParseError
from inferwatch.sources.procfs.snmp import parse_snmp
from support import HOSTS, LIVE

TCP = b"Tcp: RtoAlgorithm MaxConn OutSegs RetransSegs\nTcp: 1 -1 37699 12\n"


def test_names_and_values_are_paired() -> None:
    snmp = parse_snmp(TCP + b"Udp: RcvbufErrors\nUdp: 3\n")

    assert (snmp.value("Tcp", "OutSegs"), snmp.value("Tcp", "RetransSegs"), snmp.value("Udp", "RcvbufErrors")) == (
        37699,
        12,
        3,
    )


def test_negative_value_is_read() -> None:
    assert parse_snmp(TCP).value("Tcp", "MaxConn") == -1


def test_field_that_the_kernel_lacks_is_none() -> None:
    snmp = parse_snmp(TCP)

    assert snmp.value("Tcp", "InCsumErrors") is None
    assert snmp.value("Udp", "RcvbufErrors") is None


def test_protocol_with_several_pairs_keeps_them_all() -> None:
    # icmpmsg_put() starts a new pair after sixteen types.
    snmp = parse_snmp(b"IcmpMsg: InType0\nIcmpMsg: 1\nIcmpMsg: OutType8\nIcmpMsg: 2\n")

    assert snmp.protocols == {"IcmpMsg": {"InType0": 1, "OutType8": 2}}


def test_netstat_has_the_same_form() -> None:
    data = (HOSTS / "debian12-2cpu" / "proc" / "1" / "net" / "netstat").read_bytes()
    netstat = parse_snmp(data, "/proc/net/netstat")

    assert sorted(netstat.protocols) == ["IpExt", "MPTcpExt", "TcpExt"]
    assert netstat.value("TcpExt", "ListenOverflows") == 0


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"Tcp: A B\n", r"1 lines, expected pairs"),
        (b"Tcp: A B\nTcp: 1\n", r"2 names of b'Tcp' but 1 values of b'Tcp'"),
        (b"Tcp: A\nUdp: 1\n", r"1 names of b'Tcp' but 1 values of b'Udp'"),
        (b"Tcp: A\nTcp: x\n", r"Tcp A is b'x', expected a number"),
        (b": A\n: 1\n", r"protocol in .* is b'', expected a word"),
    ],
)
def test_malformed_file_is_a_parse_error_that_names_it(data: bytes, message: str) -> None:
    with pytest.raises(ParseError, match=rf"^/proc/net/netstat: {message}"):
        parse_snmp(data, "/proc/net/netstat")


def test_live_udp_datagrams_are_counted() -> None:
    # An independent quantity: datagrams that this test sends to itself.

    with (
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as receiver,
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender,
    ):
        receiver.bind(("127.0.0.1", 0))
        before = parse_snmp(LIVE.proc("net", "snmp").read_bytes()).value("Udp", "InDatagrams")
        for _ in range(5):
            sender.sendto(b"x", receiver.getsockname())
            receiver.recv(1)
        after = parse_snmp(LIVE.proc("net", "snmp").read_bytes()).value("Udp", "InDatagrams")

    assert before is not None
    assert after is not None
    assert after - before >= 5
