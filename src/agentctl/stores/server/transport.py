"""Answers of a server that is not trusted: each is read whole, up to a limit of bytes and of time.

httpx limits how long the next part of an answer may take, not how many parts there are, nor what they unpack to.

Source: httpx/_client.py (`Client._send_single_request`), _decoders.py (httpx 0.28.1).
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final

import httpx

from agentctl.errors import StoreError

ENCODINGS: Final = "gzip, deflate"
"""What is asked for. One part of an answer, 64 KB, unpacks to 64 MB at most."""
_PACKED_AS: Final = frozenset({"", "identity", "gzip", "deflate"})
_OF_THE_WIRE: Final = frozenset({b"content-encoding", b"content-length", b"transfer-encoding"})


class WholeAnswers(httpx.BaseTransport):
    """A transport whose answers are in memory when it gives them.

    Args:
        inner: What carries requests and answers.
        max_bytes: How long an unpacked answer may be.
        max_s: How long all of it may take.
        clock: Seconds, only ever growing.
    """

    def __init__(
        self,
        inner: httpx.BaseTransport,
        *,
        max_bytes: int,
        max_s: float,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._inner = inner
        self._max_bytes = max_bytes
        self._max_s = max_s
        self._clock = clock

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        """Returns the answer to a request.

        Raises:
            StoreError: It is longer, slower or packed in another way than is taken.
        """
        response = self._inner.handle_request(request)
        try:
            body = self._read(response, f"{request.url.scheme}://{request.url.netloc.decode()}")
        finally:
            response.close()
        headers = [(name, value) for name, value in response.headers.raw if name.lower() not in _OF_THE_WIRE]
        return httpx.Response(response.status_code, headers=headers, content=body, extensions=response.extensions)

    def close(self) -> None:
        """Ends the connections."""
        self._inner.close()

    def _read(self, response: httpx.Response, server: str) -> bytes:
        packed_as = response.headers.get("content-encoding", "").strip().lower()
        if packed_as not in _PACKED_AS:
            raise StoreError(f"{server} packed its answer as {packed_as[:80]}: asked for was {ENCODINGS}", hint=_HINT)
        until = self._clock() + self._max_s
        body = bytearray()
        try:
            for part in response.iter_bytes():
                body += part
                if len(body) > self._max_bytes:
                    raise StoreError(
                        f"an answer of {server} is longer than {self._max_bytes // 1024**2:,} MB: not read on",
                        hint=_HINT,
                    )
                if self._clock() > until:
                    raise StoreError(
                        f"an answer of {server} did not end within {self._max_s:g} seconds: not read on", hint=_HINT
                    )
        except httpx.DecodingError as error:
            raise StoreError(f"an answer of {server} is not {packed_as}, as it says: {error}", hint=_HINT) from error
        return bytes(body)


_HINT: Final = "is it the server you mean? Its database can be read instead: --store postgresql://USER@HOST/DATABASE"
