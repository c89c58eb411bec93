"""A confined process reaches the providers that it may, by the providers' own clients, and no others."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.util import find_spec
from pathlib import Path

import pytest

from agentctl.sandbox.isolation.confinement import Confinement, offered
from agentctl.sandbox.isolation.environment import reduced
from agentctl.sandbox.isolation.hosts import HostPort
from agentctl.sandbox.isolation.proxy import proxy

_CLIENTS = ("openai", "anthropic", "google.genai")


def _is_installed(package: str) -> bool:
    try:
        return find_spec(package) is not None
    except ModuleNotFoundError:
        return False


_USAGE = {"input_tokens": 1, "output_tokens": 1}
_ANSWERS = {
    "/v1/chat/completions": {
        "id": "1", "object": "chat.completion", "created": 1, "model": "m",
        "choices": [{"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": "openai here"}}],
    },
    "/v1/messages": {
        "id": "1", "type": "message", "role": "assistant", "model": "m", "stop_reason": "end_turn", "usage": _USAGE,
        "content": [{"type": "text", "text": "anthropic here"}],
    },
    "/v1/models/m:generateContent": {
        "candidates": [{"content": {"role": "model", "parts": [{"text": "google here"}]}, "finishReason": "STOP"}],
    },
}  # fmt: skip
_PIECES = ("in ", "two ", "pieces")


class _Provider(BaseHTTPRequestHandler):
    """Speaks three protocols, as far as one short answer needs it."""

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.server.asked.append(self.path)  # type: ignore[attr-defined]
        if body.get("stream"):
            chunks = [json.dumps(_chunk(piece)) for piece in _PIECES]
            self._answer("text/event-stream", "".join(f"data: {chunk}\n\n" for chunk in [*chunks, "[DONE]"]))
        else:
            self._answer("application/json", json.dumps(_ANSWERS[self.path.partition("?")[0]]))

    def _answer(self, kind: str, text: str) -> None:
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text.encode())

    def log_message(self, *_: object) -> None:
        pass


def _chunk(text: str) -> dict[str, object]:
    choice = {"index": 0, "delta": {"role": "assistant", "content": text}, "finish_reason": None}
    return {"id": "1", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": [choice]}


@contextmanager
def _provider() -> Iterator[tuple[HostPort, list[str]]]:
    asked: list[str] = []
    with ThreadingHTTPServer(("127.0.0.1", 0), _Provider) as server:
        server.asked = asked  # type: ignore[attr-defined]
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield HostPort("127.0.0.1", server.server_port), asked
        finally:
            server.shutdown()
            thread.join()


@pytest.mark.real_process
@pytest.mark.skipif(not all(map(_is_installed, _CLIENTS)), reason="a client of a provider is not installed")
def test_clients_reach_their_provider_through_the_proxy_and_another_host_is_refused_with_what_allows_it(
    tmp_path: Path,
) -> None:
    assert offered(Confinement(proxy_port=1)).network == "seccomp" or sys.platform != "linux"
    with _provider() as (place, asked), _provider() as (other, never), proxy([place], environ={}) as running:
        given = {**running.variables, "HOME": str(tmp_path), "TMPDIR": str(tmp_path)}
        words = [str(running.port), f"http://{place}", f"http://{other}"]
        done = subprocess.run(
            [sys.executable, "-m", "tests.support.asking_providers", *words],
            env=reduced(os.environ, allow=(), given=given),
            capture_output=True,
            text=True,
            timeout=120,
        )
    assert done.returncode == 0, done.stderr
    answers = json.loads(done.stdout)
    refused = f"agentctl: this experiment may not reach {other} (allowed by --allow-host {other})"
    assert refused in answers.pop("another host")
    assert answers.pop("another host by https") == (
        "ProxyError: 403 agentctl: this experiment may not reach api.example.com:443 "
        "(allowed by --allow-host api.example.com:443)"
    )
    assert answers.pop("openai streamed") == "in two pieces"
    assert answers == {
        f"{name}{way}": f"{name} here" for name in ("openai", "anthropic", "google") for way in ("", " async")
    }
    assert (len(asked), never) == (7, [])
    assert running.passed == {str(place): 7}
    assert running.refused == {str(other): 1, "api.example.com:443": 1}
