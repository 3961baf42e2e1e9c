import socket

import pytest

from inferwatch.errors import ParseError
from inferwatch.sources.procfs.sockstat import parse_sockstat
from support import LIVE

SOCKSTAT = b"sockets: used 11\nTCP: inuse 1 orphan 0 tw 4 alloc 1 mem 261\nUDP: inuse 2 mem 0\n"


def test_pairs_are_read_by_protocol() -> None:
    sockstat = parse_sockstat(SOCKSTAT)

    assert (sockstat.value("TCP", "tw"), sockstat.value("UDP", "inuse"), sockstat.value("sockets", "used")) == (
        4,
        2,
        11,
    )


def test_field_that_is_missing_is_none() -> None:
    sockstat = parse_sockstat(b"TCP: inuse 1 tw 4\nRAW:\n")

    assert sockstat.value("TCP", "mem") is None
    assert sockstat.value("RAW", "inuse") is None
    assert sockstat.value("UDP", "inuse") is None


@pytest.mark.parametrize("data", [b"", b"TCP inuse 1\n", b"TCP: inuse\n", b"TCP: inuse x\n", b"T\xff: inuse 1\n"])
def test_malformed_file_is_a_parse_error_that_names_it(data: bytes) -> None:
    with pytest.raises(ParseError, match=r"^/proc/net/sockstat6: .*expected"):
        parse_sockstat(data, "/proc/net/sockstat6")


def test_live_listening_socket_is_in_use() -> None:
    before = parse_sockstat(LIVE.proc("net", "sockstat").read_bytes()).value("RAW", "inuse")
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        during = parse_sockstat(LIVE.proc("net", "sockstat").read_bytes()).value("TCP", "inuse")

    assert before is not None
    assert during is not None
    assert during >= 1
