import socket
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given

from inferwatch.errors import ParseError
from inferwatch.sources.procfs.net_tcp import MAX_OTHER_ROWS, parse_listeners
from strategies import mutated
from support_procfs import HEAD, tcp_row

MAPPED = "0000000000000000FFFF00000100007F"
ROWS = (HEAD + tcp_row("0100007F", 8000, 77, uid=1000) + tcp_row("00000000", 22, 78)).encode()


def lines(text: str) -> list[bytes]:
    return text.encode().splitlines(keepends=True)


def test_listening_sockets_with_owner_and_inode() -> None:
    first, second = parse_listeners(ROWS.splitlines())

    assert (str(first.address), first.port, first.uid, first.inode) == ("127.0.0.1", 8000, 1000, 77)
    assert second.address.is_unspecified


def test_ipv4_in_ipv6_clothes_is_ipv4() -> None:
    found = [str(row.address) for row in parse_listeners(lines(HEAD + tcp_row(MAPPED, 1, 2) + tcp_row("0" * 32, 1, 3)))]

    assert found == ["127.0.0.1", "::"]


def test_sockets_in_other_states_are_left_out() -> None:
    assert not list(parse_listeners(lines(HEAD + tcp_row("0100007F", 8000, 77, state="01"))))


def test_a_table_of_a_million_rows_is_read_only_so_far() -> None:
    read = 0

    def endless() -> Iterator[bytes]:
        nonlocal read
        yield HEAD.encode()
        yield tcp_row("0100007F", 8000, 77).encode()
        while True:
            read += 1
            yield tcp_row("0100007F", 8000, 0, state="01").encode()

    assert [row.inode for row in parse_listeners(endless())] == [77]
    assert read == MAX_OTHER_ROWS + 1


@pytest.mark.parametrize(("family", "host", "table"), [(2, "127.0.0.1", "tcp"), (10, "::1", "tcp6")])
def test_a_real_socket_is_found_by_its_inode(family: int, host: str, table: str) -> None:
    with socket.socket(family) as server:
        server.bind((host, 0))
        server.listen()
        inode = Path(f"/proc/self/fd/{server.fileno()}").readlink().name
        with Path(f"/proc/self/net/{table}").open("rb") as rows:
            found = {row.inode: row for row in parse_listeners(rows)}

        row = found[int(inode[len("socket:[") : -1])]
        assert (str(row.address), row.port) == (host, server.getsockname()[1])


@pytest.mark.parametrize("row", ["0: 00 00\n", tcp_row("0100007G", 1, 2), tcp_row("00", 1, 2)])
def test_anything_else_is_a_parse_error(row: str) -> None:
    with pytest.raises(ParseError):
        list(parse_listeners(lines(HEAD + row)))


@given(mutated(ROWS))
def test_damage_is_a_parse_error_or_plausible_sockets(data: bytes) -> None:
    try:
        found = list(parse_listeners(data.split(b"\n")))
    except ParseError:
        return

    assert all(0 <= row.port <= 65_535 for row in found)
