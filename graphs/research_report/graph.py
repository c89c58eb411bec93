"""The research workflow as a graph: a deep agent, its subagents, and what surrounds them."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable
from functools import lru_cache
from typing import Any

from deepagents import create_deep_agent
from deepagents.backends import StateBackend
from deepagents.middleware.filesystem import FilesystemMiddleware, FilesystemPermission
from deepagents.middleware.subagents import SubAgentMiddleware
from langchain.agents.middleware import ModelCallLimitMiddleware, TodoListMiddleware
from langchain.agents.middleware.types import AgentMiddleware
from langchain_core.language_models import BaseChatModel
from langchain_core.runnables import RunnableConfig
from langgraph.graph.state import CompiledStateGraph
from langgraph.store.base import BaseStore

from agentctl.sandbox.registry import ToolRegistry
from graphs.common.effects import is_production
from graphs.research_report.catalog import WEB_TOOLS
from graphs.research_report.digest import digest
from graphs.research_report.middleware.intake import Intake
from graphs.research_report.middleware.planning import PlanGuard
from graphs.research_report.middleware.review import PublishReview
from graphs.research_report.middleware.wrapup import WrapUp
from graphs.research_report.models import Models, make_models
from graphs.research_report.policy import Policy, load_policies
from graphs.research_report.report import Report
from graphs.research_report.state import ResearchState, Settings, SubagentState
from graphs.research_report.subagents import critique_agent, role_calls, search_agent, summarization
from graphs.research_report.tools import registry_from_environment

ResearchGraph = CompiledStateGraph[Any, Any, Any, Any]
_EVIDENCE = ["/notes/**", "/pages/**"]


def build_graph(
    tools: ToolRegistry,
    *,
    model: BaseChatModel | Models | str | None = None,
    memory: BaseStore | None = None,
    settings: Settings | None = None,
    policies: dict[str, Policy] | None = None,
    clock: Callable[[], float] = time.monotonic,
    retry_delay_s: float = 0.5,
) -> ResearchGraph:
    """Builds the workflow, without a checkpointer.

    Args:
        tools: Everything that it can reach: the production registry, or the sandbox's.
        model: A model for each role, one for all, or `provider:model`; by default what the environment names, else the
            scripted models.
        memory: The memory store of preferences; none remembers nothing.
        settings: Defaults under a run's `configurable`.
        policies: Every version of the policy; by default the files'.
        clock: Returns seconds that only grow, for the wall-clock budget.
        retry_delay_s: Pause before a web tool is tried again; each further one doubles it.
    """
    defaults, known = settings or Settings(), policies or load_policies()
    models = model if isinstance(model, Models) else make_models(model)
    policy, backend = known[defaults.policy_version], StateBackend()
    subagents = SubAgentMiddleware(
        backend=backend,
        subagents=[
            search_agent(models, tools.only(*WEB_TOOLS), known, defaults, clock, retry_delay_s),
            critique_agent(models, known, defaults, clock),
        ],
        state_schema=SubagentState,
    )
    middleware: list[AgentMiddleware[Any, Any, Any]] = [
        # These three take the places of deepagents' own, by name: no general-purpose subagent, which would have the
        # lead's tools; no deleting, no shell; summaries as the policy says.
        FilesystemMiddleware(
            backend=backend,
            tools=["ls", "read_file", "write_file", "edit_file", "glob", "grep"],
            tool_token_limit_before_evict=None,
            permissions=[FilesystemPermission(operations=["write"], paths=_EVIDENCE, mode="deny")],
        ),
        subagents,
        summarization(models.lead, policy, backend, digest),
        Intake(defaults),
        ModelCallLimitMiddleware(run_limit=policy.model_calls["lead"]),
        TodoListMiddleware(),
        PlanGuard(policy),
        PublishReview(
            interrupt_on={"publish_report": {"allowed_decisions": ["approve", "edit", "reject"]}}, policies=known
        ),
        WrapUp(known),
        *role_calls("lead", models, known, defaults, clock),
    ]
    return create_deep_agent(
        models.lead,
        tools.only("publish_report"),
        middleware=middleware,
        response_format=Report,
        state_schema=ResearchState,
        backend=backend,
        store=memory,
        name="research_report",
    )


async def graph(config: RunnableConfig) -> ResearchGraph:
    """Builds the workflow for a server: the production tools where AGENTCTL_ENV says production, else the sandbox's."""
    # Building reads policies and prompts from files, which a server does not allow in its event loop.
    return await asyncio.to_thread(_served, config)


def _served(config: RunnableConfig) -> ResearchGraph:
    model = config.get("configurable", {}).get("model")
    if is_production(os.environ):
        return build_graph(_shared_tools(tuple(sorted(os.environ.items()))), model=model)
    from sandbox_tools.research import registry

    return build_graph(registry(), model=model)


@lru_cache(maxsize=1)
def _shared_tools(environment: tuple[tuple[str, str], ...]) -> ToolRegistry:
    """Returns the production tools of a process: its runs share the held sessions, the limits and the cache."""
    return registry_from_environment(dict(environment))
