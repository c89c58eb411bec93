"""Tools written once, names and argument schemas and effects: production and sandbox cannot differ in them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Annotated, Any

from langchain_core.tools import InjectedToolCallId, StructuredTool
from pydantic import BaseModel

from agentctl.records.runs import Effect
from agentctl.sandbox.registry import ToolRegistry


class EffectArguments(BaseModel):
    """Arguments of a tool with an effect. The id of the call is injected: the idempotency key is made of it."""

    tool_call_id: Annotated[str, InjectedToolCallId]


@dataclass(frozen=True, slots=True)
class ToolSpec:
    """One tool as it is called, and its effect."""

    name: str
    description: str
    arguments: type[BaseModel]
    effect: Effect


def build_registry(
    specs: Iterable[ToolSpec], functions: Mapping[str, Callable[..., Any]], *, unanswered: Collection[str] = ()
) -> ToolRegistry:
    """Builds a registry that holds every tool of a workflow.

    Args:
        specs: The tools.
        functions: What runs, by tool name. Parameters annotated `RunnableConfig` or `ToolRuntime` are
            injected and hidden from the model.
        unanswered: Tools that a sandbox knows by schema and effect only.

    Raises:
        KeyError: a tool has no function.
    """
    registry = ToolRegistry()
    for spec in specs:
        tool = StructuredTool.from_function(
            functions[spec.name],
            name=spec.name,
            description=spec.description,
            args_schema=spec.arguments,
            handle_tool_error=True,
        )
        registry.register(tool, effect=spec.effect, answers=spec.name not in unanswered)
    return registry
