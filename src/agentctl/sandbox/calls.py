"""One tool call on its way to an answer, and the exception that stops a run which has none."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from agentctl.records.runs import ToolCallReport

if TYPE_CHECKING:
    from langchain_core.tools import BaseTool

CallKey = tuple[str, str]
"""(tool name, canonical arguments): what makes two calls the same."""


@dataclass(frozen=True, slots=True)
class Call:
    """One call as the graph makes it.

    Attributes:
        name: Tool name.
        args: Arguments without the injected ones (state, store, runtime, call id).
        id: The model's call id, or None for a call made directly in a node.
        ns: Checkpoint namespace of the graph that makes the call, '' for the root.
        tool: The tool that would run, or None for a name that no tool has.
        by_tool_node: Whether what the tool gives is taken for the graph: a ToolNode makes the call, or the tool says
            that it gives a Command, which code hands on too. Else code of the application uses the result itself.
        static_targets: Nodes that the node of the call always leads to by plain edges; None where it also routes by
            condition, or where its edges are not known.
        caller: Namespace of the task that makes the call, its own id last; '' where it is not known.
    """

    name: str
    args: Mapping[str, object]
    id: str | None
    ns: str = ""
    tool: BaseTool | None = None
    by_tool_node: bool = False
    static_targets: frozenset[str] | None = None
    caller: str = ""

    @property
    def tasks(self) -> frozenset[str]:
        """Ids of the task that makes the call and of those around it."""
        return frozenset(part.rpartition(":")[2] for part in self.caller.split("|") if ":" in part)

    @property
    def key(self) -> CallKey:
        """What the call is looked up by."""
        return self.name, canonical_args(self.args)


class Blocked(BaseException):
    """Stops the run at a call that nothing may answer.

    A BaseException, so that no error handler of the graph (`handle_tool_errors`, retry policies, `except Exception` in
    a node) can turn it into a message that the model then works with.

    Args:
        message: What was called, and why nothing answers.
        hint: The option that answers it, or None where nothing would (the run is over).
    """

    def __init__(self, message: str, hint: str | None = None) -> None:
        super().__init__(message)
        self.hint = hint


class CallBlocked(Blocked):
    """Stops the run at a tool call; the tool did not run.

    Args:
        report: The call as the ledger holds it.
        hint: What to paste to answer it, or None where nothing would (the run is over).
    """

    def __init__(self, report: ToolCallReport, hint: str | None = None) -> None:
        super().__init__(f"the call {report.name}({compact(report.args)}) has no answer, so nothing ran", hint)
        self.report = report


def canonical_args(args: object) -> str:
    """Returns arguments as JSON text that is equal for equal arguments: keys sorted, 120.0 written as 120."""
    return json.dumps(_canonical(args), sort_keys=True, separators=(",", ":"), ensure_ascii=False, default=repr)


def compact(value: object) -> str:
    """Returns a value as compact JSON; what JSON cannot hold is written as its repr."""
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False, default=repr)


def as_text(value: object) -> str:
    """Returns what a model would read: a string as it is, anything else as compact JSON."""
    return value if isinstance(value, str) else compact(value)


def _canonical(value: object) -> object:
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, Mapping):
        return {str(key): _canonical(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_canonical(inner) for inner in value]
    return value
