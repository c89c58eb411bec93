"""What forks rely on inside LangGraph: channel names, node specs, and an input node that leads where we say."""

from __future__ import annotations

import operator
from typing import Annotated, Any, Literal, TypedDict

import pytest
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.func import entrypoint
from langgraph.graph import END, START, StateGraph
from langgraph.managed import RemainingSteps
from langgraph.types import Command, StateUpdate

from agentctl.experiments.runs.graph_parts import (
    channels_of,
    command_ends,
    going_to,
    inner_graph,
    is_functional,
    nodes_of,
    reduces,
    tool_use,
)
from tests.catalog import CATALOG, config_of


class State(TypedDict, total=False):
    log: Annotated[list[str], operator.add]
    plain: int
    left: RemainingSteps


def route(state: State) -> Command[Literal["b"]]:
    return Command(goto="b")


def graph(saver: Any = None) -> Any:
    inner = StateGraph(State).add_node("x", lambda s: {"log": ["x"]}).add_edge(START, "x").compile()
    builder = StateGraph(State).add_node("a", lambda s: {"log": ["a"]}).add_node("b", lambda s: {"log": ["b"]})
    builder.add_node("route", route).add_node("sub", inner)
    builder.add_edge(START, "a").add_edge("a", "b").add_edge(["a", "b"], "route").add_edge("route", "sub")
    return builder.compile(checkpointer=saver)


def test_nodes_and_channels_are_those_of_the_application() -> None:
    assert nodes_of(graph()) == ("a", "b", "route", "sub")
    assert channels_of(graph()) == ("log", "plain")


def test_reducers_command_routes_and_subgraphs_are_known() -> None:
    assert (reduces(graph(), "log"), reduces(graph(), "plain")) == (True, False)
    assert (command_ends(graph(), "route"), command_ends(graph(), "a")) == (("b",), ())
    inner = inner_graph(graph(), "sub")
    assert inner is not None
    assert nodes_of(inner) == ("x",)
    assert inner_graph(graph(), "a") is None
    assert inner_graph(graph(), "sub|x") is None


def test_delta_channels_reduce_and_a_subagent_is_not_declared() -> None:
    deep = CATALOG["deep agent"].build(None)
    assert reduces(deep, "messages")
    assert inner_graph(deep, "tools") is None
    assert "tools" in tool_use(deep).nodes


def test_an_entrypoint_is_functional_and_a_graph_is_not() -> None:
    @entrypoint()
    def flow(value: int) -> int:
        return value

    assert is_functional(flow)
    assert not is_functional(graph())


@pytest.mark.parametrize("node", ["b", "sub", END])
def test_an_update_through_the_input_node_leads_there_and_nowhere_else(node: str) -> None:
    saver = InMemorySaver()
    stopped = graph(saver).copy(update={"interrupt_before_nodes": ["b"]})
    stopped.invoke({"log": ["in"]}, config_of("t"), durability="sync")
    there = going_to(graph(saver), {"plain": 3}, node)
    made = there.bulk_update_state(config_of("t"), [[StateUpdate(None, START)]])
    state = graph(saver).get_state(made)
    assert state.next == (() if node == END else (node,))
    assert state.values == {"log": ["in", "a"], "plain": 3}
