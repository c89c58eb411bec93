"""How this machine itself reaches a host: directly, or through a proxy that its environment names."""

from __future__ import annotations

import asyncio
from base64 import b64encode
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Literal
from urllib.parse import unquote, urlsplit

from agentctl.errors import ConfigError, UsageError
from agentctl.sandbox.isolation.hosts import HostPort

Scheme = Literal["http", "https"]
Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]

_CONNECT_S: Final = 30.0
_MAX_HEAD_BYTES: Final = 64 * 1024
_THIS_MACHINE: Final = frozenset({"localhost", "127.0.0.1", "::1"})


@dataclass(frozen=True, slots=True)
class OwnProxy:
    """A proxy of this machine. `authorization` is the value of Proxy-Authorization, or ''."""

    place: HostPort
    authorization: str = ""


def own_proxy(place: HostPort, scheme: Scheme, environ: Mapping[str, str]) -> OwnProxy | None:
    """Returns the proxy that an environment names for a host; None where it is reached directly.

    The variables are those of curl: `https_proxy`, `http_proxy`, `all_proxy`, `no_proxy`, in small letters or capitals.

    Raises:
        ConfigError: The proxy is of a kind that cannot be chained.
    """
    url = _variable(environ, f"{scheme}_proxy") or _variable(environ, "all_proxy")
    if not url or _is_direct(place, _variable(environ, "no_proxy")):
        return None
    parts = urlsplit(url if "://" in url else f"http://{url}")
    user, password = unquote(parts.username or ""), unquote(parts.password or "")
    try:
        if parts.scheme != "http":
            raise UsageError("")
        found = HostPort.parse(parts.netloc.rpartition("@")[2], default_port=80)
    except UsageError:
        raise ConfigError(
            f"the proxy that the environment names for {place} is no http:// proxy ({parts.scheme})",
            hint=f"NO_PROXY={place.host} reaches it directly; --isolation off leaves proxies to the graph",
        ) from None
    token = b64encode(f"{user}:{password}".encode()).decode("ascii")
    return OwnProxy(found, f"Basic {token}" if user or password else "")


async def reach(place: HostPort, scheme: Scheme, by: OwnProxy | None) -> Streams:
    """Returns a connection to a host, or, for `http` by a proxy of this machine, to that proxy.

    Raises:
        OSError: It could not be reached, or the proxy refused it.
    """
    async with asyncio.timeout(_CONNECT_S):
        to = by.place if by is not None else place
        reader, writer = await asyncio.open_connection(to.host, to.port, limit=_MAX_HEAD_BYTES)
        if by is not None and scheme == "https":
            try:
                await _ask_for_tunnel(reader, writer, place, by)
            except BaseException:
                writer.close()
                raise
        return reader, writer


async def _ask_for_tunnel(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, place: HostPort, by: OwnProxy
) -> None:
    authorization = f"Proxy-Authorization: {by.authorization}\r\n" if by.authorization else ""
    writer.write(f"CONNECT {place} HTTP/1.1\r\nHost: {place}\r\n{authorization}\r\n".encode("ascii"))
    try:
        head = await reader.readuntil(b"\r\n\r\n")
    except (asyncio.IncompleteReadError, asyncio.LimitOverrunError):
        raise ConnectionError(f"the proxy {by.place} gave no answer that can be read") from None
    status = head.split(b"\r\n", 1)[0].decode("latin-1")
    if not status.startswith("HTTP/1.") or status.split(" ")[1:2] != ["200"]:
        raise ConnectionError(f"the proxy {by.place} answered {status}")


def _variable(environ: Mapping[str, str], name: str) -> str:
    return environ.get(name) or environ.get(name.upper()) or ""


def _is_direct(place: HostPort, exceptions: str) -> bool:
    """Returns whether a host is this machine, or named by a list such as `.example.com,10.0.0.1:8080`."""
    if place.host in _THIS_MACHINE:
        return True
    for name in filter(None, (one.strip().lower() for one in exceptions.split(","))):
        domain = name.removeprefix("*").removeprefix(".")
        if name == "*" or domain in (place.host, str(place)) or f".{place.host}".endswith(f".{domain}"):
            return True
    return False
