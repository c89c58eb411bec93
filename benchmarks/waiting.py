"""A graph whose one model call waits; run as a program, it makes a thread to replay.

Usage: python -m benchmarks.waiting STORE THREAD
"""

from __future__ import annotations

import sys
import time
from typing import Annotated, Any, TypedDict

from langchain_core.messages import AIMessage, AnyMessage, HumanMessage
from langgraph.graph import END, START, StateGraph
from langgraph.graph.message import add_messages

WAIT_S = 0.1


class Chat(TypedDict):
    """Every message so far."""

    messages: Annotated[list[AnyMessage], add_messages]


def model(state: Chat) -> dict[str, Any]:
    """Waits as for a provider, then answers."""
    time.sleep(WAIT_S)
    return {"messages": [AIMessage(f"answer {len(state['messages'])}")]}


def build() -> StateGraph[Any, Any, Any, Any]:
    """Returns the graph, not compiled."""
    graph: StateGraph[Any, Any, Any, Any] = StateGraph(Chat)
    graph.add_node("model", model)
    graph.add_edge(START, "model")
    graph.add_edge("model", END)
    return graph


graph = build().compile()


def main() -> None:
    """Runs the graph once on a new thread."""
    from benchmarks.stock import open_saver

    store, thread = sys.argv[1:]
    with open_saver(store) as saver:
        config: Any = {"configurable": {"thread_id": thread}}
        build().compile(checkpointer=saver).invoke({"messages": [HumanMessage("hello")]}, config, durability="sync")


if __name__ == "__main__":
    main()
