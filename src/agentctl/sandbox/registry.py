"""Tool registries: named tools with their effects, the one argument in which production and debug differ."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast, overload

from agentctl.errors import UsageError
from agentctl.records.runs import Effect

if TYPE_CHECKING:
    from langchain_core.tools import BaseTool
    from pydantic import BaseModel


@dataclass(frozen=True, slots=True)
class RegisteredTool:
    """A tool and its effect: `read` leaves the world as it is, `write` changes it, `state` touches graph state only.

    `answers` is False for a tool that a sandbox knows by schema and effect only: a call to it is blocked unless the
    recording, a person or a live read answers.
    """

    tool: BaseTool
    effect: Effect
    answers: bool = True

    @property
    def name(self) -> str:
        """The name the model calls it by."""
        return self.tool.name

    @property
    def schema(self) -> Mapping[str, object]:
        """The JSON schema of the arguments that a model fills in (injected ones left out)."""
        schema = self.tool.tool_call_schema
        return schema if isinstance(schema, dict) else cast("type[BaseModel]", schema).model_json_schema()


class ToolRegistry:
    """Named tools with JSON-schema arguments and an effect each.

    Example:
        tools = ToolRegistry()

        @tools.register(effect="read")
        def lookup_order(order_id: str) -> str:
            "Looks an order up."
            ...

        graph = build_graph(tools)
    """

    def __init__(self, tools: Iterable[RegisteredTool] = ()) -> None:
        self._tools: dict[str, RegisteredTool] = {}
        for entry in tools:
            self._put(entry)

    def _put(self, entry: RegisteredTool) -> None:
        if entry.name in self._tools:
            raise UsageError(f"the registry has two tools named {entry.name}")
        self._tools[entry.name] = entry

    @overload
    def register(self, tool: BaseTool | Callable[..., Any], *, effect: Effect, answers: bool = True) -> BaseTool: ...
    @overload
    def register(
        self, tool: None = None, *, effect: Effect, answers: bool = True
    ) -> Callable[[Callable[..., Any]], BaseTool]: ...
    def register(
        self, tool: BaseTool | Callable[..., Any] | None = None, *, effect: Effect, answers: bool = True
    ) -> BaseTool | Callable[[Callable[..., Any]], BaseTool]:
        """Adds a tool: a BaseTool, or a function with type hints and a docstring (sync or async); also a decorator.

        Raises:
            UsageError: a tool of that name is there already.
        """
        if tool is None:
            return lambda function: self.register(function, effect=effect, answers=answers)
        from langchain_core.tools import BaseTool as Base
        from langchain_core.tools import tool as make_tool

        built = tool if isinstance(tool, Base) else make_tool(tool)
        self._put(RegisteredTool(built, effect, answers))
        return built

    def __getitem__(self, name: str) -> BaseTool:
        return self._tools[name].tool

    def __contains__(self, name: object) -> bool:
        return name in self._tools

    def __iter__(self) -> Iterator[RegisteredTool]:
        return iter(self._tools.values())

    def __len__(self) -> int:
        return len(self._tools)

    @property
    def names(self) -> tuple[str, ...]:
        """Tool names in the order they were registered."""
        return tuple(self._tools)

    def effect(self, name: str) -> Effect | None:
        """Returns the tool's effect, or None where the registry does not know it."""
        entry = self._tools.get(name)
        return entry.effect if entry else None

    def answers(self, name: str) -> bool:
        """Tells whether the registry holds a tool of that name that can answer for itself."""
        entry = self._tools.get(name)
        return entry is not None and entry.answers

    def only(self, *names: str) -> list[BaseTool]:
        """Returns the named tools, in that order: what one agent may use.

        Raises:
            UsageError: the registry lacks one of them.
        """
        missing = [name for name in names if name not in self._tools]
        if missing:
            raise UsageError(f"the registry lacks {', '.join(missing)}", hint=f"it has: {', '.join(self._tools)}")
        return [self._tools[name].tool for name in names]
