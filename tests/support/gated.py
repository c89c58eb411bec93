"""An application that asks, then pays, and whose payment can be held up from outside.

With GATED_AT, the path of a named pipe, a payment that was made waits there until a byte comes. GATED_PAID is a file to
which each payment adds a line.
"""

from __future__ import annotations

import operator
import os
from pathlib import Path
from typing import Annotated, Any, TypedDict

from langgraph.config import get_stream_writer
from langgraph.graph import START, StateGraph
from langgraph.types import interrupt

from agentctl.sandbox.registry import ToolRegistry


class State(TypedDict, total=False):
    log: Annotated[list[Any], operator.add]


def registry() -> ToolRegistry:
    """The tools of sandbox and production alike."""
    tools = ToolRegistry()

    @tools.register(effect="write")
    def pay(amount: int) -> str:
        """Pays."""
        with Path(os.environ["GATED_PAID"]).open("a") as paid:
            paid.write(f"{amount}\n")
        get_stream_writer()({"paid": amount})
        if gate := os.environ.get("GATED_AT"):
            with Path(gate).open("rb", buffering=0) as pipe:
                pipe.read(1)
        return "paid"

    return tools


def build_graph(tools: ToolRegistry, *, model: Any = None, memory: Any = None) -> Any:
    """The graph on a registry."""

    def ask(state: State) -> State:
        return {"log": [interrupt({"question": "how much?"})]}

    def pay(state: State) -> State:
        return {"log": [tools["pay"].invoke({"amount": state["log"][-1]})]}

    def thank(state: State) -> State:
        return {"log": ["thanks"]}

    builder = StateGraph(State).add_sequence([("ask", ask), ("pay", pay), ("thank", thank)])
    return builder.add_edge(START, "ask").compile()
