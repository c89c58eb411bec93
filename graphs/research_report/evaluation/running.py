"""Runs the cases, up to the point where a person would be asked."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from threading import Lock
from typing import Any
from uuid import UUID

from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.messages import AIMessage
from langchain_core.outputs import ChatGeneration, LLMResult
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.memory import InMemorySaver
from pydantic import ValidationError

from graphs.research_report.evaluation.cases import Case
from graphs.research_report.evaluation.scoring import Grader, Score, Usage, score, supports
from graphs.research_report.evidence import evidence_of
from graphs.research_report.graph import ResearchGraph
from graphs.research_report.policy import CURRENT_POLICY, load_policies
from graphs.research_report.report import Report


@dataclass
class Meter(BaseCallbackHandler):
    """Counts what a run costs, subagents included. Safe between threads."""

    usage: Usage = field(default_factory=Usage)
    _lock: Lock = field(default_factory=Lock)

    def on_llm_end(self, response: LLMResult, *, run_id: UUID, **kwargs: Any) -> None:
        """Counts a model's call and its tokens."""
        message = next(
            (
                each.message
                for generations in response.generations
                for each in generations
                if isinstance(each, ChatGeneration) and isinstance(each.message, AIMessage)
            ),
            None,
        )
        tokens: Any = (message.usage_metadata if message else None) or {}
        self._add(Usage(1, 0, tokens.get("input_tokens", 0), tokens.get("output_tokens", 0)))

    def on_tool_start(self, serialized: dict[str, Any], input_str: str, *, run_id: UUID, **kwargs: Any) -> None:
        """Counts a tool's call."""
        self._add(Usage(n_tool_calls=1))

    def _add(self, more: Usage) -> None:
        with self._lock:
            mine = self.usage
            self.usage = Usage(
                mine.n_model_calls + more.n_model_calls,
                mine.n_tool_calls + more.n_tool_calls,
                mine.input_tokens + more.input_tokens,
                mine.output_tokens + more.output_tokens,
            )


def run_cases(graph: ResearchGraph, cases: Iterable[Case], *, grader: Grader = supports) -> list[Score]:
    """Runs and scores cases, each on a thread of its own; nothing is published.

    Args:
        graph: The workflow, on sandbox tools for example; it gets a checkpointer in memory.
        cases: The cases.
        grader: Tells whether quotes support a finding.
    """
    graph.checkpointer = InMemorySaver()
    return [_run(graph, case, grader) for case in cases]


def _run(graph: ResearchGraph, case: Case, grader: Grader) -> Score:
    meter = Meter()
    config: RunnableConfig = {
        "configurable": {"thread_id": f"evaluation-{case.id}", "user_id": "evaluation", "tenant": "evaluation"},
        "callbacks": [meter],
    }
    graph.invoke(case.input, config, durability="sync")
    state = graph.get_state(config)
    policy = load_policies()[CURRENT_POLICY]
    evidence = evidence_of(state.values.get("files") or {}, policy.old_after_days)
    return score(case, _report(state), evidence, meter.usage, grader=grader)


def _report(state: Any) -> Report | None:
    """Returns the report that waits for its review, or that the run ended with."""
    given = state.values.get("structured_response")
    for question in state.interrupts:
        given = question.value["action_requests"][0]["args"]["report"]
    try:
        return Report.model_validate(given if not isinstance(given, Report) else given.model_dump())
    except ValidationError:
        return None
