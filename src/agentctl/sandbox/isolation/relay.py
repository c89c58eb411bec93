"""One connection of a client to the proxy: what it asks for, whether it may have that, and the bytes both ways."""

from __future__ import annotations

import asyncio
import hmac
import json
import re
from base64 import b64encode
from collections import Counter
from collections.abc import Collection, Coroutine, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Final, cast

import h11

from agentctl.errors import ConfigError, UsageError
from agentctl.sandbox.isolation.hosts import HostPort
from agentctl.sandbox.isolation.upstream import OwnProxy, Scheme, Streams, own_proxy, reach

_HEAD_S: Final = 30.0
_LINGER_S: Final = 5.0
_CHUNK_BYTES: Final = 64 * 1024
MAX_HEAD_BYTES: Final = 64 * 1024
_ABSOLUTE: Final = re.compile(rb"(?i:http)://([^/?#]*)(/[^#]*|\?[^#]*)?", re.DOTALL)
_OF_ONE_HOP: Final = frozenset(
    {b"connection", b"proxy-connection", b"keep-alive", b"proxy-authorization", b"proxy-authenticate", b"te",
     b"trailer", b"upgrade", b"expect", b"host"}
)  # fmt: skip
"""Headers that are between two ends of one connection; transfer-encoding is taken apart and put on by h11."""


@dataclass(frozen=True, slots=True)
class Gate:
    """Who may ask for what, and what was asked.

    Attributes:
        allowed: What may be reached.
        credential: User and password that a client has to give, as `user:password`.
        environ: Where proxies of this machine are named.
        passed: Counts what was reached.
        refused: Counts what was not allowed.
    """

    allowed: Collection[HostPort]
    credential: str
    environ: Mapping[str, str]
    passed: Counter[str]
    refused: Counter[str]


@dataclass(frozen=True, slots=True)
class _Peer:
    """One end of a connection on which HTTP is spoken."""

    protocol: h11.Connection
    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter

    async def event(self) -> h11.Event | type[h11.PAUSED]:
        """Returns what the other end said next; the end of the connection is an event."""
        while (event := self.protocol.next_event()) is h11.NEED_DATA:
            self.protocol.receive_data(await self.reader.read(_CHUNK_BYTES))
        return cast("h11.Event | type[h11.PAUSED]", event)

    async def say(self, event: h11.Event) -> None:
        """Says something to the other end, and waits while that is slow to take it."""
        if data := self.protocol.send(event):
            self.writer.write(data)
            await self.writer.drain()


class _Answered(Exception):
    """What a client asked for ends with an answer of the proxy's own."""

    def __init__(self, status: int, text: str, *headers: str) -> None:
        super().__init__(text)
        self.status = status
        self.text = text
        self.headers = headers


@dataclass(frozen=True, slots=True)
class _Asked:
    """What a client asks for. `target` is the path and query, b'' for a tunnel."""

    place: HostPort
    scheme: Scheme
    target: bytes = b""


async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, gate: Gate) -> None:
    """Serves one request, or one tunnel, and closes the connection. Nothing that a client sends makes it raise."""
    client = _Peer(h11.Connection(h11.SERVER, max_incomplete_event_size=MAX_HEAD_BYTES), reader, writer)
    try:
        await _serve(client, gate)
    except _Answered as answer:
        await _answer(client, answer)
    except h11.RemoteProtocolError as error:
        await _answer(client, _Answered(error.error_status_hint, f"agentctl: this is no HTTP request: {error}"))
    except (OSError, h11.LocalProtocolError):
        writer.transport.abort()
    finally:
        writer.close()


async def _serve(client: _Peer, gate: Gate) -> None:
    async with asyncio.timeout(_HEAD_S):
        request = await client.event()
    if not isinstance(request, h11.Request):
        return
    if not _is_known(request, gate.credential):
        raise _Answered(
            407, "agentctl: this proxy is another experiment's", 'Proxy-Authenticate: Basic realm="agentctl"'
        )
    asked = _asked(request)
    if asked.place not in gate.allowed:
        gate.refused[str(asked.place)] += 1
        raise _Answered(
            403, f"agentctl: this experiment may not reach {asked.place} (allowed by --allow-host {asked.place})"
        )
    gate.passed[str(asked.place)] += 1
    try:
        by = own_proxy(asked.place, asked.scheme, gate.environ)
        streams = await reach(asked.place, asked.scheme, by)
    except (OSError, ConfigError) as error:
        raise _Answered(502, f"agentctl: {asked.place} cannot be reached: {str(error) or 'it took too long'}") from None
    try:
        if asked.scheme == "https":
            await _tunnel(client, streams)
        else:
            await _forward(client, request, asked, by, streams)
    finally:
        streams[1].close()


def _is_known(request: h11.Request, credential: str) -> bool:
    expected = b"Basic " + b64encode(credential.encode("ascii"))
    return any(
        hmac.compare_digest(value, expected) for name, value in request.headers if name == b"proxy-authorization"
    )


def _asked(request: h11.Request) -> _Asked:
    try:
        if request.method == b"CONNECT":
            return _Asked(HostPort.parse(request.target.decode("ascii"), default_port=None), "https")
        if absolute := _ABSOLUTE.fullmatch(request.target):
            place = HostPort.parse(absolute[1].decode("ascii"), default_port=80)
            target = absolute[2] or b"/"
            return _Asked(place, "http", target if target.startswith(b"/") else b"/" + target)
    except (UsageError, UnicodeDecodeError):
        pass
    raise _Answered(400, "agentctl: this proxy takes CONNECT HOST:PORT and http://HOST/PATH")


async def _tunnel(client: _Peer, streams: Streams) -> None:
    reader, writer = streams
    while await client.event() is not h11.PAUSED:
        pass
    client.writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
    writer.write(client.protocol.trailing_data[0])
    await _both(_pour(client.reader, writer), _pour(reader, client.writer))


async def _pour(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Passes bytes on as they come, to the end of one direction."""
    while data := await reader.read(_CHUNK_BYTES):
        writer.write(data)
        await writer.drain()
    writer.write_eof()


async def _both(first: Coroutine[None, None, None], second: Coroutine[None, None, None]) -> None:
    """Waits for two directions; where one breaks, the other ends."""
    try:
        async with asyncio.TaskGroup() as group:
            group.create_task(first)
            group.create_task(second)
    except ExceptionGroup as broken:
        raise broken.exceptions[0] from None


async def _forward(client: _Peer, request: h11.Request, asked: _Asked, by: OwnProxy | None, streams: Streams) -> None:
    """Passes one request on, with the host that its address names, and its response back as it comes."""
    server = _Peer(h11.Connection(h11.CLIENT, max_incomplete_event_size=MAX_HEAD_BYTES), *streams)
    host = str(asked.place).removesuffix(":80")
    headers = [(b"Host", host.encode("ascii")), *_passed_on(request.headers.raw_items()), (b"Connection", b"close")]
    target = asked.target
    if by is not None:
        target = b"http://" + host.encode("ascii") + target
        if by.authorization:
            headers.append((b"Proxy-Authorization", by.authorization.encode("ascii")))
    sending = asyncio.create_task(
        _send(client, server, h11.Request(method=request.method, target=target, headers=headers))
    )
    try:
        await _give_back(client, server)
    finally:
        sending.cancel()
        with suppress(asyncio.CancelledError, OSError, h11.ProtocolError):
            await sending
    await _see_off(client)


async def _send(client: _Peer, server: _Peer, request: h11.Request) -> None:
    await server.say(request)
    if client.protocol.they_are_waiting_for_100_continue:
        await client.say(h11.InformationalResponse(status_code=100, headers=[]))
    while isinstance(event := await _next_of_body(client, server), h11.Data):
        await server.say(event)
    await server.say(h11.EndOfMessage())


async def _next_of_body(client: _Peer, server: _Peer) -> object:
    try:
        return await client.event()
    except (OSError, h11.RemoteProtocolError):
        server.writer.transport.abort()  # nobody waits for the answer
        raise


async def _give_back(client: _Peer, server: _Peer) -> None:
    response: object = h11.NEED_DATA
    with suppress(OSError, h11.RemoteProtocolError):
        while isinstance(response := await server.event(), h11.InformationalResponse):
            pass
    if not isinstance(response, h11.Response):
        raise _Answered(502, "agentctl: the host closed the connection, or answered what is no HTTP")
    headers = [*_passed_on(response.headers.raw_items()), (b"Connection", b"close")]
    await client.say(h11.Response(status_code=response.status_code, reason=response.reason, headers=headers))
    try:
        while isinstance(event := await server.event(), h11.Data):
            await client.say(event)
    except h11.RemoteProtocolError as error:
        raise ConnectionError(str(error)) from None  # what came is cut off here too, not made to look whole
    await client.say(h11.EndOfMessage())


def _passed_on(headers: Iterable[tuple[bytes, bytes]]) -> list[tuple[bytes, bytes]]:
    """Returns the headers that are for the other end, and not for this connection by name or by Connection.

    A message in chunks has no length: of one that says both, two servers would read two messages.
    """
    given = [(name.lower(), name, value) for name, value in headers]
    left_out = {
        *_OF_ONE_HOP,
        *(token.strip().lower() for key, _, value in given if key == b"connection" for token in value.split(b",")),
        *(b"content-length" for key, _, _ in given if key == b"transfer-encoding"),
    }
    return [(name, value) for key, name, value in given if key not in left_out]


async def _answer(client: _Peer, answer: _Answered) -> None:
    """Gives an answer of the proxy's own. The text is its reason too: that is what clients show of a refused tunnel."""
    reason = "".join(letter if " " <= letter <= "~" else "?" for letter in answer.text)
    body = json.dumps({"error": {"type": "agentctl_isolation", "message": answer.text}}).encode()
    head = [f"HTTP/1.1 {answer.status} {reason}", *answer.headers, "Content-Type: application/json"]
    head += [f"Content-Length: {len(body)}", "Connection: close", "", ""]
    with suppress(OSError):
        client.writer.write("\r\n".join(head).encode("ascii") + body)
        await _see_off(client)


async def _see_off(client: _Peer) -> None:
    """Takes what the client still sends, and throws it away.

    A connection that is closed before it was read to its end is reset, and the answer lost with it.
    """
    client.writer.write_eof()
    with suppress(TimeoutError):
        async with asyncio.timeout(_LINGER_S):
            while await client.reader.read(_CHUNK_BYTES):
                pass
