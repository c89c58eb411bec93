"""A server that is not what it says: what it is told, and what is taken of its answers."""

from __future__ import annotations

import gzip
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import httpx
import pytest

from agentctl.errors import StoreError
from agentctl.stores.server.client import AgentServer
from agentctl.stores.server.transport import WholeAnswers

KEY = "lsv2_pt_0123456789abcdef0123456789abcdef_0123456789"

PLAIN_KEY = "of-no-shape-that-is-known"


@dataclass
class Place:
    """A loopback server that gives one answer to everything."""

    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    body: bytes = b""
    keys: list[str | None] = field(default_factory=list)
    url: str = ""


@contextmanager
def serving(place: Place) -> Iterator[Place]:
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers.get("content-length") or 0))
            place.keys.append(self.headers.get("x-api-key"))
            self.send_response(place.status)
            for name, value in {**place.headers, "content-length": str(len(place.body))}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(place.body)

        do_GET = do_POST

        def log_message(self, *args: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    place.url = f"http://127.0.0.1:{server.server_port}"
    try:
        yield place
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_a_key_is_never_sent_to_where_a_server_sends_on(status: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LANGGRAPH_API_KEY", KEY)
    with serving(Place(body=b"[]")) as other, serving(Place(status, {"location": other.url})) as place:
        with closing(AgentServer(place.url)) as server, pytest.raises(StoreError) as told:
            server.threads(limit=1, offset=0)
        assert place.keys == [KEY]
        assert other.keys == []
        assert f"sends on to {other.url}: not followed" in told.value.message


@pytest.mark.parametrize("status", [300, 302, 304])
def test_an_answer_that_sends_on_to_nowhere_is_none(status: int) -> None:
    said = f"is no Agent Server: {status} instead of an answer"
    with (
        serving(Place(status)) as place,
        closing(AgentServer(place.url)) as server,
        pytest.raises(StoreError, match=said),
    ):
        server.threads(limit=1, offset=0)


@pytest.mark.parametrize(
    ("status", "headers", "body"),
    [
        (403, {}, f"<html><title>bad key {PLAIN_KEY}</title>"),
        (500, {}, f'{{"detail": "headers: x-api-key={PLAIN_KEY}"}}'),
        (422, {}, f'{{"detail": [{{"input": "{PLAIN_KEY}"}}]}}'),
        (302, {"location": f"https://login.example/?token={PLAIN_KEY}"}, ""),
    ],
)
def test_a_key_that_a_server_sends_back_is_not_shown(
    status: int, headers: dict[str, str], body: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LANGGRAPH_API_KEY", PLAIN_KEY)
    with (
        serving(Place(status, headers, body.encode())) as place,
        closing(AgentServer(place.url)) as server,
        pytest.raises(StoreError) as told,
    ):
        server.threads(limit=1, offset=0)
    assert "***" in told.value.message
    assert PLAIN_KEY not in told.value.message + str(told.value.hint)


@pytest.mark.parametrize(
    ("headers", "body", "said"),
    [
        ({"content-encoding": "gzip"}, gzip.compress(b"[" + b" " * 2_000_000 + b"]"), "longer than 1 MB"),
        ({}, b"[" + b" " * 2_000_000 + b"]", "longer than 1 MB"),
        ({"content-encoding": "gzip, gzip"}, gzip.compress(gzip.compress(b"[]")), "packed its answer as gzip, gzip"),
        ({"content-encoding": "zstd"}, b"[]", "packed its answer as zstd"),
        ({"content-encoding": "gzip"}, b"[]", "is not gzip, as it says"),
        ({"content-type": "text/html"}, b"<html>", "is no Agent Server"),
        ({}, b"[" * 100_000 + b"]" * 100_000, "cannot be read"),
        ({}, b"[" + b"9" * 5_000 + b"]", "cannot be read"),
    ],
    ids=["bomb", "long", "twice packed", "zstd", "not packed", "html", "deep", "huge integer"],
)
def test_an_answer_that_would_fill_the_memory_or_is_none_is_refused(
    headers: dict[str, str], body: bytes, said: str
) -> None:
    with (
        serving(Place(200, headers, body)) as place,
        closing(AgentServer(place.url, max_bytes=1024**2)) as server,
        pytest.raises(StoreError, match=said),
    ):
        server.threads(limit=1, offset=0)


def test_an_answer_that_never_ends_is_given_up() -> None:
    class Dripping(httpx.BaseTransport):
        def handle_request(self, request: httpx.Request) -> httpx.Response:
            def parts() -> Iterator[bytes]:
                while True:
                    yield b" "

            return httpx.Response(200, content=parts())

    seconds = iter(range(1_000))
    transport = WholeAnswers(Dripping(), max_bytes=1_000_000, max_s=60, clock=lambda: next(seconds))
    with httpx.Client(transport=transport) as client, pytest.raises(StoreError, match="did not end within 60 seconds"):
        client.get("http://server.example/ok")


def test_an_answer_that_is_packed_is_unpacked() -> None:
    packed = Place(200, {"content-encoding": "gzip"}, gzip.compress(b'[{"thread_id": "t"}]'))
    with serving(packed) as place, closing(AgentServer(place.url)) as server:
        assert server.threads(limit=1, offset=0) == [{"thread_id": "t"}]
        assert server.n_bytes == 20
