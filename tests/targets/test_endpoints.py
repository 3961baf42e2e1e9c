import ipaddress
from collections.abc import Sequence

import pytest

from inferwatch.sources.procfs.net_tcp import Address, Listener
from inferwatch.targets.endpoints import ENDPOINT_LIMIT, endpoint, select
from inferwatch.targets.model import Endpoint, Unreachable

HOST = ("192.0.2.2", "::1", "fd00::2")
POD = ("10.1.2.3", "::1")


def made(address: str, *, same: bool | None, own: Sequence[str] = HOST) -> Endpoint:
    addresses: list[Address] = [ipaddress.ip_address(text) for text in own]
    listener = Listener(ipaddress.ip_address(address), 8000, 0, 1)
    return endpoint(listener, same_namespace=same, addresses=lambda: addresses, front=True)


@pytest.mark.parametrize(
    ("address", "own", "url"),
    [
        ("0.0.0.0", HOST, "http://127.0.0.1:8000"),
        ("127.0.0.1", HOST, "http://127.0.0.1:8000"),
        ("192.0.2.2", HOST, "http://192.0.2.2:8000"),
        ("::", HOST, "http://[::1]:8000"),
        ("::", ("192.0.2.2",), "http://127.0.0.1:8000"),
        ("::1", HOST, "http://[::1]:8000"),
        ("fd00::2", HOST, "http://[fd00::2]:8000"),
    ],
)
def test_in_the_agents_namespace(address: str, own: Sequence[str], url: str) -> None:
    assert made(address, same=True, own=own).url == url


@pytest.mark.parametrize(
    ("address", "own", "url"),
    [
        ("0.0.0.0", POD, "http://10.1.2.3:8000"),
        ("::", POD, "http://10.1.2.3:8000"),
        ("::", (*POD, "fd00::5"), "http://[fd00::5]:8000"),
        ("10.1.2.3", POD, "http://10.1.2.3:8000"),
    ],
)
def test_in_another_namespace_at_its_own_address(address: str, own: Sequence[str], url: str) -> None:
    assert made(address, same=False, own=own).url == url


@pytest.mark.parametrize(
    ("address", "same", "own", "word", "sentence"),
    [
        ("127.0.0.1", False, POD, Unreachable.LOOPBACK, "listens only on 127.0.0.1 of another network namespace"),
        ("::1", False, POD, Unreachable.LOOPBACK, "listens only on ::1 of another network namespace"),
        ("0.0.0.0", False, ("::1",), Unreachable.NO_ADDRESS, "has no address but loopback"),
        ("0.0.0.0", None, HOST, Unreachable.UNKNOWN, "CAP_SYS_PTRACE"),
        ("fe80::1", True, HOST, Unreachable.LINK_LOCAL, "link-local address fe80::1"),
    ],
)
def test_why_it_can_not_be_reached(
    *, address: str, same: bool | None, own: Sequence[str], word: Unreachable, sentence: str
) -> None:
    found = made(address, same=same, own=own)

    assert (found.url, found.unreachable) == ("", word)
    assert sentence in found.unreachable_reason


def test_one_endpoint_a_port_the_expected_first_and_ipv4_before_ipv6() -> None:
    found = select(
        [
            Endpoint("http://127.0.0.1:29500", 29500),
            Endpoint("http://[::1]:8002", 8002, front=True),
            Endpoint("http://127.0.0.1:8002", 8002, front=True),
            Endpoint("http://127.0.0.1:8001", 8001, front=True),
        ],
        (8002,),
    )

    assert [(item.port, "[" in item.url) for item in found] == [(8002, False), (8001, False), (29500, False)]


def test_a_port_that_can_be_reached_one_way_is_reachable() -> None:
    found = select([Endpoint("", 80, "why", Unreachable.LOOPBACK), Endpoint("http://10.1.2.3:80", 80)], ())

    assert [item.url for item in found] == ["http://10.1.2.3:80"]


def test_their_number_is_limited() -> None:
    assert len(select([Endpoint("", port) for port in range(1, 100)], ())) == ENDPOINT_LIMIT
