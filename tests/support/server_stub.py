"""An Agent Server that misbehaves as told: other implementations, older versions, and bad days of the real one.

It answers the routes that are read, from states that it is given, and remembers every request.

Source: routes of langgraph-api 0.16.7; the faults are those of public reports about it and about its replacements.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit
from uuid import NAMESPACE_URL, uuid5

from agentctl.stores.reading.layout import pull_task_id

AT = "2026-11-30T12:00:00+00:00"

Answer = tuple[int, Any]
Fault = Callable[["Request"], Answer | None]


@dataclass(frozen=True, slots=True)
class Request:
    """One request.

    Attributes:
        method: GET or POST.
        path: Without the query.
        query: The query's last values.
        body: The JSON body, {} without one.
    """

    method: str
    path: str
    query: Mapping[str, str]
    body: Mapping[str, Any]

    @property
    def is_history(self) -> bool:
        """Whether it asks for a history."""
        return self.path.endswith("/history")


@dataclass
class StubServer:
    """What it holds and how it misbehaves.

    Attributes:
        url: Its address.
        threads: Thread objects by id.
        states: States of a thread's namespace, newest first.
        fault: Asked before each request; what it returns is the answer, None leaves it to the stub.
        n_drops: How many answers still break off in the middle.
        is_json: Whether answers are JSON at all.
        ignores_ns: Whether the namespace that is asked for is ignored.
        pages_by: Forms of `before` that it understands; another gives an empty page.
        hangs: While set, nothing is answered.
        requests: All requests, in order.
    """

    url: str = ""
    threads: dict[str, dict[str, Any]] = field(default_factory=dict)
    states: dict[tuple[str, str], list[dict[str, Any]]] = field(default_factory=dict)
    fault: Fault | None = None
    n_drops: int = 0
    is_json: bool = True
    ignores_ns: bool = False
    pages_by: tuple[str, ...] = ("config", "text")
    hangs: threading.Event = field(default_factory=threading.Event)
    let_go: threading.Event = field(default_factory=threading.Event)
    requests: list[Request] = field(default_factory=list)

    def thread(self, name: str, n: int = 0, **more: Any) -> str:
        """Adds a thread with a conversation of n checkpoints; returns its id."""
        thread = str(uuid5(NAMESPACE_URL, name))
        self.threads[thread] = {
            "thread_id": thread,
            "created_at": AT,
            "updated_at": AT,
            "metadata": {},
            "status": "idle",
            **more,
        }
        self.states[thread, ""] = [state(thread, place) for place in reversed(range(n))]
        return thread

    def asked(self, ending: str) -> list[Request]:
        """Returns the requests whose path ends so."""
        return [request for request in self.requests if request.path.endswith(ending)]

    def answer(self, request: Request) -> Answer:
        """Answers a request as the real server would."""
        if self.fault is not None and (given := self.fault(request)) is not None:
            return given
        parts = [part for part in request.path.split("/") if part]
        match request.method, parts:
            case "GET", ["ok"]:
                return 200, {"ok": True}
            case "POST", ["threads", "search"]:
                limit, offset = request.body.get("limit", 10), request.body.get("offset", 0)
                return 200, list(self.threads.values())[offset : offset + limit]
            case _, ["threads", thread, *_] if thread not in self.threads:
                return 404, {"detail": f"Thread with ID {thread} not found"}
            case "GET", ["threads", thread]:
                return 200, self.threads[thread]
            case _, ["threads", thread, "history"]:
                return self._history(thread, request)
            case "POST", ["threads", thread, "state", "checkpoint"]:
                where = request.body["checkpoint"]
                found = self._states(thread, where.get("checkpoint_ns") or "")
                wanted = where.get("checkpoint_id")
                return 200, next((one for one in found if _id(one) == wanted), _nothing(thread))
            case "GET", ["threads", thread, "state"]:
                return 200, next(iter(self.states.get((thread, ""), [])), _nothing(thread))
            case _:
                return 404, {"detail": "Not Found"}

    def _states(self, thread: str, ns: str) -> list[dict[str, Any]]:
        return self.states.get((thread, "" if self.ignores_ns else ns), [])

    def _history(self, thread: str, request: Request) -> Answer:
        before = request.body.get("before") or request.query.get("before")
        ns = (request.body.get("checkpoint") or {}).get("checkpoint_ns") or ""
        found = self._states(thread, ns)
        if before is not None:
            form = "text" if request.query.get("before") else "config"
            if form not in self.pages_by:
                return 200, []
            id = before if isinstance(before, str) else before["configurable"]["checkpoint_id"]
            found = [one for one in found if (_id(one) or "") < id]
        return 200, found[: int(request.body.get("limit") or request.query.get("limit") or 1)]


@contextmanager
def server_stub() -> Iterator[StubServer]:
    """Runs a stub for the time of the block."""
    stub = StubServer()

    class Handler(_Handler):
        held = stub

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    stub.url = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    try:
        yield stub
    finally:
        stub.let_go.set()
        server.shutdown()
        server.server_close()
        thread.join()


def checkpoint_id(place: int) -> str:
    """Returns the id of the checkpoint at a place of a conversation, a UUIDv6 as LangGraph makes them."""
    return f"1f1ed007-{place:04x}-6000-8000-000000000000"


def state(thread: str, place: int, *, ns: str = "", **more: Any) -> dict[str, Any]:
    """Returns the state of one checkpoint of a conversation in which each step says one thing."""
    texts = [
        {"type": "ai", "content": f"text {n}", "id": f"m{n}", "additional_kwargs": {}, "response_metadata": {}}
        for n in range(place + 1)
    ]
    parent = _checkpoint(thread, place - 1, ns) if place else None
    return {
        "values": {"messages": texts},
        "next": [],
        "tasks": [],
        "metadata": {"source": "loop" if place else "input", "step": place - 1, "parents": {}},
        "created_at": AT,
        "checkpoint": _checkpoint(thread, place, ns),
        "parent_checkpoint": parent,
        "interrupts": [],
        "checkpoint_id": checkpoint_id(place),
        "parent_checkpoint_id": parent and parent["checkpoint_id"],
        **more,
    }


def task(place: int, name: str, result: object = None) -> dict[str, Any]:
    """Returns the task of a node at a checkpoint, with the id that LangGraph gives it; without a result it is due."""
    triggers = ["__start__"] if name == "__start__" else [f"branch:to:{name}"]
    id = pull_task_id(checkpoint_id(place), "", place, name, triggers)
    return {"id": id, "name": name, "path": ["__pregel_pull", name], "result": result, "interrupts": [], "error": None}


def _checkpoint(thread: str, place: int, ns: str) -> dict[str, Any]:
    return {"checkpoint_id": checkpoint_id(place), "thread_id": thread, "checkpoint_ns": ns}


def _id(one: Mapping[str, Any]) -> str | None:
    checkpoint = one.get("checkpoint") or {}
    return checkpoint.get("checkpoint_id")


def _nothing(thread: str) -> dict[str, Any]:
    """Returns the state that a server gives of a thread on which nothing ran."""
    return {
        "values": {},
        "next": [],
        "tasks": [],
        "metadata": None,
        "created_at": None,
        "checkpoint": None,
        "parent_checkpoint": None,
        "interrupts": [],
        "checkpoint_id": None,
        "parent_checkpoint_id": None,
    }


class _Handler(BaseHTTPRequestHandler):
    held: StubServer
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        self._serve({})

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        self._serve(json.loads(body) if body else {})

    def log_message(self, format: str, *args: Any) -> None:
        """Says nothing."""

    def _serve(self, body: Mapping[str, Any]) -> None:
        split = urlsplit(self.path)
        query = {name: values[-1] for name, values in parse_qs(split.query).items()}
        request = Request(self.command, split.path, query, body)
        self.held.requests.append(request)
        if self.held.hangs.is_set():
            self.held.let_go.wait()
            self.close_connection = True
            return
        status, value = self.held.answer(request)
        text = json.dumps(value).encode() if self.held.is_json else b"<html>Sign in</html>"
        self.send_response(status)
        self.send_header("Content-Type", "application/json" if self.held.is_json else "text/html")
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        if self.held.n_drops:
            self.held.n_drops -= 1
            text = text[: len(text) // 2]
            self.close_connection = True
        self.wfile.write(text)
