"""One metrics page over HTTP: a total time limit, size caps, proof of completeness, no other host, no surprises.

The whole of a fetch is under one limit: name resolution, connect, TLS, redirects, and a body that trickles. Names are
resolved in the instance's own thread, because the event loop's default executor is shared: a few hung resolvers would
fill it and stop everybody's. Connections are not kept: llama.cpp drops kept-alive ones without notice, and one
handshake per scrape is cheap.

Bodies are asked for uncompressed, since compressing costs the engine more than the network between two processes saves;
one that comes compressed all the same is undone by `compression.decode` in the thread that parses.
"""

import asyncio
import socket
import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from urllib.parse import urljoin, urlsplit

import aiohttp

from inferwatch import __version__
from inferwatch.config_engines import TlsConfig
from inferwatch.errors import InferwatchError, SourceError
from inferwatch.sources.hostfs import read_bytes
from inferwatch.sources.resolver import GetAddrInfo, RunBlocking, ThreadResolver

MAX_BYTES: Final = 64 << 20
MAX_COMPRESSED_BYTES: Final = 16 << 20
MAX_TOKEN_BYTES: Final = 64 << 10
MAX_REDIRECTS: Final = 3
REDIRECTS: Final = frozenset({301, 302, 303, 307, 308})
OK: Final = 200
UNSHOWN: Final = "the engine's address"  # of one that is none: what is in it can't be told from a secret


@dataclass(frozen=True, slots=True)
class HttpPage:
    """An answer.

    Args:
        status: HTTP status; the body is read only when it is 200.
        content_type: As sent.
        content_encoding: As sent; see `compression.decode`.
        body: As sent, compressed perhaps.
        length_known: Whether Content-Length or chunks proved that the body is complete; when not, the connection's end
            is all there is, and the page itself has to show that nothing is missing.
    """

    status: int
    content_type: str = ""
    content_encoding: str = ""
    body: bytes = b""
    length_known: bool = True


class PageClient:
    """Fetches one page again and again.

    Args:
        url: Address of the page.
        timeout_seconds: Limit of a whole fetch.
        run_blocking: Runs name resolution and file reads in the instance's thread.
        bearer_token_file: File with a token that is sent to the configured host only, over plain http too: read again
            at each fetch.
        tls: How the certificate is judged. The files are read at the first fetch, and again after a TLS failure.
        max_bytes: Cap of a body that is not compressed.
        max_compressed_bytes: Cap of one that is.
        getaddrinfo: Resolves names; tests hand in one that hangs.

    Attributes:
        shown: The address for messages, without what may be a secret: query, user name and password.
    """

    def __init__(  # noqa: PLR0913 - the options of one engine, all of them named by the caller
        self,
        url: str,
        *,
        timeout_seconds: float,
        run_blocking: RunBlocking,
        bearer_token_file: Path | None = None,
        tls: TlsConfig | None = None,
        max_bytes: int = MAX_BYTES,
        max_compressed_bytes: int = MAX_COMPRESSED_BYTES,
        getaddrinfo: GetAddrInfo = socket.getaddrinfo,
    ) -> None:
        self._url = url
        self.shown = shown_address(url)
        self._timeout_seconds = timeout_seconds
        self._run_blocking = run_blocking
        self._token_file = bearer_token_file
        self._tls = tls or TlsConfig()
        self._max_bytes = max_bytes
        self._max_compressed_bytes = max_compressed_bytes
        self._resolver = ThreadResolver(run_blocking, getaddrinfo)
        self._session: aiohttp.ClientSession | None = None
        self._doing = ""

    async def fetch(self, accept: str) -> HttpPage:
        """Fetch the page.

        Raises:
            SourceError: reason `timeout`, `dns` (the host has no address, or can't be a host), `connect`, `tls`,
                `http_status` (no HTTP), `incomplete`, `too_large`, `redirect` or `token`.
        """
        try:
            async with asyncio.timeout(self._timeout_seconds):
                with _as_source_errors(self.shown):
                    return await self._follow(accept)
        except TimeoutError as error:
            doing = "resolving the name" if self._resolver.busy else self._doing
            limit = f"no complete answer within {self._timeout_seconds:g} s"
            raise SourceError(f"{self.shown}: {limit}, gave up while {doing}", reason="timeout") from error
        except SourceError as error:
            if error.reason == "tls":
                await self.close()
            raise

    async def close(self) -> None:
        """Close what is open; a later fetch opens it again."""
        session, self._session = self._session, None
        if session is not None:
            await session.close()

    async def _follow(self, accept: str) -> HttpPage:
        self._resolver.busy = False
        headers = {"Accept": accept, "Accept-Encoding": "identity", "Connection": "close"}
        if self._token_file is not None:
            self._doing = f"reading bearer_token_file {self._token_file}"
            headers["Authorization"] = f"Bearer {await self._run_blocking(_read_token, self._token_file)}"
        if self._session is None:
            self._session = await self._open()
        url = self._url
        for _ in range(MAX_REDIRECTS + 1):
            answer = await self._get(self._session, url, headers)
            if isinstance(answer, HttpPage):
                return answer
            url = answer
        raise SourceError(f"{self.shown}: more than {MAX_REDIRECTS} redirects", reason="redirect")

    async def _open(self) -> aiohttp.ClientSession:
        context: ssl.SSLContext | bool = True
        if self._url.startswith("https:"):
            self._doing = "reading the files of tls"
            context = await self._run_blocking(_tls_context, self._tls)
        connector = aiohttp.TCPConnector(
            resolver=self._resolver, use_dns_cache=False, force_close=True, limit=0, ssl=context
        )
        return aiohttp.ClientSession(
            connector=connector,
            timeout=aiohttp.ClientTimeout(total=None, sock_connect=None),  # `fetch` limits the whole
            auto_decompress=False,
            cookie_jar=aiohttp.DummyCookieJar(),
            headers={"User-Agent": f"inferwatch/{__version__}"},
            trust_env=False,
        )

    async def _get(self, session: aiohttp.ClientSession, url: str, headers: dict[str, str]) -> HttpPage | str:
        """Return the page, or where it says that the page is."""
        self._doing = "waiting for the answer's head"
        name = self._tls.server_name
        async with session.get(url, headers=headers, allow_redirects=False, server_hostname=name) as response:
            if response.status in REDIRECTS and "Location" in response.headers:
                return self._target(url, response.headers["Location"])
            kind, encoding = (response.headers.get(name, "") for name in ("Content-Type", "Content-Encoding"))
            if response.status != OK:
                return HttpPage(response.status, kind)
            self._doing = "reading the body"
            body = await self._read(response, self._max_compressed_bytes if encoding else self._max_bytes)
            chunked = "chunked" in response.headers.get("Transfer-Encoding", "").lower()
            known = chunked or response.content_length is not None
            return HttpPage(response.status, kind, encoding, body, length_known=known)

    async def _read(self, response: aiohttp.ClientResponse, limit: int) -> bytes:
        length = response.content_length
        body = bytearray()
        if length is None or length <= limit:
            async for chunk in response.content.iter_any():
                body += chunk
                if len(body) > limit:
                    break
        if len(body) > limit or (length is not None and length > limit):
            raise SourceError(f"{self.shown}: the page is larger than {limit} bytes, refused", reason="too_large")
        if length is not None and len(body) != length:
            raise SourceError(f"{self.shown}: {len(body)} of {length} bytes arrived", reason="incomplete")
        return bytes(body)

    def _target(self, url: str, location: str) -> str:
        try:
            target = urljoin(url, location)
            origin = _origin(target)
        except ValueError:  # which may quote the location, and that repeats the query
            raise SourceError(f"{self.shown}: redirected to what is no address", reason="redirect") from None
        if origin != _origin(self._url) or "@" in urlsplit(target).netloc:
            where = f"{origin[0]}://{origin[1]}:{origin[2]}"
            message = f"{self.shown}: redirect to other host refused ({where}); set the url to where the page is"
            raise SourceError(message, reason="redirect")
        return target


def shown_address(url: str) -> str:
    """Return an address for people, without what may be a secret: query, user name and password."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return UNSHOWN
    host = parts.netloc.rpartition("@")[2]
    return parts._replace(netloc=host, query="", fragment="").geturl() if host else UNSHOWN


def _origin(url: str) -> tuple[str, str | None, int]:
    parts = urlsplit(url)
    return parts.scheme, parts.hostname, parts.port or (443 if parts.scheme == "https" else 80)


@contextmanager
def _as_source_errors(shown: str) -> Iterator[None]:
    """Say aiohttp's errors in words of the closed set."""
    try:
        yield
    except aiohttp.ClientConnectorDNSError as error:
        raise SourceError(f"{shown}: the name can't be resolved: {error.os_error}", reason="dns") from error
    except (aiohttp.ClientSSLError, aiohttp.ServerFingerprintMismatch, ssl.SSLError) as error:
        raise SourceError(f"{shown}: TLS failed: {error}", reason="tls") from error
    except (aiohttp.ClientPayloadError, aiohttp.ServerDisconnectedError) as error:
        raise SourceError(f"{shown}: the connection ended before the answer did", reason="incomplete") from error
    except aiohttp.ClientResponseError as error:
        raise SourceError(f"{shown}: the answer is not HTTP", reason="http_status") from error
    except (aiohttp.InvalidURL, ValueError, IndexError):
        # UnicodeError of a host that idna can't write, yarl's IndexError of `http://[]@`; some quote the whole address
        message = f"{shown}: the host (or tls.server_name) can't be one; http://host:port/metrics expected"
        raise SourceError(message, reason="dns") from None
    except (aiohttp.ClientError, OSError) as error:
        known = error.os_error if isinstance(error, aiohttp.ClientConnectorError) else error
        cause = known if isinstance(known, OSError) else type(known).__name__  # aiohttp's words may hold the address
        raise SourceError(f"{shown}: can't connect: {cause}", reason="connect") from error


def _read_token(path: Path) -> str:
    """Read a bearer token; no message ever holds it."""
    try:
        token = read_bytes(path, MAX_TOKEN_BYTES).decode("ascii", "replace").strip()
    except InferwatchError as error:
        raise SourceError(f"bearer_token_file can't be read: {error}", reason="token") from error
    if not token or not token.isascii() or not token.isprintable() or " " in token:
        raise SourceError(
            f"bearer_token_file {path} holds no token: one line of plain characters expected", reason="token"
        )
    return token


def _tls_context(tls: TlsConfig) -> ssl.SSLContext:
    try:
        context = ssl.create_default_context(cafile=tls.ca_file)
        if tls.cert_file is not None:
            context.load_cert_chain(tls.cert_file, tls.key_file)
    except (OSError, ValueError) as error:
        raise SourceError(f"tls: ca_file, cert_file or key_file can't be used: {error}", reason="tls") from error
    if not tls.verify:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    return context
