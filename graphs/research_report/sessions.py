"""Held MCP sessions: one for each tenant, in one thread with an event loop, for callers that wait."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Collection, Coroutine, Mapping
from concurrent.futures import Future
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeVar

from langchain_core.tools import BaseTool, ToolException

from graphs.common.services import ServiceUnavailable

SERVER = "web"
T = TypeVar("T")
Tools = Mapping[str, BaseTool]


class NoSuchTenant(PermissionError):
    """There are no credentials for this tenant."""


class WebTools(Protocol):
    """Calls a tool of the web server for a tenant."""

    def call(self, tenant: str, tool: str, args: Mapping[str, Any]) -> str:
        """Returns the tool's text.

        Raises:
            ServiceUnavailable: the server cannot be reached, or answers that it failed.
        """
        ...


@dataclass(slots=True)
class _Held:
    """A tenant's session, while it lasts."""

    tools: Tools
    close: asyncio.Event
    ended: asyncio.Task[None]


@dataclass(slots=True)
class McpSessions:
    """Sessions with one MCP server, opened when a tenant first calls, and again where one was lost.

    MCP clients are async only and a session belongs to the task that opened it: each is held by a task of its own, in
    a loop of its own thread. A caller blocks on it; under an async graph tools are called from worker threads.

    Attributes:
        url: The server, streamable HTTP.
        tokens: Bearer tokens by tenant; `*` serves tenants without one.
        wanted: The tools to use. Others of the server are never seen by an agent.
        timeout_s: For a call, connecting included.
    """

    url: str
    tokens: Mapping[str, str]
    wanted: Collection[str]
    timeout_s: float = 30.0
    _held: dict[str, _Held] = field(default_factory=dict, init=False)
    _opening: dict[str, asyncio.Lock] = field(default_factory=dict, init=False)
    _loop: asyncio.AbstractEventLoop | None = field(default=None, init=False)
    _thread: threading.Thread | None = field(default=None, init=False)
    _lock: threading.Lock = field(default_factory=threading.Lock, init=False)

    def call(self, tenant: str, tool: str, args: Mapping[str, Any]) -> str:
        """Calls a tool in the tenant's session.

        Raises:
            NoSuchTenant: the tenant has no token.
            ServiceUnavailable: the server cannot be reached, or the tool failed.
        """
        token = self.tokens.get(tenant, self.tokens.get("*"))
        if token is None:
            raise NoSuchTenant(f"{tenant} has no credentials for the web server")
        waiting = self._submit(self._call(tenant, token, tool, dict(args)))
        try:
            return waiting.result(self.timeout_s)
        except TimeoutError as error:
            waiting.cancel()
            # A server that went away leaves its session waiting: the next call opens another.
            self._submit(self._drop(tenant)).result(self.timeout_s)
            raise ServiceUnavailable(f"{tool} did not answer within {self.timeout_s:g} s") from error

    def close(self) -> None:
        """Ends every session, and the thread."""
        with self._lock:
            loop, thread = self._loop, self._thread
            self._loop = self._thread = None
        if loop is None or thread is None:
            return
        asyncio.run_coroutine_threadsafe(self._end_all(), loop).result(self.timeout_s)
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()

    def _submit(self, work: Coroutine[Any, Any, T]) -> Future[T]:
        with self._lock:
            if self._loop is None:
                self._loop = asyncio.new_event_loop()
                self._thread = threading.Thread(target=self._loop.run_forever, name="mcp-sessions", daemon=True)
                self._thread.start()
            return asyncio.run_coroutine_threadsafe(work, self._loop)

    async def _call(self, tenant: str, token: str, tool: str, args: dict[str, Any]) -> str:
        held = await self._session(tenant, token)
        try:
            return _text(await held.tools[tool].ainvoke(args))
        except ToolException as error:
            raise ServiceUnavailable(f"{tool}: {error}") from error
        except Exception as error:
            await self._drop(tenant, held)
            raise ServiceUnavailable(f"{tool}: the session was lost: {error}") from error

    async def _session(self, tenant: str, token: str) -> _Held:
        async with self._opening.setdefault(tenant, asyncio.Lock()):
            held = self._held.get(tenant)
            if held is not None and not held.ended.done():
                return held
            opened: asyncio.Future[Tools] = asyncio.get_running_loop().create_future()
            close = asyncio.Event()
            task = asyncio.create_task(_hold(lambda: _connected(self.url, token, self.wanted), opened, close))
            try:
                tools = await opened
            except Exception as error:
                raise ServiceUnavailable(f"the web server cannot be used: {_cause(error)}") from error
            self._held[tenant] = _Held(tools, close, task)
            return self._held[tenant]

    async def _drop(self, tenant: str, lost: _Held | None = None) -> None:
        """Lets go of a tenant's session; where one is named as lost, of no other that was opened since."""
        held = self._held.get(tenant)
        if held is not None and lost in (None, held):
            del self._held[tenant]
            held.close.set()

    async def _end_all(self) -> None:
        held = list(self._held.values())
        self._held.clear()
        for each in held:
            each.close.set()
        await asyncio.gather(*(each.ended for each in held), return_exceptions=True)


async def _hold(
    connect: Callable[[], AbstractAsyncContextManager[Tools]], opened: asyncio.Future[Tools], close: asyncio.Event
) -> None:
    """Opens a session and keeps it until it is to be closed; in one task, as its context managers ask for."""
    try:
        async with connect() as tools:
            opened.set_result(tools)
            await close.wait()
    except BaseException as error:
        if opened.done():
            return
        opened.set_exception(error)


@asynccontextmanager
async def _connected(url: str, token: str, wanted: Collection[str]) -> Any:
    """Connects, and yields the wanted tools, which must be there and only read."""
    from langchain_mcp_adapters.client import MultiServerMCPClient
    from langchain_mcp_adapters.tools import load_mcp_tools

    client = MultiServerMCPClient(
        {SERVER: {"transport": "streamable_http", "url": url, "headers": {"Authorization": f"Bearer {token}"}}}
    )
    async with client.session(SERVER) as session:
        offered = {tool.name: tool for tool in await load_mcp_tools(session, handle_tool_errors=False)}
        missing = sorted(set(wanted) - set(offered))
        if missing:
            raise ServiceUnavailable(f"the server has no {', '.join(missing)}")
        writing = sorted(name for name in wanted if not (offered[name].metadata or {}).get("readOnlyHint"))
        if writing:
            raise ServiceUnavailable(f"the server does not say that {', '.join(writing)} only reads")
        yield {name: offered[name] for name in wanted}


def _text(answer: Any) -> str:
    """Returns the text of a tool's answer: a string, or blocks of which the text counts."""
    if isinstance(answer, str):
        return answer
    return "".join(str(block.get("text", "")) if isinstance(block, dict) else str(block) for block in answer)


def _cause(error: BaseException) -> BaseException:
    """Returns what an exception group is about."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error
