"""Private names of LangGraph's ToolNode and LangChain's BaseTool, all of them here.

`tests/contract/test_toolnode_contract.py` fails when a version changes what is relied on.

Source: langgraph/prebuilt/tool_node.py (langgraph-prebuilt 1.1.3), langchain_core/tools/base.py (langchain-core 1.8.3).
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, TypeAlias, get_origin

if TYPE_CHECKING:
    from langchain_core.tools import BaseTool
    from langgraph.prebuilt import ToolNode
    from langgraph.prebuilt.tool_node import ToolCallRequest

Execute: TypeAlias = "Callable[[ToolCallRequest], Any]"
ExecuteAsync: TypeAlias = "Callable[[ToolCallRequest], Awaitable[Any]]"
Hook: TypeAlias = "Callable[[ToolCallRequest, Execute], Any]"
HookAsync: TypeAlias = "Callable[[ToolCallRequest, ExecuteAsync], Awaitable[Any]]"

_SYNC: Final = "_execute_tool_sync"
_ASYNC: Final = "_execute_tool_async"


def wrap(node: ToolNode, hook: Hook, hook_async: HookAsync) -> Mapping[str, object]:
    """Puts a hook around each tool call of a node, inside all its `wrap_tool_call` middleware; returns what was there.

    The methods that every such wrapper ends in are covered on the instance. A wrapper of our own in their place would
    change what becomes of an error: ToolNode turns more of them into messages where a wrapper is set.
    """
    before: dict[str, object] = {name: vars(node)[name] for name in (_SYNC, _ASYNC) if name in vars(node)}
    execute_sync, execute_async = node._execute_tool_sync, node._execute_tool_async

    def hooked(request: ToolCallRequest, input_type: Any, config: Any) -> Any:
        return hook(request, lambda inner: execute_sync(inner, input_type, config))

    async def hooked_async(request: ToolCallRequest, input_type: Any, config: Any) -> Any:
        return await hook_async(request, lambda inner: execute_async(inner, input_type, config))

    vars(node).update({_SYNC: hooked, _ASYNC: hooked_async})
    return before


def unwrap(node: ToolNode, before: Mapping[str, object]) -> None:
    """Takes the hook out of a node again."""
    for name in (_SYNC, _ASYNC):
        vars(node).pop(name, None)
    vars(node).update(before)


def wants_store(node: ToolNode) -> bool:
    """Returns whether a tool of the node asks for the memory store to be injected."""
    return any(injected.store for injected in node._injected_args.values())


def model_args(tool: BaseTool, tool_input: object) -> dict[str, object]:
    """Returns the arguments that a model (or a node) gave, without the injected ones."""
    if isinstance(tool_input, Mapping):
        return dict(tool._filter_injected_args(dict(tool_input)))
    return {next(iter(tool.args), "input"): tool_input}


def returns_text(tool: BaseTool | None) -> bool:
    """Returns whether a tool's function says that it returns text."""
    return _returned(tool) in (str, "str")


def returns_command(tool: BaseTool | None) -> bool:
    """Returns whether a tool's function says that it returns a Command, of whatever nodes."""
    from langgraph.types import Command

    said = _returned(tool)
    return get_origin(said) is Command or said is Command or (isinstance(said, str) and said.startswith("Command"))


def _returned(tool: BaseTool | None) -> object:
    function = getattr(tool, "func", None) or getattr(tool, "coroutine", None)
    return getattr(function, "__annotations__", {}).get("return")


def with_injected(tool: BaseTool, args: Mapping[str, object], tool_input: object) -> dict[str, object]:
    """Returns `args` with those injected values of `tool_input` that `tool` takes too."""
    given = tool_input if isinstance(tool_input, Mapping) else {}
    fields: Mapping[str, object] = getattr(tool.args_schema, "model_fields", {})
    taken = tool._injected_args_keys | fields.keys()
    return {**{name: value for name, value in given.items() if name in taken and name not in args}, **args}


@dataclass(frozen=True, slots=True)
class Rejection:
    """What a tool says to arguments that do not fit its schema."""

    reply: object


def rejection(tool: BaseTool, tool_input: object, tool_call_id: str | None) -> Rejection | None:
    """Returns what the tool answers where its arguments are invalid and it handles that itself, or None if they fit.

    Raises:
        Exception: the arguments are invalid and the tool leaves that to its caller, as the tool itself would raise.
    """
    from langchain_core.tools import ToolException
    from langchain_core.tools.base import _format_output, _handle_tool_error, _handle_validation_error
    from pydantic import ValidationError
    from pydantic.v1 import ValidationError as ValidationErrorV1

    given: Any = dict(tool_input) if isinstance(tool_input, Mapping) else tool_input
    content: Any
    try:
        tool._to_args_and_kwargs(given, tool_call_id)
    except (ValidationError, ValidationErrorV1) as error:
        if not tool.handle_validation_error:
            raise
        content = _handle_validation_error(error, flag=tool.handle_validation_error)
    except ToolException as error:
        if not tool.handle_tool_error:
            raise
        content = _handle_tool_error(error, flag=tool.handle_tool_error)
    else:
        return None
    return Rejection(_format_output(content, None, tool_call_id, tool.name, "error"))


def caller_of(config: object) -> str:
    """Returns the namespace of the task that a node's config belongs to, '' where it is of none.

    Source: langgraph/pregel/_algo.py (langgraph 1.2.24).
    """
    configurable = config.get("configurable") if isinstance(config, Mapping) else None
    ns = configurable.get("checkpoint_ns") if isinstance(configurable, Mapping) else None
    return str(ns) if ns else ""


def namespace_of(config: object) -> str:
    """Returns the namespace of the graph that a node's config belongs to, '' for the root."""
    return caller_of(config).rpartition("|")[0]
