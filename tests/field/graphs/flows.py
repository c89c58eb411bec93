"""Small flows: lines, joins, Sends, routes, questions, error handlers. Each node appends its name to the log."""

from __future__ import annotations

import operator
from collections.abc import Callable
from contextvars import ContextVar
from itertools import pairwise
from typing import Annotated, Any, Literal, TypedDict

from langchain_core.tools import tool
from langgraph.graph import START, StateGraph
from langgraph.types import Command, Send, interrupt

LIVE = ContextVar("live", default=False)


class State(TypedDict):
    log: Annotated[list[str], operator.add]
    count: int


class Item(TypedDict):
    item: int


@tool
def notify(text: str) -> str:
    """Tells somebody."""
    if not LIVE.get():
        raise RuntimeError("told although nobody meant to")
    return "told"


def says(name: str) -> Callable[[State], dict[str, Any]]:
    return lambda state: {"log": [name]}


def asks(name: str, *questions: str) -> Callable[[State], dict[str, Any]]:
    return lambda state: {"log": [f"{name}: {interrupt(question)}" for question in questions]}


def work(state: Item) -> dict[str, Any]:
    return {"log": [f"work {state['item']}"]}


def asking_work(state: Item) -> dict[str, Any]:
    return {"log": [f"work {state['item']}: {interrupt(state['item'])}" if state["item"] == 1 else "work"]}


def fan_out(state: State) -> list[Send]:
    return [Send("work", {"item": item}) for item in range(3)]


def router(state: State) -> Command[Literal["left", "right"]]:
    return Command(update={"log": ["router"]}, goto="left")


def failing(state: State) -> dict[str, Any]:
    raise ValueError("the bureau is down")


def failing_for_now(state: State) -> dict[str, Any]:
    if LIVE.get():
        raise ValueError("the neighbour fell over")
    return {"log": ["neighbour"]}


def handler(state: State) -> dict[str, Any]:
    return {"log": [f"handled, {notify.invoke({'text': 'it is down'})}"]}


def _graph(**nodes: Any) -> StateGraph[Any]:
    builder = StateGraph(State)
    for name, node in nodes.items():
        builder.add_node(name, node)
    return builder


def _line(**nodes: Any) -> Any:
    builder = _graph(**nodes)
    for before, after in pairwise([START, *nodes]):
        builder.add_edge(before, after)
    return builder.compile()


def _joined(builder: StateGraph[Any], *names: str) -> Any:
    for name in names:
        builder.add_edge(START, name)
    builder.add_node("join", says("join"))
    builder.add_edge(list(names), "join")
    return builder.compile()


def _fanned(worker: Any) -> Any:
    builder = _graph(split=says("split"), work=worker, gather=says("gather"))
    builder.add_edge(START, "split").add_conditional_edges("split", fan_out, ["work"]).add_edge("work", "gather")
    return builder.compile()


line = _line(first=says("first"), second=says("second"), third=says("third"))
long_line = _line(**{f"n{number}": says(f"n{number}") for number in range(17)})
asking = _line(first=says("first"), ask=asks("ask", "go on?"), last=says("last"))
pair = _joined(_graph(a=says("a"), b=says("b")), "a", "b")
half = _joined(_graph(a=says("a"), b=asks("b", "b?")), "a", "b")
twice = _joined(_graph(a=asks("a", "first?", "second?"), b=asks("b", "only?")), "a", "b")
fan = _fanned(work)
asking_fan = _fanned(asking_work)
routed = _graph(router=router, left=says("left"), right=says("right")).add_edge(START, "router").compile()
handled = _joined(_graph(b=says("b")).add_node("a", failing, error_handler=handler), "a", "b")
cut_off = _joined(_graph(b=failing_for_now).add_node("a", failing, error_handler=handler), "a", "b")
