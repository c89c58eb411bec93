"""The guard on the plan: a sound one, the lead's own subagents only, dependencies first, at most so many at once."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

from langchain.agents.middleware.types import AgentMiddleware
from langchain_core.messages import AnyMessage, ToolMessage
from langgraph.prebuilt.tool_node import ToolCallRequest
from langgraph.types import Command

from graphs.research_report.middleware.calls import answers, last_ai, refusal, state_of
from graphs.research_report.plan import SubQuestion, problem, sub_questions, task_of
from graphs.research_report.policy import Policy

Result = ToolMessage | Command[Any]


class PlanGuard(AgentMiddleware[Any, None, Any]):
    """Refuses plans and tasks that the policy does not allow; the model reads why.

    Args:
        policy: The policy in force.
    """

    def __init__(self, policy: Policy) -> None:
        super().__init__()
        self._policy = policy

    def wrap_tool_call(self, request: ToolCallRequest, handler: Callable[[ToolCallRequest], Result]) -> Result:
        """Refuses, or goes on."""
        return self._refused(request) or handler(request)

    async def awrap_tool_call(
        self, request: ToolCallRequest, handler: Callable[[ToolCallRequest], Awaitable[Result]]
    ) -> Result:
        """The same, where the graph runs async."""
        return self._refused(request) or await handler(request)

    def _refused(self, request: ToolCallRequest) -> ToolMessage | None:
        call = request.tool_call
        reason = ""
        if call["name"] == "write_todos":
            reason = problem(sub_questions(call["args"].get("todos", ())), self._policy.max_sub_questions)
        elif call["name"] == "task" and call["args"].get("subagent_type") == "search":
            reason = self._task_problem(request)
        if not reason and call["name"] == "task":
            request.runtime.stream_writer({"progress": _progress(call["args"])})
        return refusal(call, reason) if reason else None

    def _task_problem(self, request: ToolCallRequest) -> str:
        messages: Sequence[AnyMessage] = state_of(request)["messages"]
        plan = {item.id: item for item in _plan(state_of(request))}
        mine = task_of(str(request.tool_call["args"].get("description", "")))
        if mine not in plan:
            return "the description must begin with `Sub-question q1:`, naming one of the plan"
        missing = sorted(set(plan[mine].after) - searched(messages))
        if missing:
            return f"{mine} waits for {', '.join(missing)}"
        together = [each["id"] for each in _searches(messages)]
        if together.index(request.tool_call["id"]) >= self._policy.max_parallel:
            return f"at most {self._policy.max_parallel} searches at once: ask for {mine} in the next turn"
        return ""


def searched(messages: Sequence[AnyMessage]) -> set[str]:
    """Returns the sub-questions that a search subagent has come back from."""
    answered = answers(messages)
    return {
        found
        for message in messages
        for call in getattr(message, "tool_calls", ())
        if call["name"] == "task"
        and (answer := answered.get(str(call["id"]))) is not None
        and answer.status != "error"
        and (found := task_of(str(call["args"].get("description", "")))) is not None
    }


def _plan(state: Mapping[str, Any]) -> list[SubQuestion]:
    """Returns the plan in force: the one that the same message writes, or else the stored one."""
    latest = last_ai(state["messages"])
    written = [
        call["args"].get("todos", ()) for call in (latest.tool_calls if latest else ()) if call["name"] == "write_todos"
    ]
    return sub_questions(written[-1] if written else state.get("todos") or ())


def _searches(messages: Sequence[AnyMessage]) -> list[Any]:
    latest = last_ai(messages)
    return [
        call
        for call in (latest.tool_calls if latest else ())
        if call["name"] == "task" and call["args"].get("subagent_type") == "search"
    ]


def _progress(args: Mapping[str, Any]) -> str:
    sub_question = task_of(str(args.get("description", "")))
    return f"searching {sub_question}" if sub_question else f"{args.get('subagent_type')} started"
