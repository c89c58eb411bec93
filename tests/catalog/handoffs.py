"""Threads of a graph whose agents hand over to each other by Command, ask a person, and then take money."""

from __future__ import annotations

import json
import operator
from collections import Counter
from typing import Annotated, Any, Literal, TypedDict

from langchain_core.messages import AnyMessage
from langchain_core.runnables import RunnableConfig
from langgraph.graph import START, StateGraph
from langgraph.graph.message import add_messages
from langgraph.types import Command, interrupt

from agentctl.sandbox.registry import ToolRegistry
from graphs.common.calls import call_tool
from tests.catalog.case import Saver, case, go

WORLD: Counter[str] = Counter()
"""How often each tool really ran."""


class Trip(TypedDict, total=False):
    arrival: int
    calls: Annotated[list[AnyMessage], add_messages]
    handoffs: Annotated[list[str], operator.add]
    flight: dict[str, Any]
    hotel: dict[str, Any]
    quote: dict[str, Any]
    approval: dict[str, Any]
    payment: str
    booking: str


def travel() -> ToolRegistry:
    """The tools: no hotel has a room on day 10, so the trip moves to day 11."""
    tools = ToolRegistry()

    def ran(name: str, **result: Any) -> str:
        WORLD[name] += 1
        return json.dumps(result)

    @tools.register(effect="read")
    def search_flights(arrival: int) -> str:
        """Searches flights."""
        return ran("search_flights", flight=f"F{arrival}", price=100)

    @tools.register(effect="read")
    def search_hotels(arrival: int) -> str:
        """Searches hotels."""
        return ran("search_hotels", rooms=0 if arrival == 10 else 4, price=80)

    @tools.register(effect="write")
    def capture_payment(amount: int, quote_version: int) -> str:
        """Takes the money."""
        return ran("capture_payment", payment=f"p-{quote_version}-{amount}")

    @tools.register(effect="write")
    def confirm(flight: str) -> str:
        """Confirms a flight."""
        return ran("confirm", ticket=f"ticket {flight}")

    return tools


def trip(saver: Saver | None, tools: ToolRegistry) -> Any:
    """The graph: `flight_agent <-> hotel_agent -> payments -> approval (asks) -> capture -> ticketing`."""

    def flight_agent(state: Trip, config: RunnableConfig) -> Command[Literal["hotel_agent"]]:
        day = state["arrival"]
        found = call_tool(tools, "search_flights", {"arrival": day}, id=f"flights:{day}", config=config)
        update = {"flight": found.content, "calls": found.messages, "handoffs": [f"flight {day}"]}
        return Command(goto="hotel_agent", update=update)

    def hotel_agent(state: Trip, config: RunnableConfig) -> Command[Literal["flight_agent", "payments"]]:
        day = state["arrival"]
        found = call_tool(tools, "search_hotels", {"arrival": day}, id=f"hotels:{day}", config=config)
        update: Trip = {"hotel": found.content, "calls": found.messages, "handoffs": [f"hotel {day}"]}
        if not found.content["rooms"]:
            return Command(goto="flight_agent", update={**update, "arrival": day + 1})
        return Command(goto="payments", update=update)

    def payments(state: Trip) -> Trip:
        version = state.get("quote", {}).get("version", 0) + 1
        return {"quote": {"version": version, "total": state["flight"]["price"] + state["hotel"]["price"]}}

    def approval(state: Trip) -> Trip:
        return {"approval": interrupt(state["quote"])}

    def capture(state: Trip, config: RunnableConfig) -> Trip:
        args = {"amount": state["quote"]["total"], "quote_version": state["quote"]["version"]}
        done = call_tool(tools, "capture_payment", args, id=f"capture:{args['quote_version']}", config=config)
        return {"payment": done.content["payment"], "calls": done.messages}

    def ticketing(state: Trip, config: RunnableConfig) -> Trip:
        flight = state["flight"]["flight"]
        done = call_tool(tools, "confirm", {"flight": flight}, id=f"confirm:{flight}", config=config)
        return {"booking": done.content["ticket"], "calls": done.messages}

    graph = StateGraph(Trip)
    for node in (flight_agent, hotel_agent, payments, approval, capture, ticketing):
        graph.add_node(node.__name__, node)
    graph.add_edge(START, "flight_agent").add_edge("payments", "approval").add_edge("capture", "ticketing")
    graph.add_conditional_edges(
        "approval", lambda state: "capture" if state["approval"]["approved"] else "__end__", ["capture", "__end__"]
    )
    return graph.compile(checkpointer=saver)


def _plan(graph: Any, thread: str) -> None:
    go(graph, thread, {"arrival": 10})


def _book(graph: Any, thread: str) -> None:
    _plan(graph, thread)
    go(graph, thread, Command(resume={"approved": True, "quote_version": 1}))


CASES = (
    case("hand-offs asking", lambda saver: trip(saver, travel()), _plan, "agents that hand over by Command, then ask"),
    case("hand-offs done", lambda saver: trip(saver, travel()), _book, "the same, answered, with the effect done"),
)
