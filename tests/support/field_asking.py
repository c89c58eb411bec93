"""Graphs that ask, as public reports have them; commands load them as `--graph FILE:NAME`."""

from __future__ import annotations

import asyncio
import operator
from pathlib import Path
from typing import Annotated, Any, TypedDict

from langchain_core.messages import AIMessage
from langchain_core.tools import tool
from langgraph.func import task
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode
from langgraph.types import Send, interrupt

from tests.support.tools import agent, call, calling

FILE = Path(__file__)
"""What `--graph FILE:NAME` takes."""

RAN: list[str] = []
"""What really ran."""


class Log(TypedDict, total=False):
    log: Annotated[list[Any], operator.add]


def asks(question: str) -> Any:
    """A node that asks and notes the answer."""

    def node(state: Log) -> Log:
        return {"log": [(question, interrupt(question))]}

    return node


def notes(name: str) -> Any:
    """A node that notes that it ran."""

    def node(state: Log) -> Log:
        RAN.append(name)
        return {"log": [name]}

    return node


def line() -> Any:
    """A node that works and then one that asks."""
    graph = StateGraph(Log).add_node("work", notes("work")).add_node("ask", asks("go on?"))
    return graph.add_edge(START, "work").add_edge("work", "ask").compile()


def pair() -> Any:
    """Two nodes that ask at once."""
    graph = StateGraph(Log).add_node("legal", asks("legal?")).add_node("risk", asks("risk?"))
    return graph.add_edge(START, "legal").add_edge(START, "risk").compile()


@task
def fetch() -> str:
    RAN.append("fetch")
    return "fetched"


def inside() -> Any:
    """A subgraph whose node runs a @task and then asks."""

    def node(state: Log) -> Log:
        return {"log": [fetch().result(), interrupt("inside?")]}

    inner = StateGraph(Log).add_node("node", node).add_edge(START, "node").compile()
    return StateGraph(Log).add_node("inner", inner).add_edge(START, "inner").compile()


@tool
def read() -> str:
    """Asks nobody."""
    RAN.append("read")
    return "read"


@tool
def refund() -> str:
    """Asks before it pays."""
    return f"refund: {interrupt('refund?')}"


@tool
def mail() -> str:
    """Asks before it writes."""
    return f"mail: {interrupt('mail?')}"


def _calls(messages: list[Any]) -> AIMessage:
    if messages[-1].type != "human":
        return AIMessage(" ".join(message.text for message in messages[-3:]))
    return calling(call("read", "c1"), call("refund", "c2"), call("mail", "c3"))


line_graph, pair_graph, inside_graph = line(), pair(), inside()
tools_graph = agent([read, refund, mail], _calls, checkpointer=None)


async def _ask_after(delay_s: float, question: str) -> str:
    await asyncio.sleep(delay_s)
    return f"{question} {interrupt(question)}"


@tool
async def slow() -> str:
    """Asks a little later."""
    return await _ask_after(0.02, "slow?")


@tool
async def fast() -> str:
    """Asks at once."""
    return await _ask_after(0, "fast?")


def sending() -> Any:
    """Calls that are sent to a tool node each for itself, as `create_agent` does."""

    def think(state: MessagesState) -> dict[str, Any]:
        return {"messages": [calling(call("slow", "c1"), call("fast", "c2"))]}

    def send(state: MessagesState) -> list[Send]:
        message: Any = state["messages"][-1]
        return [Send("tools", [one]) for one in message.tool_calls]

    graph = StateGraph(MessagesState).add_node("think", think).add_node("tools", ToolNode([slow, fast]))
    return graph.add_edge(START, "think").add_conditional_edges("think", send, ["tools"]).compile()


sends_graph = sending()
