"""The context that a graph asks for (`context_schema`), checked before anything runs."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from agentctl.errors import UsageError

if TYPE_CHECKING:
    from langgraph.pregel import Pregel


def require_context(
    graph: Pregel[Any, Any, Any, Any], context: Mapping[str, object] | None
) -> Mapping[str, object] | None:
    """Returns the context to run a graph with, checked against its context schema.

    Raises:
        UsageError: there is a schema and no context, or the context lacks or adds a field; the fields are named.
    """
    fields = context_fields(graph.context_schema)
    if not fields:
        return context
    named = ", ".join(name if required else f"{name} (optional)" for name, required in fields.items())
    shape = ", ".join(f'"{name}": ...' for name in fields)
    hint = f"give --context '{{{shape}}}'"
    if context is None:
        raise UsageError(f"the graph needs a context with {named}", hint=hint)
    unknown = [name for name in context if name not in fields]
    missing = [name for name, required in fields.items() if required and name not in context]
    if unknown or missing:
        wrong = [f"lacks {', '.join(missing)}"] * bool(missing) + [f"has unknown {', '.join(unknown)}"] * bool(unknown)
        raise UsageError(f"the context {' and '.join(wrong)}; the graph's context has {named}", hint=hint)
    return context


def context_fields(schema: Any) -> dict[str, bool]:
    """Returns the fields of a context schema (TypedDict, dataclass, pydantic model) and whether each is required."""
    if schema is None:
        return {}
    if dataclasses.is_dataclass(schema):
        empty = dataclasses.MISSING
        return {f.name: f.default is empty and f.default_factory is empty for f in dataclasses.fields(schema) if f.init}
    if isinstance(model_fields := getattr(schema, "model_fields", None), Mapping):
        return {name: info.is_required() for name, info in model_fields.items()}
    required = getattr(schema, "__required_keys__", None)
    annotations: Mapping[str, object] = getattr(schema, "__annotations__", {})
    return {name: required is None or name in required for name in annotations}
