"""The travel workflow as a graph."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any, cast

from langchain_core.language_models import BaseChatModel
from langchain_core.runnables import RunnableConfig
from langgraph.graph import START, StateGraph
from langgraph.graph.state import CompiledStateGraph
from langgraph.store.base import BaseStore

from agentctl.sandbox.registry import ToolRegistry
from graphs.common.effects import is_production
from graphs.travel_booking.model import make_model
from graphs.travel_booking.nodes.approval import ApprovalNode
from graphs.travel_booking.nodes.asking import AskingNode
from graphs.travel_booking.nodes.flights import FlightNodes
from graphs.travel_booking.nodes.hotels import HotelNodes
from graphs.travel_booking.nodes.intake import IntakeNode
from graphs.travel_booking.nodes.kit import Kit
from graphs.travel_booking.nodes.paying import PayingNodes
from graphs.travel_booking.nodes.quoting import QuotingNodes
from graphs.travel_booking.nodes.recovery import RecoveryNodes
from graphs.travel_booking.nodes.ticketing import TicketingNodes
from graphs.travel_booking.policy import load_policies
from graphs.travel_booking.state import Settings, TravelState
from graphs.travel_booking.tools import registry_from_environment

TravelGraph = CompiledStateGraph[TravelState, None, TravelState, TravelState]


def build_graph(
    tools: ToolRegistry,
    *,
    model: BaseChatModel | str | None = None,
    memory: BaseStore | None = None,
    settings: Settings | None = None,
    clock: Callable[[], datetime] = lambda: datetime.now(UTC),
) -> TravelGraph:
    """Builds the workflow, without a checkpointer.

    Args:
        tools: Everything that it can reach: the production registry, or the sandbox's.
        model: A chat model, or `provider:model`; by default AGENTCTL_MODEL, else the scripted model.
        memory: The memory store of travellers' preferences; none remembers nothing.
        settings: Defaults under a run's `configurable`.
        clock: Returns the present time; it dates quotes and approvals.
    """
    chat = model if isinstance(model, BaseChatModel) else make_model(model)
    kit = Kit(chat, tools, load_policies(), settings or Settings(), clock)
    flights, hotels, paying = FlightNodes(kit), HotelNodes(kit), PayingNodes(kit)
    ticketing, recovery = TicketingNodes(kit), RecoveryNodes(kit)
    graph = StateGraph(TravelState)
    # Config and runtime together are injected, though the overloads know only one of them; a Send has its own input.
    graph.add_node("intake", cast(Any, IntakeNode(kit).intake))
    graph.add_node("flight_agent", flights.flight_agent)
    graph.add_node("search_airline", cast(Any, flights.search_airline))
    graph.add_node("hold_fare", flights.hold_fare)
    graph.add_node("hotel_agent", hotels.hotel_agent)
    graph.add_node("search_hotels", hotels.search_hotels)
    graph.add_node("hold_room", hotels.hold_room)
    graph.add_node("ask_traveller", AskingNode(kit).ask_traveller)
    graph.add_node("payments", QuotingNodes(kit).payments)
    graph.add_node("approval", ApprovalNode(kit).approval)
    graph.add_node("recheck", paying.recheck)
    graph.add_node("capture", paying.capture)
    graph.add_node("ticketing", ticketing.ticketing)
    graph.add_node("compensate", recovery.compensate)
    graph.add_node("publish", ticketing.publish)
    graph.add_node("close", recovery.close)
    graph.add_edge(START, "intake")
    graph.add_edge("search_airline", "flight_agent")
    return graph.compile(store=memory)


async def graph(config: RunnableConfig) -> TravelGraph:
    """Builds the workflow for a server: the production tools where AGENTCTL_ENV says production, else the sandbox's."""
    # Building reads policies and prompts from files, which a server does not allow in its event loop.
    return await asyncio.to_thread(_served, config)


def _served(config: RunnableConfig) -> TravelGraph:
    model = config.get("configurable", {}).get("model")
    if is_production(os.environ):
        return build_graph(registry_from_environment(), model=model)
    from sandbox_tools.travel import registry

    return build_graph(registry(), model=model)
