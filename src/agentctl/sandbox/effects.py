"""Which effect a tool has: said by a person, by a registry, or known from where the tool comes from."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from agentctl.records.runs import Effect
from agentctl.sandbox.registry import ToolRegistry

if TYPE_CHECKING:
    from langchain_core.tools import BaseTool

_TODOS: Final = ("langchain.agents.middleware.todo", frozenset({"write_todos"}))
_SUBAGENTS: Final = ("deepagents.middleware.subagents", frozenset({"task"}))
_FILES: Final = (
    "deepagents.middleware.filesystem",
    frozenset({"ls", "read_file", "write_file", "edit_file", "delete", "glob", "grep"}),
)
_SHELL: Final = ("deepagents.middleware.filesystem", frozenset({"execute"}))


@dataclass(frozen=True, slots=True)
class Effects:
    """The effects in force: what a person said (`--effect`), then the registries in order, then the tool's origin."""

    said: Mapping[str, Effect] = field(default_factory=dict)
    registries: tuple[ToolRegistry, ...] = ()

    def of(self, name: str, tool: BaseTool | None) -> Effect | None:
        """Returns a tool's effect, or None where nothing tells it: such a tool counts as `write`.

        A shell is `write` whatever anyone says.
        """
        if tool is not None and _comes_from(tool, _SHELL):
            return "write"
        if name in self.said:
            return self.said[name]
        for registry in self.registries:
            if (effect := registry.effect(name)) is not None:
                return effect
        return origin_effect(tool) if tool is not None else None


def origin_effect(tool: BaseTool) -> Effect | None:
    """Returns `state` for the tools of known libraries that touch graph state alone or run another graph, else None.

    These are the todo list, the virtual files (only where they live in graph state) and the subagents' `task`.

    Source: langchain/agents/middleware/todo.py (langchain 1.5.2), deepagents/middleware/{filesystem,subagents}.py
        (deepagents 0.7.32).
    """
    if _comes_from(tool, _TODOS) or _comes_from(tool, _SUBAGENTS):
        return "state"
    if _comes_from(tool, _FILES) and _files_in_state(tool):
        return "state"
    return None


def needs_registry(tool: BaseTool) -> bool:
    """Returns whether nothing but a registry can say what a tool does.

    Not so for the known ones that touch graph state alone, for a shell over files in graph state, which runs nothing,
    and for a tool that is a schema only: the shape of a structured answer, which no one calls.

    Source: OutputToolBinding, langchain/agents/structured_output.py (langchain 1.5.2); supports_execution,
        deepagents/middleware/filesystem.py (deepagents 0.7.32).
    """
    if hasattr(tool, "func") and _function(tool) is None:
        return False
    return origin_effect(tool) is None and not (_comes_from(tool, _SHELL) and _files_in_state(tool))


def _comes_from(tool: BaseTool, origin: tuple[str, frozenset[str]]) -> bool:
    module, names = origin
    function = _function(tool)
    return tool.name in names and getattr(function, "__module__", None) == module


def _function(tool: BaseTool) -> object:
    function = getattr(tool, "func", None) or getattr(tool, "coroutine", None)
    return inspect.unwrap(function) if callable(function) else None


def _files_in_state(tool: BaseTool) -> bool:
    from deepagents.backends import CompositeBackend, StateBackend

    def in_state(backend: object) -> bool:
        if isinstance(backend, CompositeBackend):
            return in_state(backend.default) and all(in_state(route) for route in backend.routes.values())
        return type(backend) is StateBackend

    function = _function(tool)
    if not inspect.isfunction(function):
        return False
    owner = inspect.getclosurevars(function).nonlocals.get("self")
    return in_state(getattr(owner, "backend", None))
