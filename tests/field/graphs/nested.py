"""Graphs inside graphs: asking, kept between visits, with a breakpoint, two levels deep, fanned out."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Annotated, Any, TypedDict

from langgraph.graph import END, START, StateGraph
from langgraph.types import Send, interrupt


class Outer(TypedDict):
    log: Annotated[list[str], operator.add]
    amount: int


class Inner(TypedDict):
    inner: Annotated[list[str], operator.add]
    amount: int


def notes(name: str) -> Callable[[Inner], dict[str, Any]]:
    return lambda state: {"inner": [name]}


def says(name: str) -> Callable[[Outer], dict[str, Any]]:
    return lambda state: {"log": [name]}


def asks(name: str) -> Callable[[Inner], dict[str, Any]]:
    return lambda state: {"inner": [f"{name}: {interrupt(f'{name}?')}"]}


def ten_fold(state: Inner) -> dict[str, Any]:
    return {"amount": state["amount"] * 10}


def counts(state: Outer) -> dict[str, Any]:
    return {"amount": state["amount"] + 1, "log": ["count"]}


def told(state: Inner) -> dict[str, Any]:
    return {"inner": [f"{interrupt(state['amount'])}"]}


def _inner(**nodes: Any) -> StateGraph[Any]:
    return StateGraph(Inner).add_sequence(list(nodes.items())).add_edge(START, next(iter(nodes)))


def _outer(sub: Any) -> Any:
    builder = StateGraph(Outer).add_sequence([("pre", counts), ("sub", sub), ("post", says("post"))])
    return builder.add_edge(START, "pre").compile()


def _calls(graph: Any) -> Callable[[Outer], dict[str, Any]]:
    return lambda state: {"amount": graph.invoke({"amount": state["amount"], "inner": []})["amount"]}


def _visiting(checkpointer: Any) -> Any:
    sub = _inner(step=ten_fold, ask=told).compile(checkpointer=checkpointer)
    builder = StateGraph(Outer).add_node("count", counts).add_node("sub", sub).add_edge(START, "count")
    builder.add_edge("count", "sub")
    return builder.add_conditional_edges("sub", lambda state: "count" if state["amount"] < 100 else END).compile()


class Leaf(TypedDict):
    number: int
    log: Annotated[list[str], operator.add]


def ask_leaf(state: Leaf) -> dict[str, Any]:
    return {"log": [f"leaf {state['number']}: {interrupt(state['number'])}"]}


def _split(state: Outer) -> list[Send]:
    return [Send("sub", {"number": number, "log": []}) for number in (1, 2)]


_asking = _inner(scale=ten_fold, first=asks("first"), second=asks("second"), last=notes("last"))
_gated = _inner(scale=ten_fold, gated=notes("gated")).compile(interrupt_before=["gated"])

two_questions = _outer(_asking.compile())
two_levels = _outer(StateGraph(Inner).add_node("deeper", _asking.compile()).add_edge(START, "deeper").compile())
gated = _outer(_gated)
gated_in_a_call = _outer(_calls(_gated))
kept = _visiting(True)
not_kept = _visiting(None)
_leaf = StateGraph(Leaf).add_sequence([("note", says("note")), ("ask", ask_leaf)]).add_edge(START, "note").compile()
fanned = (
    StateGraph(Outer)
    .add_node("split", says("split"))
    .add_node("sub", _leaf)
    .add_edge(START, "split")
    .add_conditional_edges("split", _split, ["sub"])
    .compile()
)


class Shared(TypedDict):
    items: Annotated[list[str], operator.add]


def item(name: str) -> Callable[[Shared], dict[str, Any]]:
    return lambda state: {"items": [name]}


doubling = (
    StateGraph(Shared)
    .add_sequence(
        [("pre", item("pre")), ("sub", StateGraph(Shared).add_node("in", item("in")).add_edge(START, "in").compile())]
    )
    .add_edge(START, "pre")
    .compile()
)
