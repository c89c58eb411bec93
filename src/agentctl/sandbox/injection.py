"""The sandbox around a compiled graph that knows nothing of it: its ToolNodes wrapped, its tools guarded, and back."""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from agentctl.sandbox import gate, toolnodes
from agentctl.sandbox.answers import Desk
from agentctl.sandbox.calls import Call
from agentctl.sandbox.walk import Found, FoundToolNode, walk

if TYPE_CHECKING:
    from langchain_core.tools import BaseTool
    from langgraph.prebuilt.tool_node import ToolCallRequest
    from langgraph.pregel import Pregel


@dataclass(frozen=True, slots=True)
class Sandbox:
    """A graph inside the sandbox. `running(desk)` makes a desk answer one run; many may go on side by side."""

    graph: Pregel[Any, Any, Any, Any]
    found: Found

    @property
    def direct_tools(self) -> tuple[str, ...]:
        """Tools that code calls itself, by path; their calls are seen by the gate alone."""
        in_nodes = self.found.in_tool_nodes()
        return tuple(f"{tool.path}|{tool.tool.name}" for tool in self.found.tools if id(tool.tool) not in in_nodes)


@contextmanager
def sandboxed(graph: Pregel[Any, Any, Any, Any], desk: Desk | None = None) -> Generator[Sandbox]:
    """Puts a compiled graph into the sandbox for the time of the block; everything is undone exactly afterwards.

    Args:
        graph: A compiled graph, any checkpointer; copies of it made by `graph.copy` are inside too.
        desk: Answers the one run made in the block; None where each run sets its own with `running`.
    """
    gate.install()
    found = walk(graph)
    tools = {id(entry.tool): entry.tool for entry in found.tools}
    tools.update((id(tool), tool) for entry in found.tool_nodes for tool in entry.node.tools_by_name.values())
    with ExitStack() as undo:
        undo.enter_context(gate.known(tuple(tools.values())))
        undo.enter_context(gate.routed(found.static_targets))
        for tool in tools.values():
            undo.enter_context(_guarded(tool))
        for tool_node in found.tool_nodes:
            before = toolnodes.wrap(tool_node.node, _hook(tool_node), _hook_async(tool_node))
            undo.callback(toolnodes.unwrap, tool_node.node, before)
        if desk is not None:
            undo.enter_context(gate.running(desk))
        yield Sandbox(graph, found)


@contextmanager
def _guarded(tool: BaseTool) -> Generator[None]:
    """Guards a tool's own functions against being called past the tool."""
    kept: dict[str, Callable[..., Any]] = {}
    for name in ("func", "coroutine"):
        function = vars(tool).get(name)
        if callable(function):
            kept[name] = function
            setattr(tool, name, gate.guarded(function, tool))
    try:
        yield
    finally:
        for name, function in kept.items():
            setattr(tool, name, function)


def _hook(found: FoundToolNode) -> toolnodes.Hook:
    def hook(request: ToolCallRequest, execute: toolnodes.Execute) -> Any:
        desk = gate.current_desk()
        if desk is None:
            return execute(request)
        if request.tool is None:
            return _unregistered(desk, request, found) or execute(request)
        with gate.framed(_frame(request, request.tool, found)):
            return execute(request)

    return hook


def _hook_async(found: FoundToolNode) -> toolnodes.HookAsync:
    async def hook(request: ToolCallRequest, execute: toolnodes.ExecuteAsync) -> Any:
        desk = gate.current_desk()
        if desk is None:
            return await execute(request)
        if request.tool is None:
            return _unregistered(desk, request, found) or await execute(request)
        with gate.framed(_frame(request, request.tool, found)):
            return await execute(request)

    return hook


def _frame(request: ToolCallRequest, tool: BaseTool, found: FoundToolNode) -> gate.Frame:
    call = request.tool_call
    return gate.Frame(tool, dict(call["args"]), call["id"], found.static_targets)


def _unregistered(desk: Desk, request: ToolCallRequest, found: FoundToolNode) -> object:
    """Returns the answer to a name that no tool has, or None: then the ToolNode says so itself, and nothing can run."""
    call = request.tool_call
    ns = toolnodes.namespace_of(request.runtime.config)
    return desk.answer_only(Call(call["name"], dict(call["args"]), call["id"], ns, None, True, found.static_targets))
