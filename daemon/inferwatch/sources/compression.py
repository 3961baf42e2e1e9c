"""What Content-Encoding did to a body, undone within a limit."""

import zlib
from typing import Final

from inferwatch.errors import SourceError

MAX_BYTES: Final = 64 << 20
MAX_MEMBERS: Final = 1000
GZIP_MAGIC: Final = b"\x1f\x8b"
GZIP_WINDOW: Final = 16 + zlib.MAX_WBITS  # zlib.h, inflateInit2: 16 more means a gzip header


def decode(body: bytes, encoding: str, max_bytes: int = MAX_BYTES) -> bytes:
    """Undo a Content-Encoding; memory stays below `max_bytes` whatever the body would grow to.

    Raises:
        SourceError: reason `encoding` (unknown, damaged, or something behind the end), `incomplete` or `too_large`.
    """
    words = [word for part in encoding.split(",") if (word := part.strip().lower()) not in {"", "identity"}]
    if not words:
        if body.startswith(GZIP_MAGIC):
            raise SourceError("the body is gzip, but no Content-Encoding says so", reason="encoding")
        return body
    if words in (["gzip"], ["x-gzip"]):
        return _inflate(body, GZIP_WINDOW, max_bytes)
    if words == ["deflate"]:  # zlib's form by the standard, raw by some servers
        wrapped = len(body) > 1 and body[0] & 0x0F == zlib.DEFLATED and (body[0] << 8 | body[1]) % 31 == 0
        return _inflate(body, zlib.MAX_WBITS if wrapped else -zlib.MAX_WBITS, max_bytes)
    raise SourceError(f"Content-Encoding {encoding[:40]!r} is not known, gzip or deflate expected", reason="encoding")


def _inflate(data: bytes, window: int, max_bytes: int) -> bytes:
    pieces: list[bytes] = []
    room = max_bytes
    for _ in range(MAX_MEMBERS):
        machine = zlib.decompressobj(window)
        try:
            piece = machine.decompress(data, room + 1)
        except zlib.error as error:
            raise SourceError(f"the compressed body is damaged: {error}", reason="encoding") from error
        room -= len(piece)
        if room < 0:
            raise SourceError(
                f"the page is larger than {max_bytes} bytes once decompressed, refused", reason="too_large"
            )
        if not machine.eof:
            raise SourceError("the compressed body ends too early", reason="incomplete")
        pieces.append(piece)
        data = machine.unused_data
        if not data:
            return b"".join(pieces)
        if window != GZIP_WINDOW or not data.startswith(GZIP_MAGIC):
            break
    raise SourceError("there is something behind the end of the compressed body", reason="encoding")
