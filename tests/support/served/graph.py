"""What the Agent Server of the tests serves; it knows nothing of agentctl, and its file is copied beside the server."""

from __future__ import annotations

import asyncio
import operator
from pathlib import Path
from typing import Annotated, Any, TypedDict

from langchain_core.messages import AIMessage, AnyMessage, ToolMessage
from langchain_core.tools import tool
from langgraph.channels import DeltaChannel
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.graph.message import _messages_delta_reducer
from langgraph.prebuilt import ToolNode
from langgraph.types import Send, interrupt

_POLL_S = 0.25


@tool
def lookup_order(order_id: str) -> str:
    """Returns an order."""
    return f'{{"order_id": "{order_id}", "status": "delivered"}}'


@tool
def get_policy(topic: str) -> str:
    """Returns a policy."""
    return f'{{"topic": "{topic}", "days": 30}}'


def agent(state: MessagesState) -> dict[str, Any]:
    """Looks an order and a policy up, then answers by what was found."""
    last = state["messages"][-1]
    if not isinstance(last, ToolMessage):
        calls = [
            {"name": "lookup_order", "args": {"order_id": "A1"}, "id": f"call-{last.id}-1", "type": "tool_call"},
            {"name": "get_policy", "args": {"topic": "refunds"}, "id": f"call-{last.id}-2", "type": "tool_call"},
        ]
        return {"messages": [AIMessage("", tool_calls=calls)]}
    lost = any('"lost"' in str(message.content) for message in state["messages"] if message.type == "tool")
    usage = {"input_tokens": 12, "output_tokens": 7, "total_tokens": 19}
    reply = "Your refund is on its way." if lost else "No refund is due: your order was delivered."
    return {"messages": [AIMessage(reply, usage_metadata=usage, response_metadata={"model_name": "scripted"})]}


def to_tools(state: MessagesState) -> str:
    """Goes to the tools where the model called any."""
    return "tools" if getattr(state["messages"][-1], "tool_calls", None) else END


chat = (
    StateGraph(MessagesState)
    .add_node("agent", agent)
    .add_node("tools", ToolNode([lookup_order, get_policy]))
    .add_edge(START, "agent")
    .add_conditional_edges("agent", to_tools, ["tools", END])
    .add_edge("tools", "agent")
    .compile()
)


class FanState(TypedDict, total=False):
    """Parts to price, and what is known of them."""

    parts: list[str]
    prices: Annotated[list[dict[str, Any]], operator.add]
    total: float
    note: str


class Part(TypedDict):
    """One part."""

    part: str


def price(state: Part) -> dict[str, Any]:
    """Prices a part; one called `ask` is asked about."""
    if state["part"] == "ask":
        answer = interrupt({"question": "what does it cost?"})
        return {"prices": [{"part": "ask", "price": answer}]}
    return {"prices": [{"part": state["part"], "price": len(state["part"]) * 1.5}]}


fan = (
    StateGraph(FanState)
    .add_node("plan", lambda state: {"note": "planned"})
    .add_node("price", price)
    .add_node("add", lambda state: {"total": sum(float(one["price"]) for one in state["prices"])})
    .add_edge(START, "plan")
    .add_conditional_edges("plan", lambda state: [Send("price", {"part": part}) for part in state["parts"]], ["price"])
    .add_edge("price", "add")
    .compile()
)


class ReviewState(TypedDict, total=False):
    """A text under review."""

    text: str
    approved: bool
    log: Annotated[list[str], operator.add]


def ask(state: ReviewState) -> dict[str, Any]:
    """Asks whether the text may go out."""
    return {"approved": interrupt({"text": state["text"], "options": ["yes", "no"]}), "log": ["asked"]}


review = (
    StateGraph(ReviewState)
    .add_node("read", lambda state: {"log": ["read"]})
    .add_node("ask", ask)
    .add_edge(START, "read")
    .add_edge("read", "ask")
    .compile()
)
outer = (
    StateGraph(ReviewState)
    .add_node("draft", lambda state: {"text": state["text"] + "!", "log": ["drafted"]})
    .add_node("check", lambda state: {"log": ["checked"]})
    .add_node("review", review)
    .add_node("send", lambda state: {"log": ["sent" if state.get("approved") else "held"]})
    .add_edge(START, "draft")
    .add_edge("draft", "check")
    .add_edge("draft", "review")
    .add_edge(["check", "review"], "send")
    .compile()
)
letter = (
    StateGraph(ReviewState)
    .add_node("draft", lambda state: {"text": state["text"] + "!", "log": ["drafted"]})
    .add_node("review", review)
    .add_node("send", lambda state: {"log": ["sent" if state.get("approved") else "held"]})
    .add_edge(START, "draft")
    .add_edge("draft", "review")
    .add_edge("review", "send")
    .compile()
)


def explode(state: ReviewState) -> dict[str, Any]:
    """Fails."""
    raise ValueError("the printer is on fire")


failing = (
    StateGraph(ReviewState)
    .add_node("good", lambda state: {"log": ["good"]})
    .add_node("bad", explode)
    .add_edge(START, "good")
    .add_edge(START, "bad")
    .compile()
)


async def hold(state: ReviewState) -> dict[str, Any]:
    """Runs until a file of the name that is in the state lies in the server's folder."""
    while not await asyncio.to_thread(Path(state["text"]).exists):
        await asyncio.sleep(_POLL_S)
    return {"log": ["let go"]}


slow = (
    StateGraph(ReviewState)
    .add_node("first", lambda state: {"log": ["first"]})
    .add_node("hold", hold)
    .add_edge(START, "first")
    .add_edge("first", "hold")
    .compile()
)


class DeltaState(TypedDict, total=False):
    """Messages that are stored as their changes, as deep agents store them."""

    messages: Annotated[list[AnyMessage], DeltaChannel(_messages_delta_reducer)]
    n_replies: Annotated[int, operator.add]


delta = (
    StateGraph(DeltaState)
    .add_node("reply", lambda state: {"messages": [AIMessage(f"reply {len(state['messages'])}")], "n_replies": 1})
    .add_node("sum", lambda state: {"messages": [AIMessage(f"that were {state['n_replies']}")]})
    .add_edge(START, "reply")
    .add_edge("reply", "sum")
    .compile()
)
