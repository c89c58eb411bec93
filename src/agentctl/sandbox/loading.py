"""A graph spec to a compiled graph, ready to be given another checkpointer."""

from __future__ import annotations

import asyncio
import dataclasses
import threading
from collections.abc import Coroutine, Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, TypeVar

from agentctl.errors import AgentctlError, is_of_called_code
from agentctl.sandbox.building import Given, GraphKind, build
from agentctl.sandbox.context import context_fields, require_context
from agentctl.sandbox.environment import environment, import_path
from agentctl.sandbox.failures import graph_failed
from agentctl.sandbox.graph_copies import copied
from agentctl.sandbox.middleware import bridge_middleware
from agentctl.sandbox.registry import ToolRegistry
from agentctl.sandbox.specs import GraphSpec, parse_spec
from agentctl.sandbox.toolnodes import wants_store
from agentctl.sandbox.walk import Found, walk

if TYPE_CHECKING:
    from langgraph.checkpoint.base import BaseCheckpointSaver
    from langgraph.pregel import Pregel
    from langgraph.store.base import BaseStore

T = TypeVar("T")

__all__ = ["LoadedGraph", "load_graph", "load_graph_async", "require_context"]


@dataclass(frozen=True, slots=True)
class LoadedGraph:
    """A compiled graph with what was around it when it was loaded; close it to put all of that back.

    Attributes:
        graph: The compiled graph, with its own checkpointer if it brought one: run `with_saver(...)` instead.
        spec: Where it came from.
        kind: What the attribute was.
        nodes: Node names, `__start__` left out.
        channels: Channels of the state, routing channels left out.
        context_fields: Fields of the context schema, () where there is none.
        found: Tools, ToolNodes and models that a walk over the graph met.
    """

    graph: Pregel[Any, Any, Any, Any]
    spec: GraphSpec
    kind: GraphKind
    nodes: tuple[str, ...]
    channels: tuple[str, ...]
    context_fields: tuple[str, ...]
    found: Found
    _around: AsyncExitStack = field(repr=False, compare=False)
    _loop: _Loop | None = field(default=None, repr=False, compare=False)

    @property
    def model(self) -> str:
        """Class names of the chat models that the graph holds, '' where none was met."""
        return ", ".join(self.found.models)

    def with_saver(
        self, saver: BaseCheckpointSaver[Any] | None, store: BaseStore | None = None
    ) -> Pregel[Any, Any, Any, Any]:
        """Returns the graph with another checkpointer and memory store; tools and nodes are shared with it.

        A memory store that the graph brought is never used: without `store` an empty one takes its place, also where a
        tool asks for one to be injected.
        """
        from langgraph.store.memory import InMemoryStore

        if store is None and (
            self.graph.store is not None or any(wants_store(entry.node) for entry in self.found.tool_nodes)
        ):
            store = InMemoryStore()
        return copied(self.graph, checkpointer=saver, store=store, cache=None)

    def close(self) -> None:
        """Leaves the graph's context manager, import path and environment. Safe to call twice.

        A graph loaded with `load_graph_async` is closed with `aclose` instead.
        """
        if self._loop is None:
            asyncio.run(self.aclose())
        elif self._loop.is_open:
            self._loop.run(self.aclose())
            self._loop.stop()

    async def aclose(self) -> None:
        """Does what `close` does, in the event loop that the graph was loaded in."""
        await self._around.aclose()

    def __enter__(self) -> LoadedGraph:
        return self

    def __exit__(self, *raised: object) -> None:
        self.close()

    async def __aenter__(self) -> LoadedGraph:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()


def load_graph(
    spec: str,
    *,
    project_root: Path | None = None,
    registry: ToolRegistry | None = None,
    model: object = None,
    memory: object = None,
    config: Mapping[str, object] | None = None,
    env: Mapping[str, str] | None = None,
    cwd: Path | None = None,
) -> LoadedGraph:
    """Loads the graph that a spec names, from code that is not in an event loop.

    What the attribute may be: a compiled graph; a builder; a function, async function or (async) context manager that
    gives one, taking nothing or a config; `build_graph(tools, *, model=None, memory=None)`, known by its parameter
    `tools`.

    Args:
        spec: `path.py:attr` or `pkg.module:attr`.
        project_root: Folder to import from; None takes the nearest langgraph.json's, else the file's own.
        registry: Tools for `build_graph`.
        model: Chat model for `build_graph`; None leaves the workflow's own.
        memory: Memory store for `build_graph`.
        config: Config for a function that takes one.
        env: Environment variables to set while the graph is loaded and run.
        cwd: Folder that relative paths start at.

    Raises:
        UsageError: the spec names no graph, or a `build_graph` was given no registry.
        NotFound: no such file, module or attribute; the candidates are like names.
        GraphFailed: importing or building the graph raised; a missing environment variable is named.
    """
    loop = _Loop()
    try:
        loaded = loop.run(
            load_graph_async(
                spec,
                project_root=project_root,
                registry=registry,
                model=model,
                memory=memory,
                config=config,
                env=env,
                cwd=cwd,
            )
        )
    except BaseException:
        loop.stop()
        raise
    return dataclasses.replace(loaded, _loop=loop)


async def load_graph_async(
    spec: str,
    *,
    project_root: Path | None = None,
    registry: ToolRegistry | None = None,
    model: object = None,
    memory: object = None,
    config: Mapping[str, object] | None = None,
    env: Mapping[str, str] | None = None,
    cwd: Path | None = None,
) -> LoadedGraph:
    """Does what `load_graph` does inside the running loop, where what an async context manager opens can be used."""
    parsed = parse_spec(spec, project_root=project_root, cwd=cwd)
    bridge_middleware()
    async with AsyncExitStack() as around:
        around.enter_context(environment(env or {}))
        around.enter_context(import_path(parsed.paths))
        try:
            kind, graph = await build(parsed, Given(registry, model, memory, config), around)
        except AgentctlError:
            raise
        except BaseException as error:
            if not is_of_called_code(error):
                raise
            raise graph_failed(parsed.text, error) from error
        return LoadedGraph(
            graph=graph,
            spec=parsed,
            kind=kind,
            nodes=tuple(name for name in graph.nodes if name != "__start__"),
            channels=_state_channels(graph),
            context_fields=tuple(context_fields(graph.context_schema)),
            found=walk(graph),
            _around=around.pop_all(),
        )


def _state_channels(graph: Pregel[Any, Any, Any, Any]) -> tuple[str, ...]:
    routing = ("branch:to:", "join:", "__")
    return tuple(name for name in graph.channels if not name.startswith(routing))


class _Loop:
    """An event loop in a thread of its own, for what a graph's async context manager keeps open."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="agentctl-graph", daemon=True)
        self._thread.start()

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result()

    def stop(self) -> None:
        if self.is_open:
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join()
            self._loop.close()

    @property
    def is_open(self) -> bool:
        return self._thread.is_alive()
