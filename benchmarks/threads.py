"""Seeded threads for the benchmarks, made by running a real graph with the stock savers.

`chat`: a window of 40 messages of 200 bytes at every checkpoint. `growing`: one more message of 200 bytes a step.
"""

from __future__ import annotations

import random
import string
from typing import Annotated, Any, TypedDict

from langchain_core.messages import AIMessage, AnyMessage, HumanMessage
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.graph import END, START, StateGraph
from langgraph.graph.message import add_messages

N_WINDOW = 40
N_BYTES = 200


class Window(TypedDict):
    """State of `chat`: a bounded window, and how many steps are left."""

    messages: list[AnyMessage]
    left: int


class Growing(TypedDict):
    """State of `growing`: every message so far."""

    messages: Annotated[list[AnyMessage], add_messages]
    left: int


def _text(seed: int) -> str:
    return "".join(random.Random(seed).choices(string.ascii_letters + "      ", k=N_BYTES))


def _message(number: int) -> AnyMessage:
    kind = AIMessage if number % 2 else HumanMessage
    return kind(_text(number), id=f"m-{number}")


def build(kind: str) -> StateGraph[Any, Any, Any, Any]:
    """Returns the graph of `chat` or `growing`: two nodes that take turns until no step is left."""

    def window(state: Window) -> dict[str, Any]:
        number = state["left"]
        return {"messages": [*state["messages"], _message(number)][-N_WINDOW:], "left": number - 1}

    def growing(state: Growing) -> dict[str, Any]:
        return {"messages": [_message(state["left"])], "left": state["left"] - 1}

    def onward(name: str) -> Any:
        return lambda state: name if state["left"] > 0 else END

    node = window if kind == "chat" else growing
    graph: StateGraph[Any, Any, Any, Any] = StateGraph(Window if kind == "chat" else Growing)
    graph.add_node("agent", node)
    graph.add_node("tools", node)
    graph.add_edge(START, "agent")
    graph.add_conditional_edges("agent", onward("tools"), ["tools", END])
    graph.add_conditional_edges("tools", onward("agent"), ["agent", END])
    return graph


def make_thread(saver: BaseCheckpointSaver[Any], kind: str, thread: str, n_checkpoints: int) -> None:
    """Writes a thread of about `n_checkpoints` checkpoints."""
    graph = build(kind).compile(checkpointer=saver)
    first = [_message(10_000_000 + i) for i in range(N_WINDOW if kind == "chat" else 1)]
    config: Any = {"configurable": {"thread_id": thread}, "recursion_limit": n_checkpoints + 10}
    graph.invoke({"messages": first, "left": n_checkpoints - 2}, config, durability="sync")
