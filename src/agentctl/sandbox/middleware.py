"""Middleware of agents that is synchronous only, run by the event loop in which every run of ours goes on.

An application that calls `agent.invoke` may have middleware without an async form, and LangChain refuses to run such
middleware asynchronously. Here it runs in a thread, and what it calls runs in the loop.

Source: AgentMiddleware.awrap_model_call and awrap_tool_call, langchain/agents/middleware/types.py; which middleware an
agent asks for them, `create_agent`, langchain/agents/factory.py (langchain 1.5.2).
"""

from __future__ import annotations

import asyncio
import contextvars
import functools
from collections.abc import Awaitable, Callable
from typing import Any, Final

_MARK: Final = "__agentctl_bridged__"
_WRAPPERS: Final = {"awrap_model_call": "wrap_model_call", "awrap_tool_call": "wrap_tool_call"}


def bridge_middleware() -> None:
    """Lets agents that are built from now on run their synchronous middleware asynchronously. Cheap to call again."""
    try:
        from langchain.agents.middleware import AgentMiddleware
    except ModuleNotFoundError:
        return
    for name, sync_name in _WRAPPERS.items():
        refusing = getattr(AgentMiddleware, name)
        if not hasattr(refusing, _MARK):
            setattr(AgentMiddleware, name, _bridged(refusing, sync_name, getattr(AgentMiddleware, sync_name)))


def _bridged(
    refusing: Callable[..., Awaitable[Any]], sync_name: str, default: Callable[..., Any]
) -> Callable[..., Awaitable[Any]]:
    """Returns what stands for a missing async method: the sync one where the middleware has it, else the refusal."""

    @functools.wraps(refusing)
    async def bridged(self: Any, request: Any, handler: Callable[[Any], Awaitable[Any]]) -> Any:
        if getattr(type(self), sync_name) is default:
            return await refusing(self, request, handler)
        loop = asyncio.get_running_loop()

        def handle(inner: Any) -> Any:
            return asyncio.run_coroutine_threadsafe(_awaited(handler, inner), loop).result()

        context = contextvars.copy_context()
        return await loop.run_in_executor(None, context.run, getattr(self, sync_name), request, handle)

    setattr(bridged, _MARK, True)
    return bridged


async def _awaited(handler: Callable[[Any], Awaitable[Any]], request: Any) -> Any:
    return await handler(request)
