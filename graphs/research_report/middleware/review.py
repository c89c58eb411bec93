"""The review before publication: checks first, then a person's decision, bound to the report it was made on."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Literal, cast

from langchain.agents.middleware import HumanInTheLoopMiddleware, InterruptOnConfig
from langchain.agents.middleware.types import ModelRequest, ModelResponse, hook_config
from langchain_core.messages import AIMessage, AnyMessage, ToolMessage
from langchain_core.messages.tool import ToolCall
from langgraph.prebuilt.tool_node import ToolCallRequest
from langgraph.runtime import Runtime
from langgraph.types import Command, interrupt
from pydantic import ValidationError

from graphs.common.owners import caller_of
from graphs.common.versions import policy_of
from graphs.research_report.answers import Answer, BadAnswer, Edit, Reject, question, read_answer
from graphs.research_report.catalog import PublishReport
from graphs.research_report.checks import Problem, check_report
from graphs.research_report.critique import critique_in
from graphs.research_report.evidence import evidence_of
from graphs.research_report.middleware.calls import answers, configurable, last_ai, refusal, state_of
from graphs.research_report.policy import CURRENT_POLICY, Policy
from graphs.research_report.report import Report, report_sha256
from graphs.research_report.state import Review

PUBLISH = "publish_report"
Result = ToolMessage | Command[Any]


class PublishReview(HumanInTheLoopMiddleware[Any, None, Any]):
    """Human-in-the-loop on publishing, with what the stock middleware leaves to its callers.

    It asks in the stock middleware's shape and takes its answers. Besides: a report that fails the checks reaches no
    reviewer; who answers is read from the run's configuration and must be a reviewer; an answer that cannot be used is
    asked again with the reason, in super-steps of its own, so that none is judged by a later caller's identity; the
    decision is stored, with the hash of its report, before anything is published; an edited report takes the place of
    the call's arguments, so that the thread shows what was published.

    It goes by the stock name, so that threads that wait at the stock middleware, as of version 1, are answered here.

    Args:
        interrupt_on: As of the stock middleware; it must name publish_report.
        policies: Every version of the policy.
    """

    name = HumanInTheLoopMiddleware.__name__

    def __init__(self, *, interrupt_on: dict[str, bool | InterruptOnConfig], policies: Mapping[str, Policy]) -> None:
        super().__init__(interrupt_on=interrupt_on)
        self._policies = policies

    @hook_config(can_jump_to=["model"])
    def after_model(self, state: Any, runtime: Runtime[None]) -> dict[str, Any] | None:
        """Decides the publication that the model asks for."""
        calls = _undecided(state["messages"])
        if not calls:
            return None
        if len(calls) > 1:
            return {"messages": [refusal(call, "one report at a time") for call in calls]}
        call, policy = calls[0], self._policy(state)
        report, problems = self._checked(state, call["args"], policy)
        if report is None or problems:
            return {"messages": [refusal(call, {"problems": [problem.as_dict() for problem in problems]})]}
        if _n_offers(state["messages"]) > policy.publish_attempts:
            return {
                "messages": [refusal(call, "this run may offer no further report: answer with the Report as it is")]
            }
        config = self.interrupt_on[PUBLISH]
        raw = interrupt(
            question(
                call["args"],
                report,
                critique_in(state["messages"]),
                allowed=config["allowed_decisions"],
                problem=state.get("review_problem", ""),
            )
        )
        try:
            answer = read_answer(
                raw,
                caller=caller_of(configurable()),
                owner=state.get("owner"),
                roles=policy.review_roles,
                allowed=config["allowed_decisions"],
            )
            return self._decided(state, call, report, answer, policy)
        except BadAnswer as bad:
            return {"review_problem": str(bad), "jump_to": "model"}

    @hook_config(can_jump_to=["model"])
    async def aafter_model(self, state: Any, runtime: Runtime[None]) -> dict[str, Any] | None:
        """The same, where the graph runs async."""
        return self.after_model(state, runtime)

    def wrap_model_call(
        self, request: ModelRequest[None], handler: Callable[[ModelRequest[None]], ModelResponse[Any]]
    ) -> ModelResponse[Any] | AIMessage:
        """Asks again without the model, where the latest answer could not be used."""
        return _asked_again(request) or handler(request)

    async def awrap_model_call(
        self, request: ModelRequest[None], handler: Callable[[ModelRequest[None]], Awaitable[ModelResponse[Any]]]
    ) -> ModelResponse[Any] | AIMessage:
        """The same, where the graph runs async."""
        return _asked_again(request) or await handler(request)

    def wrap_tool_call(self, request: ToolCallRequest, handler: Callable[[ToolCallRequest], Result]) -> Result:
        """Publishes what was approved, and nothing else."""
        return _not_approved(request) or handler(request)

    async def awrap_tool_call(
        self, request: ToolCallRequest, handler: Callable[[ToolCallRequest], Awaitable[Result]]
    ) -> Result:
        """The same, where the graph runs async."""
        return _not_approved(request) or await handler(request)

    def _decided(
        self, state: Mapping[str, Any], call: ToolCall, report: Report, answer: Answer, policy: Policy
    ) -> dict[str, Any]:
        by, messages = caller_of(configurable()).actor, list[AnyMessage]()
        decision: Literal["approve", "edit", "reject"] = answer.type
        if isinstance(answer, Edit):
            args = answer.edited_action.args
            edited, problems = self._checked(state, args, policy)
            if edited is None or problems:
                raise BadAnswer(f"the edited report fails the checks: {'; '.join(p.detail for p in problems)}")
            if args.get("artifact") != call["args"]["artifact"]:
                raise BadAnswer("the artifact cannot be edited")
            report = edited
            messages = [_with_args(state["messages"], call, args)]
        elif isinstance(answer, Reject):
            messages = [refusal(call, {"rejected": answer.message})]
        review = Review(
            report_sha256=report_sha256(report),
            decision=decision,
            by=by,
            reason=answer.message if isinstance(answer, Reject) else "",
        )
        return {"messages": messages, "reviews": [*state.get("reviews", ()), review], "review_problem": ""}

    def _checked(
        self, state: Mapping[str, Any], args: Mapping[str, Any], policy: Policy
    ) -> tuple[Report | None, list[Problem]]:
        try:
            report = PublishReport.model_validate(args).report
        except ValidationError as error:
            first = error.errors(include_url=False)[0]
            where = ".".join(str(part) for part in first["loc"])
            return None, [Problem("schema", where, str(first["msg"]))]
        evidence = evidence_of(state.get("files") or {}, policy.old_after_days)
        return report, check_report(report, evidence, critique_in(state["messages"]))

    def _policy(self, state: Mapping[str, Any]) -> Policy:
        return policy_of(self._policies, state.get("policy_version") or CURRENT_POLICY)


def _undecided(messages: Sequence[AnyMessage]) -> list[ToolCall]:
    latest, answered = last_ai(messages), answers(messages)
    return [
        call for call in (latest.tool_calls if latest else ()) if call["name"] == PUBLISH and call["id"] not in answered
    ]


def _n_offers(messages: Sequence[AnyMessage]) -> int:
    return sum(
        call["name"] == PUBLISH for message in messages if isinstance(message, AIMessage) for call in message.tool_calls
    )


def _asked_again(request: ModelRequest[None]) -> AIMessage | None:
    state: Mapping[str, Any] = request.state
    return last_ai(state["messages"]) if state.get("review_problem") and _undecided(state["messages"]) else None


def _not_approved(request: ToolCallRequest) -> ToolMessage | None:
    if request.tool_call["name"] != PUBLISH:
        return None
    wanted = report_sha256(PublishReport.model_validate(request.tool_call["args"]).report)
    reviews: Sequence[Review] = state_of(request).get("reviews") or ()
    if any(each["report_sha256"] == wanted and each["decision"] in ("approve", "edit") for each in reviews):
        return None
    return refusal(request.tool_call, "this report was not approved")


def _with_args(messages: Sequence[AnyMessage], call: ToolCall, args: Mapping[str, Any]) -> AIMessage:
    latest = cast(AIMessage, last_ai(messages))
    calls = [{**other, "args": dict(args)} if other["id"] == call["id"] else other for other in latest.tool_calls]
    return latest.model_copy(update={"tool_calls": calls})
