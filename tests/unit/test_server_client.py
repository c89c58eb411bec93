"""Asking a server: the key, the time limit, dropped connections, and what each answer that is none means."""

from __future__ import annotations

import json
import re
import socket
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from agentctl.errors import AgentctlError, NotFound, Refused, StoreError
from agentctl.stores.server.client import AgentServer, is_thread_id

THREAD = "01a22e29-58a8-7614-b6df-b16d83fe8f63"
KEY = "lsv2_pt_0123456789abcdef0123456789abcdef_0123456789"


@dataclass
class Answers:
    """What a loopback server answers, one after another and the last again and again, and what it was asked.

    An answer is a status with a body (a page, where it begins with `<`), or `drop` (half of a body, then the end),
    `breaks off` (half of a JSON, as if it were all), `garbage`, `no HTTP` or `silence`.
    """

    answers: list[tuple[int, Any] | str]
    asked: list[tuple[str, str, dict[str, str], Any]] = field(default_factory=list)
    url: str = ""
    stopped: threading.Event = field(default_factory=threading.Event)

    def next(self) -> tuple[int, Any] | str:
        return self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]


@contextmanager
def answering(*answers: tuple[int, Any] | str) -> Iterator[Answers]:
    told = Answers(list(answers))

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            length = int(self.headers.get("content-length") or 0)
            body = json.loads(self.rfile.read(length)) if length else None
            told.asked.append((self.command, self.path, {k.lower(): v for k, v in self.headers.items()}, body))
            match told.next():
                case "silence":
                    told.stopped.wait()
                case "drop":
                    self._send(200, b"[", length=100)
                    self.close_connection = True
                case "garbage":
                    self._send(200, b"<html>Welcome</html>")
                case "breaks off":
                    self._send(200, b'[{"checkpoint": ')
                case "no HTTP":
                    self.wfile.write(b"SSH-2.0-OpenSSH_9.2\r\n\r\n")
                    self.close_connection = True
                case (int(status), value):
                    is_page = isinstance(value, str) and value.startswith("<")
                    self._send(status, value.encode() if is_page else json.dumps(value).encode())

        do_GET = do_POST

        def _send(self, status: int, body: bytes, *, length: int | None = None) -> None:
            self.send_response(status)
            self.send_header("content-length", str(len(body) if length is None else length))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *args: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    told.url = f"http://127.0.0.1:{server.server_port}"
    try:
        yield told
    finally:
        told.stopped.set()
        server.shutdown()
        thread.join()
        server.server_close()


def history(url: str, *, timeout_s: float = 5.0) -> Any:
    with closing(AgentServer(url, timeout_s=timeout_s)) as server:
        return server.history(THREAD, "", limit=5, select=["checkpoint"])


def failure(*answers: tuple[int, Any] | str, timeout_s: float = 5.0) -> AgentctlError:
    with answering(*answers) as told, pytest.raises(AgentctlError) as caught:
        history(told.url, timeout_s=timeout_s)
    return caught.value


@pytest.mark.parametrize(
    ("variables", "sent"),
    [
        ({"LANGGRAPH_API_KEY": KEY, "LANGSMITH_API_KEY": "other"}, KEY),
        ({"LANGSMITH_API_KEY": f'"{KEY}"', "LANGCHAIN_API_KEY": "other"}, KEY),
        ({"LANGCHAIN_API_KEY": KEY}, KEY),
        ({}, None),
    ],
)
def test_the_key_is_taken_from_the_environment_as_the_sdk_does(
    variables: dict[str, str], sent: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    with answering((200, [])) as told:
        assert history(told.url) == []
    assert told.asked[0][2].get("x-api-key") == sent
    assert KEY not in told.asked[0][1]


def test_a_page_is_asked_for_with_a_limit_small_fields_and_the_checkpoint_before_it() -> None:
    with answering((200, [])) as told, closing(AgentServer(told.url)) as server:
        server.history(THREAD, "sub:1", limit=7, before="c9", select=["checkpoint"])
        server.history_by_address(THREAD, limit=7, before="c9")
        server.threads(limit=5, offset=10)
    (_, path, _, body), (method, address, _, _), (_, _, _, search) = told.asked
    assert (path, body["limit"], body["select"]) == (f"/threads/{THREAD}/history", 7, ["checkpoint"])
    assert body["before"] == {"configurable": {"checkpoint_id": "c9"}}
    assert body["checkpoint"] == {"thread_id": THREAD, "checkpoint_ns": "sub:1"}
    assert (method, address) == ("GET", f"/threads/{THREAD}/history?limit=7&before=c9")
    assert (search["limit"], search["offset"]) == (5, 10) and "values" not in search["select"]


@pytest.mark.parametrize("status", [401, 403])
def test_a_refused_key_is_an_error_that_names_the_variable_and_not_the_key(
    status: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    without = failure((status, {"detail": "Missing key"}))
    assert isinstance(without, StoreError) and "LANGGRAPH_API_KEY" in (without.hint or "")
    monkeypatch.setenv("LANGSMITH_API_KEY", KEY)
    error = failure((status, {"detail": "Forbidden"}))
    assert "LANGSMITH_API_KEY" in (error.hint or "") and str(status) in error.message
    assert KEY not in error.message + (error.hint or "")


@pytest.mark.parametrize(
    ("status", "body", "kind", "said", "hint"),
    [
        (404, {"detail": "Thread not found"}, NotFound, f"no thread {THREAD}", "agentctl threads"),
        (409, {"detail": "busy"}, StoreError, "answered 409 \\(busy\\)", "when it has ended"),
        (422, {"detail": "limit"}, StoreError, "answered 422 \\(limit\\)", "/info"),
        (429, {"message": "slow down"}, StoreError, "answered 429 \\(slow down\\)", "later"),
        (500, {"detail": "KeyError"}, StoreError, "answered 500 \\(KeyError\\)", "durable"),
        (502, "<html><title>Bad\nGateway</title>", StoreError, "answered 502 \\(Bad Gateway\\)", "/ok"),
        (503, "try later", StoreError, "answered 503 \\(try later\\)", "reached through"),
        (504, "<!DOCTYPE html><p>none", StoreError, "answered 504: could not", "/ok"),
        (422, {"detail": [{"msg": "no such field"}]}, StoreError, "no such field", "/info"),
        (404, {"detail": "Not Found"}, StoreError, f"is no Agent Server: 404 for /threads/{THREAD}", "--store"),
        (404, "<html>nothing here</html>", StoreError, "is no Agent Server: 404 for", "--store"),
        (200, {"detail": "no list"}, StoreError, "is no Agent Server", "--store"),
        (200, [1], StoreError, "is no Agent Server", "--store"),
        (200, None, StoreError, "is no Agent Server", "--store"),
    ],
)
def test_each_answer_that_is_none_has_its_error(
    status: int, body: Any, kind: type[AgentctlError], said: str, hint: str
) -> None:
    error = failure((status, body))
    assert type(error) is kind
    assert re.search(said, error.message) and hint in (error.hint or "")


def test_a_long_detail_is_cut_to_one_line() -> None:
    error = failure((500, {"detail": "line one\nline two " + "x" * 1000}))
    assert "line one line two" in error.message and "\n" not in error.message and len(error.message) < 400


def test_what_is_no_json_is_no_agent_server() -> None:
    error = failure("garbage")
    assert isinstance(error, StoreError) and "no Agent Server: the answer is not JSON" in error.message


def test_half_a_json_is_told_for_what_it_is() -> None:
    error = failure("breaks off")
    assert isinstance(error, StoreError) and "is JSON that breaks off" in error.message
    assert "nothing of the answer was used" in (error.hint or "")


def test_what_does_not_speak_http_is_no_agent_server() -> None:
    assert "no Agent Server: it does not speak HTTP" in failure("no HTTP").message


def test_a_connection_that_is_not_made_names_the_time_it_was_waited_for() -> None:
    with socket.socket() as full:
        full.bind(("127.0.0.1", 0))
        full.listen(0)
        url = f"http://127.0.0.1:{full.getsockname()[1]}"
        with closing(socket.create_connection(full.getsockname())), pytest.raises(StoreError) as caught:
            history(url, timeout_s=0.2)
    assert caught.value.message == f"cannot reach {url}: no connection within 0.2 seconds"


def test_a_dropped_connection_is_tried_once_more_and_then_an_error() -> None:
    with answering("drop", (200, [])) as told:
        assert history(told.url) == []
    assert len(told.asked) == 2

    error = failure("drop")
    assert isinstance(error, StoreError) and "dropped the connection twice" in error.message
    assert "nothing of the answer was used" in (error.hint or "")


def test_a_silent_server_is_an_error_after_the_time_limit() -> None:
    error = failure("silence", timeout_s=0.2)
    assert isinstance(error, StoreError) and "did not answer within 0.2 seconds" in error.message


def test_a_refused_connection_is_an_error_at_once() -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{unused.getsockname()[1]}"
        with pytest.raises(StoreError, match="cannot reach") as caught:
            history(url)
    assert f"curl {url}/ok" in (caught.value.hint or "")


@pytest.mark.parametrize(("status", "said"), [(404, "Not Found"), (405, "no such method"), (501, "built-in only")])
def test_a_server_that_does_not_count_bytes_is_refused_by_name(status: int, said: str) -> None:
    with (
        answering((status, {"detail": said})) as told,
        closing(AgentServer(told.url)) as server,
        pytest.raises(Refused, match=said) as caught,
    ):
        server.storage(THREAD)
    assert "agentctl size --store postgresql://" in (caught.value.hint or "")


def test_a_thread_that_is_not_there_is_none() -> None:
    with answering((404, {"detail": "not found"})) as told, closing(AgentServer(told.url)) as server:
        assert server.thread(THREAD) is None


def test_thread_ids_are_uuids() -> None:
    assert is_thread_id(THREAD) and is_thread_id(THREAD.upper())
    assert not any(map(is_thread_id, ("support-17", "", THREAD.replace("-", ""), f"{{{THREAD}}}")))
