"""One request: bounded in time and size, before and after decompression."""

from __future__ import annotations

import ssl
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Protocol
from urllib.parse import urlsplit

import httpcore

from graphs.research_report.web.addresses import PUBLIC_ONLY, AddressPolicy
from graphs.research_report.web.connecting import Deadline, GuardedBackend, Resolver, system_resolver
from graphs.research_report.web.pages import Unreadable, Why

# Gzip and zlib wrappers are told apart by zlib itself; some servers send the bare stream and call it deflate.
_WRAPPED, _BARE = 47, -15


@dataclass(frozen=True, slots=True)
class Answer:
    """What a server answered.

    Attributes:
        status: The HTTP status.
        headers: By lower-case name; of a repeated one the first.
        body: Decompressed; empty for a redirect and for an error.
    """

    status: int
    headers: dict[str, str]
    body: bytes


class Download(Protocol):
    """Asks for a URL, once: redirects are the caller's business."""

    def __call__(self, url: str, deadline: Deadline, max_bytes: int) -> Answer:
        """Returns the answer.

        Raises:
            Unreadable: nobody may or can be asked, or the answer is too large, too slow or damaged.
        """
        ...


@dataclass(frozen=True, slots=True)
class Network:
    """How the web is reached.

    Attributes:
        user_agent: Sent with each request.
        policy: Which addresses may be asked.
        resolver: Returns the addresses of a name.
        connector: Opens a connection to an address.
        tls: Makes the TLS context.
    """

    user_agent: str
    policy: AddressPolicy = PUBLIC_ONLY
    resolver: Resolver = system_resolver
    connector: httpcore.NetworkBackend = field(default_factory=httpcore.SyncBackend)
    tls: Callable[[], ssl.SSLContext] = ssl.create_default_context

    def __call__(self, url: str, deadline: Deadline, max_bytes: int) -> Answer:
        """Asks for a URL over a connection of its own.

        No proxy is taken from the environment: it would resolve names by itself.

        Raises:
            Unreadable: nobody may or can be asked, or the answer is too large, too slow or damaged.
        """
        backend = GuardedBackend(self.policy, self.resolver, self.connector, deadline)
        is_secure = url.startswith("https:")
        try:
            with (
                httpcore.ConnectionPool(
                    ssl_context=self.tls() if is_secure else None,
                    max_connections=1,
                    max_keepalive_connections=0,
                    network_backend=backend,
                ) as pool,
                pool.stream("GET", url, headers=self._headers(url)) as response,
            ):
                headers = _first_of_each(response.headers)
                is_read = 200 <= response.status < 300
                body = _bounded(response.iter_stream(), headers, max_bytes) if is_read else b""
                return Answer(response.status, headers, body)
        except httpcore.TimeoutException as error:
            raise Unreadable(Why.TIMEOUT, "the page took too long") from error
        except (httpcore.NetworkError, httpcore.ProtocolError, ssl.SSLError, OSError) as error:
            raise Unreadable(Why.UNAVAILABLE, f"{type(error).__name__}: {error}") from error

    def _headers(self, url: str) -> dict[bytes | str, bytes | str]:
        return {
            "Host": urlsplit(url).netloc,
            "User-Agent": self.user_agent,
            "Accept": "text/html, application/xhtml+xml, application/pdf, text/plain;q=0.8, text/csv;q=0.8",
            "Accept-Encoding": "gzip, deflate",
            "Connection": "close",
        }


def _first_of_each(headers: list[tuple[bytes, bytes]]) -> dict[str, str]:
    return {name.decode("ascii").lower(): _decoded(value) for name, value in reversed(headers)}


def _decoded(value: bytes) -> str:
    """Decodes a header: UTF-8, as servers send it, or what the standard says."""
    try:
        return value.decode()
    except UnicodeDecodeError:
        return value.decode("latin-1")


def _bounded(chunks: Iterator[bytes], headers: dict[str, str], max_bytes: int) -> bytes:
    declared = headers.get("content-length", "")
    if declared.isdigit() and int(declared) > max_bytes:
        raise _too_large(max_bytes)
    encoding = headers.get("content-encoding", "identity").strip().lower()
    if encoding in ("identity", ""):
        return _joined(chunks, max_bytes)
    if encoding in ("gzip", "x-gzip", "deflate"):
        return _joined(_inflated(_capped(chunks, max_bytes), max_bytes), max_bytes)
    raise Unreadable(Why.TYPE, f"its encoding is {encoding}")


def _joined(chunks: Iterator[bytes], max_bytes: int) -> bytes:
    return b"".join(_capped(chunks, max_bytes))


def _capped(chunks: Iterator[bytes], max_bytes: int) -> Iterator[bytes]:
    n_bytes = 0
    for chunk in chunks:
        n_bytes += len(chunk)
        if n_bytes > max_bytes:
            raise _too_large(max_bytes)
        yield chunk


def _inflated(chunks: Iterator[bytes], max_bytes: int) -> Iterator[bytes]:
    """Inflates at most one byte more than may be taken, by which the caller sees that it is too much."""
    inflate, is_first, n_left = zlib.decompressobj(_WRAPPED), True, max_bytes + 1
    for chunk in chunks:
        try:
            try:
                part = inflate.decompress(chunk, n_left)
            except zlib.error:
                if not is_first:
                    raise
                inflate = zlib.decompressobj(_BARE)
                part = inflate.decompress(chunk, n_left)
        except zlib.error as error:
            raise Unreadable(Why.DAMAGED, "it cannot be decompressed") from error
        is_first = False
        n_left -= len(part)
        yield part
    if not is_first and not inflate.eof:
        raise Unreadable(Why.DAMAGED, "it ends in the middle")


def _too_large(max_bytes: int) -> Unreadable:
    return Unreadable(Why.SIZE, f"it is larger than {max_bytes} bytes")
