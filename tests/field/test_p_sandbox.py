"""Field log P: sandboxed replay."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from langchain_core.messages import AIMessage
from langchain_core.tools import tool
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode, tools_condition

from agentctl.experiments.replay import replay
from agentctl.sandbox.answers import Policy
from agentctl.sandbox.effects import Effects
from agentctl.sandbox.registry import ToolRegistry
from agentctl.testing import build_thread
from tests.support.experiments import about_to_run, experiment_on

_RAN: list[str] = []


@tool
def stock(item: str) -> str:
    """Says how many there are."""
    _RAN.append(item)
    return "none"


@tool("stock")
def sandbox_stock(item: str) -> str:
    """Says how many there are."""
    return "seven"


def _agent(state: MessagesState) -> Any:
    if state["messages"][-1].type == "human":
        return {"messages": [AIMessage("", tool_calls=[{"name": "stock", "args": {"item": "lamp"}, "id": "c1"}])]}
    return {"messages": [AIMessage(f"in stock: {state['messages'][-1].content}")]}


def _shop() -> Any:
    graph = StateGraph(MessagesState)
    graph.add_node("agent", _agent)
    graph.add_node("tools", ToolNode([stock]))
    graph.add_edge(START, "agent")
    graph.add_conditional_edges("agent", tools_condition)
    graph.add_edge("tools", "agent")
    return graph.compile()


def test_p7_the_plan_tells_what_really_answers_and_which_names_nobody_asks_for(tmp_path: Path) -> None:
    prod = tmp_path / "prod.sqlite"
    build_thread(_shop(), prod, "t", {"messages": [("human", "a lamp?")]})
    _RAN.clear()
    registry = ToolRegistry()
    registry.register(sandbox_stock, effect="read")
    policy = Policy(
        mode="sandbox",
        stubs={"stocks": "one"},
        registry=registry,
        effects=Effects(registries=(registry,)),
        live_reads=True,
        live=registry,
    )

    with experiment_on(prod, _shop(), tmp_path / "debug.sqlite", policy=policy) as experiment:
        report = replay(experiment, about_to_run(experiment.source, "t", "tools"))

    planned = {one.name: one.served_by for one in report.plan.tools}
    assert planned == {call.name: call.served_by for call in report.group.runs[0].tool_calls} == {"stock": "stub"}
    assert report.warnings == (
        "--stub stocks: no tool of the graph or the recording is called that; did you mean stock?",
    )
    assert _RAN == []
