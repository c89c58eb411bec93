"""The support workflow as a graph."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any, cast

from langchain_core.language_models import BaseChatModel
from langchain_core.runnables import RunnableConfig
from langgraph.graph import END, START, StateGraph
from langgraph.graph.state import CompiledStateGraph
from langgraph.prebuilt import ToolNode
from langgraph.store.base import BaseStore

from agentctl.sandbox.registry import ToolRegistry
from graphs.common.effects import is_production
from graphs.support_refunds.boundary import ToolBoundary
from graphs.support_refunds.model import make_model
from graphs.support_refunds.nodes import Nodes, after_approval, after_orders_agent, after_refunds_agent, after_tools
from graphs.support_refunds.policy import load_policies
from graphs.support_refunds.state import Settings, SupportState
from graphs.support_refunds.tools import registry_from_environment

SupportGraph = CompiledStateGraph[SupportState, None, SupportState, SupportState]


def build_graph(
    tools: ToolRegistry,
    *,
    model: BaseChatModel | str | None = None,
    memory: BaseStore | None = None,
    settings: Settings | None = None,
    clock: Callable[[], datetime] = lambda: datetime.now(UTC),
) -> SupportGraph:
    """Builds the workflow, without a checkpointer.

    Args:
        tools: Everything that it can reach: the production registry, or the sandbox's.
        model: A chat model, or `provider:model`; by default AGENTCTL_MODEL, else the scripted model.
        memory: The memory store of customers' preferences; none remembers nothing.
        settings: Defaults under a run's `configurable`.
        clock: Returns the present time.
    """
    defaults = settings or Settings()
    chat = model if isinstance(model, BaseChatModel) else make_model(model)
    nodes = Nodes(chat, tools, load_policies(), defaults, clock)
    boundary = ToolBoundary(defaults)
    graph = StateGraph(SupportState)
    # Config and runtime together are injected, though the overloads know only one of them.
    graph.add_node("triage", cast(Any, nodes.triage))
    graph.add_node("orders_agent", nodes.orders_agent)
    graph.add_node("refunds_agent", nodes.refunds_agent)
    graph.add_node("approve_refund", nodes.approve_refund)
    graph.add_node(
        "tools",
        ToolNode(tools.only(*tools.names), wrap_tool_call=boundary.call, awrap_tool_call=boundary.acall),
    )
    graph.add_edge(START, "triage")
    graph.add_conditional_edges("orders_agent", after_orders_agent, ["tools", END])
    graph.add_conditional_edges("refunds_agent", after_refunds_agent, ["approve_refund", "tools", END])
    graph.add_conditional_edges("approve_refund", after_approval, ["approve_refund", "tools"])
    graph.add_conditional_edges("tools", after_tools, ["orders_agent", "refunds_agent"])
    return graph.compile(store=memory)


async def graph(config: RunnableConfig) -> SupportGraph:
    """Builds the workflow for a server: the production tools where AGENTCTL_ENV says production, else the sandbox's."""
    # Building reads policies and prompts from files, which a server does not allow in its event loop.
    return await asyncio.to_thread(_served, config)


def _served(config: RunnableConfig) -> SupportGraph:
    configurable = config.get("configurable", {})
    model = configurable.get("model")
    if is_production(os.environ):
        return build_graph(registry_from_environment(), model=model)
    from sandbox_tools.support import registry

    return build_graph(registry(), model=model)
