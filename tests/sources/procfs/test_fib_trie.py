import ipaddress

import pytest
from hypothesis import given

from inferwatch.errors import ParseError
from inferwatch.sources.procfs.fib_trie import parse_local_ipv4, parse_local_ipv6
from strategies import mutated

# recorded on this machine, shortened
TRIE = b"""Main:
  +-- 0.0.0.0/0 3 0 5
     |-- 0.0.0.0
        /0 universe UNICAST
     +-- 127.0.0.0/8 2 0 2
           |-- 127.0.0.1
              /32 host LOCAL
        |-- 127.255.255.255
           /32 link BROADCAST
     +-- 192.0.2.0/24 2 0 2
           |-- 192.0.2.0
              /24 link UNICAST
           |-- 192.0.2.2
              /32 host LOCAL
Local:
           |-- 192.0.2.2
              /32 host LOCAL
"""
INET6 = b"""00000000000000000000000000000001 01 80 10 80       lo
fd000000000000000000000000000002 04 40 00 82     eth0
fe8000000000000000fc00fffe000001 04 40 20 80     eth0
"""


def test_own_addresses_without_loopback_networks_and_routes() -> None:
    assert [str(address) for address in parse_local_ipv4(TRIE.splitlines())] == ["192.0.2.2"]


def test_ipv6_addresses_that_can_be_used_from_elsewhere_and_loopback() -> None:
    assert [str(address) for address in parse_local_ipv6(INET6)] == ["::1", "fd00::2"]


def test_ipv6_address_that_is_a_duplicate_or_not_yet_checked_is_left_out() -> None:
    assert parse_local_ipv6(INET6.replace(b"00 82", b"00 40").replace(b"10 80", b"10 08")) == ()


@pytest.mark.parametrize(
    "data", [b"00 01\n", b"zz 01 80 10 80 lo\n", b"00 01 80 10 80 lo\n", b"0" * 32 + b" 1 2 00 x lo\n"]
)
def test_other_ipv6_lines_are_parse_errors(data: bytes) -> None:
    with pytest.raises(ParseError):
        parse_local_ipv6(data)


def test_leaf_that_is_no_address_is_a_parse_error() -> None:
    with pytest.raises(ParseError, match="no IPv4 address"):
        parse_local_ipv4([b"|-- x", b"/32 host LOCAL"])


@given(mutated(TRIE), mutated(INET6))
def test_damage_is_a_parse_error_or_addresses(trie: bytes, inet6: bytes) -> None:
    try:
        found = [*parse_local_ipv4(trie.split(b"\n")), *parse_local_ipv6(inet6)]
    except ParseError:
        return

    assert all(isinstance(address, ipaddress.IPv4Address | ipaddress.IPv6Address) for address in found)
