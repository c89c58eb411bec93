"""How one role's model is called: whose thread it is, which prompt, which temperature, and until when."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from langchain.agents.middleware.types import AgentMiddleware, ExtendedModelResponse, ModelRequest, ModelResponse
from langchain_core.messages import AIMessage, SystemMessage
from langgraph.types import Command

from graphs.common.owners import caller_of, check_owner
from graphs.common.versions import policy_of
from graphs.research_report.middleware.calls import configurable
from graphs.research_report.policy import Policy
from graphs.research_report.prompts import Role, prompt
from graphs.research_report.state import Settings

TIME_IS_UP = "The time of this run is up."
Response = ModelResponse[Any] | ExtendedModelResponse[Any] | AIMessage


class RoleCalls(AgentMiddleware[Any, None, Any]):
    """Sets a role's model calls up.

    The budget is counted per run, on a monotonic clock, and never stored: waiting for a reviewer costs nothing, and a
    copy of the thread that is run again later has all of it.

    Args:
        role: Whose calls.
        policies: Every version of the policy.
        defaults: Settings that a run's configuration may override.
        clock: Returns seconds that only grow.
    """

    def __init__(
        self, role: Role, policies: Mapping[str, Policy], defaults: Settings, clock: Callable[[], float]
    ) -> None:
        super().__init__()
        self._role = role
        self._policies = policies
        self._defaults = defaults
        self._clock = clock

    def wrap_model_call(
        self, request: ModelRequest[None], handler: Callable[[ModelRequest[None]], ModelResponse[Any]]
    ) -> Response:
        """Calls the model, or says that the time is up."""
        ends_s, prepared = self._prepare(request)
        return AIMessage(TIME_IS_UP) if prepared is None else _with_end(request, handler(prepared), ends_s)

    async def awrap_model_call(
        self, request: ModelRequest[None], handler: Callable[[ModelRequest[None]], Awaitable[ModelResponse[Any]]]
    ) -> Response:
        """The same, where the graph runs async."""
        ends_s, prepared = self._prepare(request)
        return AIMessage(TIME_IS_UP) if prepared is None else _with_end(request, await handler(prepared), ends_s)

    def _prepare(self, request: ModelRequest[None]) -> tuple[float, ModelRequest[None] | None]:
        state: Mapping[str, Any] = request.state
        given = configurable()
        check_owner(state.get("owner"), caller_of(given))
        settings = self._defaults.over(given)
        policy = policy_of(self._policies, state.get("policy_version") or settings.policy_version)
        now_s = self._clock()
        ends_s = state.get("run_ends_s") or now_s + (state.get("deadline_s") or policy.deadline_s)
        if now_s >= ends_s:
            return ends_s, None
        sampling = {} if settings.temperature is None else {"temperature": settings.temperature}
        return ends_s, request.override(
            system_message=_with_prompt(request.system_message, _filled(prompt(self._role, settings.prompts), policy)),
            model_settings={**request.model_settings, **sampling},
        )


def _with_end(request: ModelRequest[None], response: ModelResponse[Any], ends_s: float) -> Response:
    state: Mapping[str, Any] = request.state
    if state.get("run_ends_s"):
        return response
    return ExtendedModelResponse(model_response=response, command=Command(update={"run_ends_s": ends_s}))


def _with_prompt(system: SystemMessage | None, text: str) -> SystemMessage:
    """Puts the role's prompt before what the libraries' middleware says of its tools."""
    rest = [block for block in system.content_blocks if block.get("text")] if system else []
    return SystemMessage(content_blocks=[{"type": "text", "text": text}, *rest])


def _filled(text: str, policy: Policy) -> str:
    return text.format(
        max_sub_questions=policy.max_sub_questions,
        max_parallel=policy.max_parallel,
        max_searches=policy.max_searches,
        max_pages=policy.max_pages,
        max_quotes=policy.max_quotes_per_page,
        n_results=policy.n_results,
    )
