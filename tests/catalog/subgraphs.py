"""Threads with more than one checkpoint namespace."""

from __future__ import annotations

from typing import Any

from langgraph.graph import START, StateGraph
from langgraph.types import Command, Send

from tests.catalog.case import Saver, case, go
from tests.catalog.flows import Log, says
from tests.catalog.interrupts import asks


def _inner(second: Any, checkpointer: bool | None = None) -> Any:
    graph = StateGraph(Log)
    graph.add_node("fetch", says("fetch"))
    graph.add_node("match", second)
    graph.add_edge(START, "fetch").add_edge("fetch", "match")
    return graph.compile(checkpointer=checkpointer)


def _outer(saver: Saver | None, inner: Any) -> Any:
    graph = StateGraph(Log)
    graph.add_node("pre", says("pre"))
    graph.add_node("verify", inner)
    graph.add_node("post", says("post"))
    graph.add_edge(START, "pre").add_edge("pre", "verify").add_edge("verify", "post")
    return graph.compile(checkpointer=saver)


def _finished(saver: Saver | None) -> Any:
    return _outer(saver, _inner(says("match")))


def _interrupted(saver: Saver | None) -> Any:
    return _outer(saver, _inner(asks("match", "which employer?")))


def _nested(saver: Saver | None) -> Any:
    return _outer(saver, _outer(None, _inner(asks("match", "which employer?"))))


def _persistent(saver: Saver | None) -> Any:
    return _outer(saver, _inner(says("match"), checkpointer=True))


def _called_in_a_node(saver: Saver | None) -> Any:
    inner = _inner(says("match"))

    def verify(state: Log) -> Log:
        return {"log": inner.invoke({"log": []})["log"]}

    return _outer(saver, verify)


def _parallel(saver: Saver | None) -> Any:
    graph = StateGraph(Log)
    graph.add_node("plan", says("plan"))
    graph.add_node("verify", _inner(asks("match", "which employer?")))
    graph.add_node("other", _inner(says("match")))
    graph.add_node("end", says("end"))
    graph.add_edge(START, "plan").add_edge("plan", "other").add_edge(["other", "verify"], "end")
    graph.add_conditional_edges("plan", lambda _: [Send("verify", {"log": [name]}) for name in "ab"], ["verify"])
    return graph.compile(checkpointer=saver)


def _command_to_parent(saver: Saver | None) -> Any:
    def hand_over(state: Log) -> Command[Any]:
        return Command(goto="post", graph=Command.PARENT, update={"log": ["handed over"]})

    inner = StateGraph(Log)
    inner.add_node("hand_over", hand_over)
    inner.add_edge(START, "hand_over")
    graph = StateGraph(Log)
    graph.add_node("verify", inner.compile(), destinations=("post",))
    graph.add_node("post", says("post"))
    graph.add_edge(START, "verify")
    return graph.compile(checkpointer=saver)


def _ask(graph: Any, thread: str) -> None:
    go(graph, thread, {"log": ["input"]})


def _ask_and_answer(graph: Any, thread: str) -> None:
    _ask(graph, thread)
    go(graph, thread, Command(resume="ACME"))


def _ask_twice(graph: Any, thread: str) -> None:
    _ask(graph, thread)
    _ask(graph, thread)


CASES = (
    case("subgraph", _finished, _ask, "a subgraph that finished"),
    case("subgraph interrupted", _interrupted, _ask, "a question asked inside a subgraph"),
    case("subgraph answered", _interrupted, _ask_and_answer, "a question inside a subgraph, answered"),
    case("subgraph nested", _nested, _ask, "a question two levels down"),
    case("subgraph nested answered", _nested, _ask_and_answer, "a question two levels down, answered"),
    case("subgraph persistent", _persistent, _ask_twice, "a subgraph that keeps its own history over two turns"),
    case("subgraph called", _called_in_a_node, _ask, "a subgraph invoked by hand inside a node"),
    case("subgraph parallel", _parallel, _ask, "two Sends to an asking subgraph beside a finished one"),
    case("subgraph hand over", _command_to_parent, _ask, "a subgraph that routes its parent by Command"),
)
