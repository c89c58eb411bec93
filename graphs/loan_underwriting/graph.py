"""The underwriting workflow as a graph."""

from __future__ import annotations

import asyncio
import os
from typing import Any, Final, cast

from langchain_core.language_models import BaseChatModel
from langchain_core.runnables import RunnableConfig
from langgraph.graph import END, START, StateGraph
from langgraph.graph.state import CompiledStateGraph
from langgraph.store.base import BaseStore
from langgraph.types import RetryPolicy

from agentctl.sandbox.registry import ToolRegistry
from graphs.common.effects import is_production
from graphs.common.services import is_transient
from graphs.loan_underwriting.finalizing import Finalizing, after_finalize
from graphs.loan_underwriting.income.graph import build_income_graph
from graphs.loan_underwriting.income.nodes import IncomeNodes
from graphs.loan_underwriting.intake import Intake, after_merge, after_request, to_extract
from graphs.loan_underwriting.kit import Clock, Kit, system_clock
from graphs.loan_underwriting.model import make_model
from graphs.loan_underwriting.policy import load_policies
from graphs.loan_underwriting.reviewing import Reviewing, after_second_review
from graphs.loan_underwriting.state import LoanState, Settings
from graphs.loan_underwriting.tools import registry_from_environment
from graphs.loan_underwriting.verification import Verification, after_score

LoanGraph = CompiledStateGraph[LoanState, None, LoanState, LoanState]

TRANSIENT: Final = RetryPolicy(max_attempts=3, initial_interval=0.2, retry_on=is_transient)
"""A node whose service did not answer is tried again, twice, under the same keys; nothing else is."""


def build_graph(
    tools: ToolRegistry,
    *,
    model: BaseChatModel | str | None = None,
    memory: BaseStore | None = None,
    settings: Settings | None = None,
    clock: Clock = system_clock,
    retry: RetryPolicy = TRANSIENT,
) -> LoanGraph:
    """Builds the workflow, without a checkpointer.

    Args:
        tools: Everything that it can reach: the production registry, or the sandbox's.
        model: A chat model, or `provider:model`; by default AGENTCTL_MODEL, else the scripted model.
        memory: The memory store of verified employers; none remembers nothing.
        settings: Defaults under a run's `configurable`.
        clock: Returns the present time; a run's `now` stands above it.
        retry: How nodes that call a service are tried again.
    """
    chat = model if isinstance(model, BaseChatModel) else make_model(model)
    kit = Kit(tools, load_policies(), settings or Settings(), clock)
    intake, verification = Intake(kit, chat), Verification(kit)
    reviewing, finalizing = Reviewing(kit, chat), Finalizing(kit)

    graph = StateGraph(LoanState)
    # Config and runtime together are injected, though the overloads know only one of them.
    graph.add_node("plan_documents", cast(Any, intake.plan_documents))
    graph.add_node("extract_document", cast(Any, intake.extract_document), retry_policy=retry)
    graph.add_node("merge_extraction", cast(Any, intake.merge_extraction))
    graph.add_node("request_documents", intake.request_documents)
    graph.add_node("pull_bureau", cast(Any, verification.pull_bureau), retry_policy=retry)
    graph.add_node("verify_income", build_income_graph(IncomeNodes(kit), retry))
    graph.add_node("score_risk", cast(Any, verification.score_risk))
    graph.add_node("summarize_case", reviewing.summarize_case)
    graph.add_node("notify_underwriters", cast(Any, reviewing.notify_underwriters), retry_policy=retry)
    graph.add_node("review", reviewing.review)
    graph.add_node("second_review", reviewing.second_review)
    graph.add_node("finalize", cast(Any, finalizing.finalize), retry_policy=retry)

    graph.add_edge(START, "plan_documents")
    graph.add_conditional_edges("plan_documents", to_extract, ["extract_document", "merge_extraction"])
    graph.add_edge("extract_document", "merge_extraction")
    graph.add_conditional_edges(
        "merge_extraction", after_merge, ["extract_document", "request_documents", "pull_bureau", "verify_income"]
    )
    graph.add_conditional_edges(
        "request_documents", after_request, ["request_documents", "extract_document", "merge_extraction"]
    )
    # Both checks end in one super-step; a second inquiry comes back alone.
    graph.add_edge("pull_bureau", "score_risk")
    graph.add_edge("verify_income", "score_risk")
    graph.add_conditional_edges("score_risk", after_score, ["summarize_case", "finalize"])
    graph.add_edge("summarize_case", "notify_underwriters")
    graph.add_edge("notify_underwriters", "review")
    graph.add_conditional_edges("review", reviewing.after_review, ["review", "second_review", "finalize"])
    graph.add_conditional_edges("second_review", after_second_review, ["second_review", "finalize"])
    graph.add_conditional_edges("finalize", after_finalize, ["pull_bureau", END])
    return graph.compile(store=memory)


async def graph(config: RunnableConfig) -> LoanGraph:
    """Builds the workflow for a server: the production tools where AGENTCTL_ENV says production, else the sandbox's."""
    # Building reads policies and prompts from files, which a server does not allow in its event loop.
    return await asyncio.to_thread(_served, config)


def _served(config: RunnableConfig) -> LoanGraph:
    configurable = config.get("configurable", {})
    model = configurable.get("model")
    if is_production(os.environ):
        return build_graph(registry_from_environment(), model=model)
    from sandbox_tools.loan import registry

    return build_graph(registry(), model=model)
