import gzip
import time
import tracemalloc
import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inferwatch.errors import SourceError
from inferwatch.sources.compression import decode

PAGE = b"foo_total 12345\n" * 1000


def refused(body: bytes, encoding: str, max_bytes: int = 1 << 20) -> SourceError:
    with pytest.raises(SourceError) as caught:
        decode(body, encoding, max_bytes)
    return caught.value


@pytest.mark.parametrize("encoding", ["", "identity", " Identity "])
def test_plain_body_is_itself(encoding: str) -> None:
    assert decode(PAGE, encoding) == PAGE


@pytest.mark.parametrize("encoding", ["gzip", "x-gzip", "GZIP", "gzip, identity"])
def test_gzip_is_undone(encoding: str) -> None:
    assert decode(gzip.compress(PAGE), encoding) == PAGE


def test_several_gzip_members_in_a_row_are_one_page() -> None:
    assert decode(gzip.compress(PAGE) + gzip.compress(b"bar 1\n"), "gzip") == PAGE + b"bar 1\n"


def test_deflate_is_undone_in_both_forms_that_servers_send() -> None:
    machine = zlib.compressobj(wbits=-zlib.MAX_WBITS)

    assert decode(zlib.compress(PAGE), "deflate") == PAGE
    assert decode(machine.compress(PAGE) + machine.flush(), "deflate") == PAGE


def test_gzip_that_nobody_declared_is_told_as_such() -> None:
    error = refused(gzip.compress(PAGE), "")

    assert error.reason == "encoding"
    assert "no Content-Encoding" in str(error)


@pytest.mark.parametrize("kept", [0, 5, 15, -1, -8])
def test_cut_gzip_is_incomplete(kept: int) -> None:
    assert refused(gzip.compress(PAGE)[:kept], "gzip").reason == "incomplete"


def test_something_behind_the_end_of_gzip_is_refused() -> None:
    assert refused(gzip.compress(PAGE) + b"foo 1\n", "gzip").reason == "encoding"


def test_damaged_gzip_is_refused() -> None:
    data = bytearray(gzip.compress(PAGE))
    data[-5] ^= 1  # in the checksum

    assert refused(bytes(data), "gzip").reason == "encoding"


def test_unknown_encoding_is_refused() -> None:
    assert refused(PAGE, "br").reason == "encoding"


def test_cap_is_exact() -> None:
    assert decode(gzip.compress(b"a" * 1000), "gzip", 1000) == b"a" * 1000
    assert refused(gzip.compress(b"a" * 1001), "gzip", 1000).reason == "too_large"


def test_gzip_bomb_stops_at_the_cap_in_memory_and_time() -> None:
    machine = zlib.compressobj(9, wbits=31)
    piece = machine.compress(b"\0" * (64 << 20)) + machine.flush(zlib.Z_FULL_FLUSH)
    bomb = piece + piece[10:] * 100  # 6 MB that would be 6 GB
    tracemalloc.start()
    began = time.monotonic()

    error = refused(bomb, "gzip", 4 << 20)

    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert error.reason == "too_large"
    assert peak < 16 << 20
    assert time.monotonic() - began < 5


@given(st.binary(max_size=200), st.sampled_from(["gzip", "deflate", "", "br", "gzip, gzip", ","]))
def test_no_bytes_raise_anything_but_source_error(body: bytes, encoding: str) -> None:
    try:
        assert isinstance(decode(body, encoding, 1000), bytes)
    except SourceError as error:
        assert error.reason in {"encoding", "incomplete", "too_large"}  # noqa: PT017 - an error is one of two good ends
