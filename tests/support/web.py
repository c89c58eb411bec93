"""Webs that consist of what a test says, down to the bytes, and calls of the MCP server over the recorded one."""

from __future__ import annotations

import asyncio
import json
import ssl
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import date
from ipaddress import ip_address
from typing import Any

import httpcore
import httpx
from mcp import ClientSession
from mcp.client.streamable_http import streamable_http_client
from mcp.types import CallToolResult

from fixtures.web import Web
from fixtures.web.network import RECORDED_POLICY
from graphs.research_report.web.addresses import Address, AddressPolicy
from graphs.research_report.web.connecting import Deadline
from graphs.research_report.web.downloading import Answer, Network
from graphs.research_report.web.fetching import Fetcher
from graphs.research_report.web.pages import Page

TODAY = date(2026, 11, 30)
PUBLIC = "203.0.113.1"
TEXT = "On 1 January 2026 there were 41,730 public charging points in Veldmark."
HTML = {"content-type": "text/html; charset=utf-8"}


def html(body: str = f"<p>{TEXT}</p>", head: str = "<title>A page</title>") -> bytes:
    """A page with a head and a body."""
    return f"<!doctype html><html><head>{head}</head><body>{body}</body></html>".encode()


@dataclass
class Answers:
    """A web of answers by URL, in the place of a network; what is not there is not found."""

    by_url: Mapping[str, Answer]
    asked: list[str] = field(default_factory=list)

    def __call__(self, url: str, deadline: Deadline, max_bytes: int) -> Answer:
        self.asked.append(url)
        return self.by_url.get(url, Answer(404, {}, b""))


def page(body: bytes | None = None, status: int = 200, **headers: str) -> Answer:
    """An answer with a page, HTML unless said otherwise."""
    named = {name.replace("_", "-"): text for name, text in headers.items()}
    return Answer(status, {**HTML, **named}, html() if body is None else body)


def moved(target: str, status: int = 302) -> Answer:
    """An answer that redirects."""
    return Answer(status, {"location": target}, b"")


def fetched(url: str, by_url: Mapping[str, Answer], **options: Any) -> Page:
    """Fetches a URL from a web of answers."""
    return Fetcher(Answers(by_url), today=lambda: TODAY, **options).fetch(url)


def read(body: bytes, content_type: str = HTML["content-type"]) -> Page:
    """Reads one body as a page."""
    return fetched("https://a.example/", {"https://a.example/": page(body, content_type=content_type)})


class Wire(httpcore.NetworkBackend):
    """Answers bytes on every connection, and keeps which addresses were connected to and what they were sent.

    Args:
        answer: Returns what an address sends: pieces, each read by itself.
        refusing: Addresses that nobody answers at.
    """

    def __init__(self, answer: Callable[[str], Iterable[bytes]], refusing: frozenset[str] = frozenset()) -> None:
        self._answer = answer
        self._refusing = refusing
        self.connected: list[tuple[str, int]] = []
        self.sent: list[bytes] = []
        self.server_names: list[str | None] = []

    def connect_tcp(self, host: str, port: int, *_: Any, **__: Any) -> httpcore.NetworkStream:
        if host in self._refusing:
            raise httpcore.ConnectError("refused")
        self.connected.append((host, port))
        return _Stream(self, iter(self._answer(host)))


class _Stream(httpcore.NetworkStream):
    def __init__(self, wire: Wire, pieces: Iterator[bytes]) -> None:
        self._wire = wire
        self._pieces = pieces

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        return next(self._pieces, b"")

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        self._wire.sent.append(buffer)

    def close(self) -> None:
        pass

    def start_tls(
        self, ssl_context: ssl.SSLContext, server_hostname: str | None = None, timeout: float | None = None
    ) -> httpcore.NetworkStream:
        self._wire.server_names.append(server_hostname)
        return self

    def get_extra_info(self, info: str) -> Any:
        return None


def http(body: bytes, status: str = "200 OK", **headers: str) -> list[bytes]:
    """What a server sends: head and body."""
    lines = {"content-type": "text/html", **{name.replace("_", "-"): text for name, text in headers.items()}}
    head = "".join(f"{name}: {text}\r\n" for name, text in lines.items())
    return [f"HTTP/1.1 {status}\r\n{head}\r\n".encode(), body]


NOT_FOUND = http(b"", "404 Not Found", content_length="0")


def wired(
    wire: Wire,
    names: Mapping[str, Sequence[str]] | Callable[[str], Sequence[str]],
    *,
    policy: AddressPolicy = RECORDED_POLICY,
    **options: Any,
) -> Fetcher:
    """A fetcher over a wire.

    Args:
        wire: What every connection answers.
        names: The addresses of each name; others have none.
        policy: Production's by default, but that documentation addresses stand for public ones.
        options: The fetcher's.
    """

    def resolve(host: str) -> list[Address]:
        known = names(host) if callable(names) else names.get(host, ())
        return [ip_address(address) for address in known]

    network = Network(
        "test/1.0",
        policy=policy,
        resolver=resolve,
        connector=wire,
        tls=lambda: ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT),
    )
    return Fetcher(network, today=lambda: TODAY, **options)


@asynccontextmanager
async def session(web: Web, token: str | None = None) -> Any:
    """A session with the MCP server, as a tenant."""
    headers = {"Authorization": f"Bearer {web.token if token is None else token}"}
    async with (
        httpx.AsyncClient(headers=headers, trust_env=False, verify=False, timeout=20) as http_client,
        streamable_http_client(web.url, http_client=http_client) as (read, write, *_),
        ClientSession(read, write) as opened,
    ):
        await opened.initialize()
        yield opened


def ask(web: Web, *calls: tuple[str, Mapping[str, Any]], token: str | None = None) -> list[Any]:
    """Makes calls in one session.

    Returns:
        The document that each answered, or its error as text.
    """

    async def asked() -> list[Any]:
        async with session(web, token) as opened:
            return [_document(await opened.call_tool(name, dict(args))) for name, args in calls]

    return asyncio.run(asked())


def fetch(web: Web, url: str, **options: Any) -> dict[str, Any]:
    """Calls `fetch_page` once."""
    return dict(ask(web, ("fetch_page", {"url": url}), **options)[0])


def search(web: Web, query: str, limit: int = 5, **options: Any) -> list[dict[str, Any]]:
    """Calls `web_search` once, and returns its results."""
    return list(ask(web, ("web_search", {"query": query, "limit": limit}), **options)[0]["results"])


def _document(result: CallToolResult) -> Any:
    text = "".join(getattr(block, "text", "") for block in result.content)
    return text if result.isError else json.loads(text)
