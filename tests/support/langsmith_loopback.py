"""A LangSmith API on loopback that keeps what it is sent, with both routes by which examples are created.

Source: langsmith 0.15 client.py: `/info` decides between multipart requests to `/v1/platform/datasets/ID/examples` and
JSON to `/examples/bulk` and `/examples/ID`.
"""

from __future__ import annotations

import json
import threading
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from email.parser import BytesParser
from email.policy import HTTP
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

TENANT = "5c2f9f51-8f2e-4f5f-9a1b-5f8f5d3b6a10"
_AT = "2026-11-30T12:00:00+00:00"


@dataclass
class LangSmith:
    """What the service holds.

    Attributes:
        multipart: Whether it says that it takes multipart requests.
        datasets: Dataset ids by name.
        examples: Examples by id: inputs, outputs, metadata, split, dataset_id.
        requests: Method and path of every request, in order.
        keys: API keys that were sent.
        refuse_with: Status to answer every write with, None to accept.
    """

    multipart: bool
    url: str = ""
    datasets: dict[str, str] = field(default_factory=dict)
    examples: dict[str, dict[str, Any]] = field(default_factory=dict)
    requests: list[tuple[str, str]] = field(default_factory=list)
    keys: set[str] = field(default_factory=set)
    refuse_with: int | None = None

    def dataset(self, name: str) -> dict[str, Any]:
        return {
            "id": self.datasets[name],
            "name": name,
            "data_type": "kv",
            "created_at": _AT,
            "modified_at": _AT,
            "example_count": len(self.examples),
            "session_count": 0,
            "tenant_id": TENANT,
        }

    def example(self, example_id: str) -> dict[str, Any]:
        held = self.examples[example_id]
        split = {"dataset_split": [held["split"]]}
        metadata = {**held["metadata"], **split}
        return {**held, "id": example_id, "metadata": metadata, "created_at": _AT, "modified_at": _AT}


@contextmanager
def langsmith_server(*, multipart: bool) -> Iterator[LangSmith]:
    """Runs the service for the time of the block."""
    service = LangSmith(multipart)

    class Handler(_Handler):
        held = service

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    service.url = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    try:
        yield service
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


class _Handler(BaseHTTPRequestHandler):
    held: LangSmith
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        path, query = self._begin()
        match path:
            case ["info"]:
                flags = {"dataset_examples_multipart_enabled": self.held.multipart}
                self._answer({"version": "0.15", "instance_flags": flags})
            case ["sessions"]:
                self._answer([{"id": str(uuid.uuid4()), "tenant_id": TENANT, "start_time": _AT, "name": "default"}])
            case ["datasets"]:
                names = query.get("name", list(self.held.datasets))
                self._answer([self.held.dataset(name) for name in names if name in self.held.datasets])
            case ["examples"]:
                wanted = query.get("id", list(self.held.examples))
                self._answer([self.held.example(name) for name in wanted if name in self.held.examples])
            case _:
                self._answer({"detail": "not found"}, 404)

    def do_POST(self) -> None:
        path, _ = self._begin()
        body = self._body()
        if self.held.refuse_with:
            self._answer({"detail": "refused"}, self.held.refuse_with)
            return
        match path:
            case ["datasets"]:
                made = json.loads(body)
                self.held.datasets[made["name"]] = str(made.get("id") or uuid.uuid4())
                self._answer(self.held.dataset(made["name"]))
            case ["v1", "platform", "datasets", dataset, "examples"]:
                self._keep_parts(dataset, body)
            case ["examples", "bulk"]:
                for entry in json.loads(body):
                    self._keep(str(entry["id"]), str(entry["dataset_id"]), entry)
                self._answer([self.held.example(str(entry["id"])) for entry in json.loads(body)])
            case _:
                self._answer({"detail": "not found"}, 404)

    def do_PATCH(self) -> None:
        path, _ = self._begin()
        body = self._body()
        match path:
            case ["v1", "platform", "datasets", dataset, "examples"]:
                self._keep_parts(dataset, body)
            case ["examples", example_id]:
                entry = json.loads(body)
                self._keep(example_id, str(entry["dataset_id"]), entry)
                self._answer({"message": "updated"})
            case _:
                self._answer({"detail": "not found"}, 404)

    def log_message(self, format: str, *args: Any) -> None:
        """Says nothing."""

    def _begin(self) -> tuple[list[str], dict[str, list[str]]]:
        split = urlsplit(self.path)
        self.held.requests.append((self.command, split.path))
        self.held.keys.add(self.headers.get("x-api-key", ""))
        return [part for part in split.path.split("/") if part], parse_qs(split.query)

    def _body(self) -> bytes:
        if self.headers.get("Transfer-Encoding", "").lower() != "chunked":
            return self.rfile.read(int(self.headers.get("Content-Length", 0)))
        parts = []
        while size := int(self.rfile.readline().strip(), 16):
            parts.append(self.rfile.read(size))
            self.rfile.readline()
        self.rfile.readline()
        return b"".join(parts)

    def _keep_parts(self, dataset: str, body: bytes) -> None:
        """Keeps examples from multipart parts named `ID`, `ID.inputs` and `ID.outputs`."""
        head = f"Content-Type: {self.headers['Content-Type']}\r\n\r\n".encode()
        message = BytesParser(policy=HTTP).parsebytes(head + body)
        entries: dict[str, dict[str, Any]] = {}
        for part in message.iter_parts():
            name = str(part.get_param("name", header="content-disposition"))
            example_id, _, field_name = name.partition(".")
            content = json.loads(part.get_payload(decode=True))
            entries.setdefault(example_id, {}).update({field_name: content} if field_name else content)
        for example_id, entry in entries.items():
            self._keep(example_id, dataset, entry)
        self._answer({"count": len(entries), "example_ids": list(entries), "as_of": _AT}, 201)

    def _keep(self, example_id: str, dataset: str, entry: dict[str, Any]) -> None:
        kept = {name: entry[name] for name in ("inputs", "outputs", "metadata", "split") if name in entry}
        self.held.examples[example_id] = {**self.held.examples.get(example_id, {}), **kept, "dataset_id": dataset}

    def _answer(self, value: object, status: int = 200) -> None:
        body = json.dumps(value).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
