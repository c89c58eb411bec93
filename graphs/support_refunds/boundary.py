"""The tools node's boundary: whose tool it is, whether a refund was decided, and whether the result can be trusted."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from langchain_core.messages import ToolMessage
from langgraph.prebuilt.tool_node import ToolCallRequest
from langgraph.types import Command

from graphs.common.owners import caller_of, check_owner
from graphs.support_refunds.catalog import AGENT_TOOLS
from graphs.support_refunds.state import Settings
from graphs.support_refunds.validation import InvalidResult, check_result

Result = ToolMessage | Command[Any]


class ToolBoundary:
    """Wraps each tool call of a ToolNode.

    Args:
        defaults: Settings that a run's configuration may override.
    """

    def __init__(self, defaults: Settings) -> None:
        self._defaults = defaults

    def call(self, request: ToolCallRequest, execute: Callable[[ToolCallRequest], Result]) -> Result:
        """Refuses, or executes and checks (sync)."""
        refused = self._refuse(request)
        return refused if refused is not None else self._checked(request, execute(request))

    async def acall(self, request: ToolCallRequest, execute: Callable[[ToolCallRequest], Awaitable[Result]]) -> Result:
        """Refuses, or executes and checks (async)."""
        refused = self._refuse(request)
        return refused if refused is not None else self._checked(request, await execute(request))

    def _refuse(self, request: ToolCallRequest) -> ToolMessage | None:
        state: Mapping[str, Any] = request.state
        check_owner(state.get("owner"), caller_of(_configurable(request)))
        name, agent = request.tool_call["name"], str(state.get("active_agent", ""))
        if name not in AGENT_TOOLS.get(agent, ()):
            return _error(request, f"{agent or 'this agent'} has no tool {name}")
        if name != "issue_refund":
            return None
        approval = state.get("approvals", {}).get(request.tool_call["id"])
        if approval is None:
            return _error(request, "this refund was not approved")
        if approval["decision"] == "approve":
            return None
        verb = "rejected" if approval["decision"] == "reject" else "refused"
        return _error(request, f"the refund was {verb}: {approval['reason']}.")

    def _checked(self, request: ToolCallRequest, result: Result) -> Result:
        name = request.tool_call["name"]
        request.runtime.stream_writer({"progress": f"{name} answered"})
        settings = self._defaults.over(_configurable(request))
        if not isinstance(result, ToolMessage) or result.status == "error" or not settings.validate_results:
            return result
        try:
            check_result(name, request.tool_call["args"], str(result.content))
        except InvalidResult as error:
            return _error(request, f"{name} gave a result that cannot be right: {error}")
        return result


def _error(request: ToolCallRequest, text: str) -> ToolMessage:
    call = request.tool_call
    return ToolMessage(text, name=call["name"], tool_call_id=str(call["id"]), status="error")


def _configurable(request: ToolCallRequest) -> Mapping[str, Any]:
    return request.runtime.config.get("configurable", {})
