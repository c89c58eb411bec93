"""Finding the tools, ToolNodes and models of a compiled graph, wherever its code keeps them."""

from __future__ import annotations

import functools
import inspect
import sys
from collections import deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from types import CodeType, FunctionType, MethodType, ModuleType
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from langchain_core.tools import BaseTool
    from langgraph.prebuilt import ToolNode
    from langgraph.pregel import Pregel

MAX_OBJECTS: Final = 50_000
_MAX_ITEMS: Final = 1_000
_LIBRARIES: Final = frozenset(
    {
        "agentctl", "langgraph", "langchain", "langchain_core", "langchain_openai", "langchain_anthropic", "langsmith",
        "deepagents", "pydantic", "pydantic_core", "httpx", "openai", "anthropic", "typing_extensions", "psycopg",
        "psycopg_pool", "aiosqlite",
    }
)  # fmt: skip
_ATOMS: Final = (str, bytes, int, float, complex, type(None), type, CodeType)


@dataclass(frozen=True, slots=True)
class FoundToolNode:
    """A ToolNode and where it is: node names from the root (`agent|tools`), a tool on the way in round brackets.

    `static_targets` are the nodes that plain edges lead to from it; None where it also routes by condition, or is not
    itself a node.
    """

    path: str
    node: ToolNode
    static_targets: frozenset[str] | None


@dataclass(frozen=True, slots=True)
class FoundTool:
    """A tool and where it was first met."""

    path: str
    tool: BaseTool


@dataclass(frozen=True, slots=True)
class Found:
    """What a walk found.

    Attributes:
        tool_nodes: ToolNodes, each where it was first met.
        tools: Tools, each where it was first met.
        models: Class names of models.
        complete: False where the walk stopped at its limit.
        static_targets: By the path of each node, the nodes that plain edges lead to from it; None where it also routes
            by condition, or where nodes of several graphs with different edges have that path.
    """

    tool_nodes: tuple[FoundToolNode, ...]
    tools: tuple[FoundTool, ...]
    models: tuple[str, ...]
    complete: bool = True
    static_targets: Mapping[str, frozenset[str] | None] = field(default_factory=dict)

    def in_tool_nodes(self) -> frozenset[int]:
        """Returns the identities of the tools that ToolNodes call; all others are called by code of a node."""
        return frozenset(map(id, self._of_tool_nodes()))

    def tools_by_name(self) -> dict[str, BaseTool]:
        """Returns all tools, those of ToolNodes too; of several with one name the one that was met first."""
        by_name: dict[str, BaseTool] = {}
        for tool in (*(entry.tool for entry in self.tools), *self._of_tool_nodes()):
            by_name.setdefault(tool.name, tool)
        return by_name

    def _of_tool_nodes(self) -> Iterator[BaseTool]:
        return (tool for found in self.tool_nodes for tool in found.node.tools_by_name.values())


@functools.lru_cache(maxsize=8)
def walk(graph: Pregel[Any, Any, Any, Any]) -> Found:
    """Returns the tools, ToolNodes and models that a compiled graph can reach without being run.

    One graph is walked once, however many parts of a command ask.

    It goes through nodes, subgraphs, closures, the globals that functions name, and attributes of the application's own
    objects. What is built while the graph runs, and plain functions that are no tools, it cannot see.
    """
    return _Walker().walk(graph)


class _Walker:
    def __init__(self) -> None:
        self._queue: deque[tuple[object, str]] = deque()
        self._seen: dict[int, object] = {}
        self._tool_nodes: list[FoundToolNode] = []
        self._tools: list[FoundTool] = []
        self._models: dict[str, None] = {}
        self._targets: dict[str, frozenset[str] | None] = {}

    def walk(self, graph: object) -> Found:
        self._queue.append((graph, ""))
        while self._queue and len(self._seen) < MAX_OBJECTS:
            self._visit(*self._queue.popleft())
        return Found(
            tuple(self._tool_nodes), tuple(self._tools), tuple(self._models), not self._queue, dict(self._targets)
        )

    def _push(self, value: object, path: str) -> None:
        if not isinstance(value, _ATOMS) and id(value) not in self._seen:
            self._queue.append((value, path))

    def _first(self, value: object) -> bool:
        """Returns whether a value is met for the first time; it is kept, so that its identity stays its own."""
        if id(value) in self._seen:
            return False
        self._seen[id(value)] = value
        return True

    def _visit(self, value: object, path: str) -> None:
        from langchain_core.language_models import BaseLanguageModel
        from langchain_core.tools import BaseTool
        from langgraph.prebuilt import ToolNode
        from langgraph.pregel import Pregel

        if not self._first(value):
            return
        if isinstance(value, Pregel):
            self._visit_graph(value, path)
        elif isinstance(value, ToolNode):
            self._add_tool_node(value, path, None)
        elif isinstance(value, BaseTool):
            if not _is_only_a_schema(value):
                self._tools.append(FoundTool(path, value))
            for inner in vars(value).values():
                self._push(inner, _join(path, f"({value.name})"))
        elif isinstance(value, BaseLanguageModel):
            self._models[type(value).__name__] = None
        else:
            for inner in _inside(value):
                self._push(inner, path)

    def _visit_graph(self, graph: Pregel[Any, Any, Any, Any], path: str) -> None:
        """ToolNodes that are nodes come first, or they would be met through the closure of another node."""
        from langgraph.prebuilt import ToolNode

        for name, node in graph.nodes.items():
            place, targets = _join(path, name), _static_targets(graph, name)
            self._targets[place] = targets if self._targets.get(place, targets) == targets else None
            bound = _unbound(node.bound)
            if isinstance(bound, ToolNode) and self._first(bound):
                self._add_tool_node(bound, place, targets)
        for name, node in graph.nodes.items():
            for inner in (node.bound, *node.writers, *(node.subgraphs or ())):
                self._push(inner, _join(path, name))

    def _add_tool_node(self, node: ToolNode, path: str, static_targets: frozenset[str] | None) -> None:
        self._tool_nodes.append(FoundToolNode(path, node, static_targets))
        for inner in vars(node).values():
            self._push(inner, path)


def _join(path: str, name: str) -> str:
    return f"{path}|{name}" if path else name


def _unbound(bound: object) -> object:
    from langchain_core.runnables.base import RunnableBindingBase

    while isinstance(bound, RunnableBindingBase):
        bound = bound.bound
    return bound


def _static_targets(graph: Pregel[Any, Any, Any, Any], node: str) -> frozenset[str] | None:
    """Source: StateGraph.edges, .waiting_edges, .branches (langgraph 1.2.24)."""
    builder = getattr(graph, "builder", None)
    if builder is None or builder.branches.get(node):
        return None
    return frozenset(end for start, end in builder.edges if start == node)


def _inside(value: object) -> Iterator[object]:
    if isinstance(value, functools.partial):
        yield from (value.func, value.args, value.keywords)
    elif isinstance(value, MethodType):
        yield from (value.__self__, value.__func__)
    elif isinstance(value, FunctionType):
        yield from _reached(value)
    elif isinstance(value, Mapping):
        yield from _some(value.values()) if type(value) in (dict, functools.partial) else ()
    elif type(value) in (list, tuple, set, frozenset):
        yield from _some(value)
    elif not isinstance(value, ModuleType) and _is_followed(value):
        yield from getattr(value, "__dict__", {}).values()
        yield from (getattr(value, name) for name in _slots(type(value)) if hasattr(value, name))


def _some(values: Any) -> Iterator[object]:
    for count, value in enumerate(values):
        if count >= _MAX_ITEMS:
            return
        yield value


def _is_followed(value: object) -> bool:
    """Returns whether an object's attributes are looked at: the application's own, and what LangChain runs."""
    from langchain_core.runnables import Runnable

    root = type(value).__module__.partition(".")[0]
    if root in sys.stdlib_module_names:
        return False
    if root not in _LIBRARIES:
        return True
    return isinstance(value, Runnable) or root in {"agentctl", "langgraph", "langchain", "deepagents"}


def _slots(kind: type) -> Iterator[str]:
    for base in kind.__mro__:
        slots = vars(base).get("__slots__", ())
        yield from (slots,) if isinstance(slots, str) else (name for name in slots if not name.startswith("__"))


def _reached(function: FunctionType) -> Iterator[object]:
    """Yields what a function holds and, in the application's own code, the globals that it names."""
    for cell in function.__closure__ or ():
        try:
            yield cell.cell_contents
        except ValueError:
            continue
    yield from function.__defaults__ or ()
    yield from (function.__kwdefaults__ or {}).values()
    if (wrapped := getattr(function, "__wrapped__", None)) is not None:
        yield wrapped
    root = (function.__module__ or "").partition(".")[0]
    if root in _LIBRARIES or root in sys.stdlib_module_names:
        return
    names = {name for code in _codes(function.__code__) for name in code.co_names}
    for name in names:
        value = function.__globals__.get(name)
        if isinstance(value, ModuleType):
            yield from (vars(value)[inner] for inner in names if inner in vars(value))
        elif value is not None and not inspect.isbuiltin(value):
            yield value


def _codes(code: CodeType) -> Iterator[CodeType]:
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _codes(constant)


def _is_only_a_schema(tool: object) -> bool:
    """Returns whether a tool has nothing to run: an agent binds one to its model for the shape of the final answer.

    Source: langchain/agents/structured_output.py, OutputToolBinding (langchain 1.5.2).
    """
    from langchain_core.tools import StructuredTool

    return type(tool) is StructuredTool and tool.func is None and tool.coroutine is None
