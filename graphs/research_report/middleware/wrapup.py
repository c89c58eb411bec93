"""The end of a run: what was published, or the best report so far with what is open."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from langchain.agents.middleware.types import AgentMiddleware
from langchain_core.messages import AIMessage, AnyMessage
from langgraph.runtime import Runtime
from pydantic import ValidationError

from graphs.common.versions import policy_of
from graphs.research_report.brief import Brief, read_brief
from graphs.research_report.checks import check_report
from graphs.research_report.critique import critique_in
from graphs.research_report.drafting import Summary, draft_report
from graphs.research_report.evidence import evidence_of
from graphs.research_report.middleware.calls import answers, last_ai
from graphs.research_report.middleware.planning import searched
from graphs.research_report.notes import DRAFT, content, read_notes
from graphs.research_report.plan import SubQuestion, sub_questions
from graphs.research_report.policy import CURRENT_POLICY, Policy
from graphs.research_report.report import Report, report_sha256, report_text, summed_up
from graphs.research_report.revising import after_problems
from graphs.research_report.state import Outcome, ResearchState

_ROUNDS = 3


class WrapUp(AgentMiddleware[Any, None, Any]):
    """Sets the final report and the outcome.

    What was published is the report, whatever the model says last. A report that nobody approved is checked here too:
    what does not hold is marked uncertain. Where a limit ended the run, the draft, or else the notes, are the report,
    and every question that was not reached is open.

    Args:
        policies: Every version of the policy.
    """

    state_schema = ResearchState

    def __init__(self, policies: Mapping[str, Policy]) -> None:
        super().__init__()
        self._policies = policies

    def after_agent(self, state: Mapping[str, Any], runtime: Runtime[None]) -> dict[str, Any] | None:
        """Ends the run."""
        outcome, report = self._ended(state)
        runtime.stream_writer({"progress": f"report {outcome}"})
        return {
            "structured_response": report,
            "outcome": outcome,
            "messages": [AIMessage(report_text(report, outcome), id=f"report:{report_sha256(report)[:12]}")],
        }

    async def aafter_agent(self, state: Mapping[str, Any], runtime: Runtime[None]) -> dict[str, Any] | None:
        """The same, where the graph runs async."""
        return self.after_agent(state, runtime)

    def _ended(self, state: Mapping[str, Any]) -> tuple[Outcome, Report]:
        if (published := published_report(state["messages"])) is not None:
            return "published", published
        given = state.get("structured_response")
        if isinstance(given, Report):
            return "unpublished", self._held(state, given)
        return "partial", self._held(state, self._best_so_far(state))

    def _best_so_far(self, state: Mapping[str, Any]) -> Report:
        brief, files = read_brief(state), state.get("files") or {}
        plan = sub_questions(state.get("todos") or ()) or [SubQuestion("q1", brief.question)]
        try:
            report = Report.model_validate_json(content(files, DRAFT) or "")
        except ValidationError:
            report = _from_notes(brief, plan, files, searched(state["messages"]))
        latest = last_ai(state["messages"])
        stopped = f"The run ended before the report was finished: {latest.text if latest else ''}".strip()
        return summed_up(report.model_copy(update={"open_questions": [*report.open_questions, stopped]}))

    def _held(self, state: Mapping[str, Any], report: Report) -> Report:
        """Marks what fails the checks, until nothing does."""
        files = state.get("files") or {}
        policy = policy_of(self._policies, state.get("policy_version") or CURRENT_POLICY)
        evidence = evidence_of(files, policy.old_after_days)
        critique = critique_in(state["messages"])
        for _ in range(_ROUNDS):
            problems = check_report(report, evidence, critique)
            if not problems:
                return report
            report = after_problems(report, [problem.as_dict() for problem in problems], read_notes(files))
        left = {problem.where for problem in check_report(report, evidence, critique)}
        findings = [finding for finding in report.findings if finding.id not in left]
        dropped = [f"Not supported: {finding.statement}" for finding in report.findings if finding.id in left]
        questions = [*report.open_questions, *dropped]
        return summed_up(report.model_copy(update={"findings": findings, "open_questions": questions}))


def published_report(messages: Sequence[AnyMessage]) -> Report | None:
    """Returns the report that publish_report took, None where it took none."""
    answered = answers(messages)
    for message in reversed(messages):
        for call in message.tool_calls if isinstance(message, AIMessage) else ():
            answer = answered.get(str(call["id"]))
            if call["name"] == "publish_report" and answer is not None and answer.status != "error":
                return Report.model_validate(call["args"]["report"])
    return None


def _from_notes(brief: Brief, plan: Sequence[SubQuestion], files: Mapping[str, Any], reached: set[str]) -> Report:
    tried = {item.id: Summary((), (), () if item.id in reached else ("not reached",)) for item in plan}
    return draft_report(brief, plan, read_notes(files), tried, from_summaries=False)
