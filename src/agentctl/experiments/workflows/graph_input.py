"""Whether a graph would take an input as it is meant, found out before anything is written.

Source: langgraph 1.2.24, graph/state.py (`attach_node`: keys that the input schema lacks are dropped without a word;
`StateGraph.schemas`, `input_schema`), pregel/_io.py (`map_input`).
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from agentctl.errors import UsageError

if TYPE_CHECKING:
    from langgraph.pregel import Pregel

_ROOT = "__root__"


def check_input(graph: Pregel[Any, Any, Any, Any], value: object, *, name: str = "the graph") -> None:
    """Refuses input that a graph would reject, or parts of which it would lose without a word.

    Args:
        graph: A compiled graph.
        value: Its input, as JSON gives it.
        name: What messages call the graph.

    Raises:
        UsageError: it is no object where the state is one, has keys that are not the state's, or fails the model.
    """
    keys = input_keys(graph)
    if keys is None:
        return
    if not isinstance(value, Mapping):
        raise UsageError(
            f"the input of {name} is an object, not {_kind(value)}", hint=f"it takes: {', '.join(keys) or 'nothing'}"
        )
    _refuse_unknown(value, keys, name)
    _validate(graph, value, name)


def input_keys(graph: Pregel[Any, Any, Any, Any]) -> tuple[str, ...] | None:
    """Returns the keys that a graph's input may have; None where any value will do (the functional API)."""
    schema = _input_schema(graph)
    if schema is not None:
        keys = tuple(getattr(graph, "builder").schemas[schema])  # noqa: B009 - Pregel itself has no builder
        return None if keys == (_ROOT,) else tuple(dict.fromkeys((*keys, *_aliases(schema))))
    channels = graph.input_channels
    return None if isinstance(channels, str) else tuple(channels)


def _input_schema(graph: Pregel[Any, Any, Any, Any]) -> Any:
    builder = getattr(graph, "builder", None)
    schema = getattr(builder, "input_schema", None)
    return schema if schema in getattr(builder, "schemas", {}) else None


def _aliases(schema: Any) -> tuple[str, ...]:
    fields = getattr(schema, "model_fields", {})
    return tuple(field.alias for field in fields.values() if field.alias)


def _refuse_unknown(value: Mapping[Any, object], keys: Sequence[str], name: str) -> None:
    unknown = [str(key) for key in value if key not in keys]
    if not unknown:
        return
    near = difflib.get_close_matches(unknown[0], keys, n=1)
    meant = f"did you mean {near[0]}? " if near else ""
    raise UsageError(
        f"the input of {name} has no {', '.join(unknown)}", hint=f"{meant}it takes: {', '.join(keys) or 'nothing'}"
    )


def _validate(graph: Pregel[Any, Any, Any, Any], value: Mapping[Any, object], name: str) -> None:
    """Lets a Pydantic state say what is wrong."""
    from pydantic import BaseModel, ValidationError

    schema = _input_schema(graph)
    if not (isinstance(schema, type) and issubclass(schema, BaseModel)):
        return
    try:
        schema.model_validate(dict(value))
    except ValidationError as error:
        problems = [f"{'.'.join(map(str, each['loc'])) or 'input'}: {each['msg']}" for each in error.errors()]
        raise UsageError(f"the input of {name} does not fit: {'; '.join(problems)}") from error


def _kind(value: object) -> str:
    match value:
        case bool():
            return "a truth value"
        case int() | float():
            return "a number"
        case str():
            return "a text"
        case list():
            return "a list"
        case _:
            return type(value).__name__
