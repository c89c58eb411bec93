"""A loopback server that speaks the OpenAI chat-completions protocol, its answers made by a script."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import uvicorn
from langchain_core.messages import AIMessage, convert_to_messages
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from agentctl.testing import Script, Turn


@dataclass
class OpenAILoopback:
    """A running server.

    Attributes:
        url: What OPENAI_BASE_URL must be.
        requests: The bodies that came in, oldest first.
    """

    url: str
    requests: list[dict[str, Any]] = field(default_factory=list)


@contextmanager
def openai_loopback(script: Script) -> Iterator[OpenAILoopback]:
    """Serves in a thread until the block ends; the script sees messages, tools and temperature of the requests."""
    listening = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listening.bind(("127.0.0.1", 0))
    listening.listen(128)
    loopback = OpenAILoopback(f"http://127.0.0.1:{listening.getsockname()[1]}/v1")

    async def complete(request: Request) -> Response:
        body = await request.json()
        loopback.requests.append(body)
        if not request.headers.get("authorization", "").startswith("Bearer "):
            return JSONResponse({"error": {"message": "no key", "type": "invalid_request_error"}}, status_code=401)
        # Closed after each answer, so that no client keeps a socket that nobody closes.
        return JSONResponse(_completion(body, script(_turn(body))), headers={"Connection": "close"})

    app = Starlette(routes=[Route("/v1/chat/completions", complete, methods=["POST"])])
    config = uvicorn.Config(app, log_level="critical", access_log=False, http="h11", ws="none", lifespan="off")
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]}, daemon=True)
    thread.start()
    try:
        yield loopback
    finally:
        server.should_exit = True
        thread.join()
        listening.close()


def _turn(body: dict[str, Any]) -> Turn:
    tools = tuple(tool["function"]["name"] for tool in body.get("tools", ()))
    return Turn(tuple(convert_to_messages(body["messages"])), tools, float(body.get("temperature") or 0.0), draw=0.999)


def _completion(body: dict[str, Any], answer: AIMessage) -> dict[str, Any]:
    calls = [
        {
            "id": call["id"],
            "type": "function",
            "function": {"name": call["name"], "arguments": json.dumps(call["args"])},
        }
        for call in answer.tool_calls
    ]
    message = {"role": "assistant", "content": answer.content or None, **({"tool_calls": calls} if calls else {})}
    return {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 1,
        "model": body["model"],
        "choices": [{"index": 0, "message": message, "finish_reason": "tool_calls" if calls else "stop"}],
        "usage": {"prompt_tokens": 11, "completion_tokens": 7, "total_tokens": 18},
    }
