"""Threads in which a node raised."""

from __future__ import annotations

from typing import Any

from langgraph.graph import START, StateGraph
from langgraph.types import Send, interrupt

from tests.catalog.case import Saver, case, go, go_failing
from tests.catalog.flows import Log, says


def fails(state: Log) -> Log:
    raise ValueError("the bureau did not answer")


def fails_once() -> Any:
    """Returns a node that raises when first called and succeeds from then on."""
    calls: list[int] = []

    def node(state: Log) -> Log:
        calls.append(1)
        if len(calls) == 1:
            raise ValueError("the bureau did not answer")
        return {"log": ["recovered"]}

    return node


def _failing(saver: Saver | None) -> Any:
    graph = StateGraph(Log)
    graph.add_node("prepare", says("prepare"))
    graph.add_node("bureau", fails)
    graph.add_edge(START, "prepare").add_edge("prepare", "bureau")
    return graph.compile(checkpointer=saver)


def _half_done(saver: Saver | None, bureau: Any) -> Any:
    graph = StateGraph(Log)
    graph.add_node("prepare", says("prepare"))
    graph.add_node("account", says("account"))
    graph.add_node("bureau", bureau)
    graph.add_node("score", says("score"))
    graph.add_edge(START, "prepare").add_edge("prepare", "account").add_edge("prepare", "bureau")
    graph.add_edge(["account", "bureau"], "score")
    return graph.compile(checkpointer=saver)


def _half_done_sends(saver: Saver | None) -> Any:
    def read(arg: dict[str, str]) -> Log:
        if arg["item"] == "d":
            raise ValueError("page d is missing")
        return {"log": [f"read {arg['item']}"]}

    graph = StateGraph(Log)
    graph.add_node("plan", says("plan"))
    graph.add_node("read", read)
    graph.add_edge(START, "plan")
    graph.add_conditional_edges("plan", lambda _: [Send("read", {"item": name}) for name in "abcd"], ["read"])
    return graph.compile(checkpointer=saver)


def _asking_and_failing(saver: Saver | None) -> Any:
    graph = StateGraph(Log)
    graph.add_node("ask", lambda state: {"log": [interrupt("go on?")]})
    graph.add_node("bureau", fails)
    graph.add_edge(START, "ask").add_edge(START, "bureau")
    return graph.compile(checkpointer=saver)


def _handled(saver: Saver | None) -> Any:
    graph = StateGraph(Log)
    graph.add_node("prepare", says("prepare"))
    graph.add_node("bureau", fails, error_handler=lambda state: {"log": ["used the old file"]})
    graph.add_node("score", says("score"))
    graph.add_edge(START, "prepare").add_edge("prepare", "bureau").add_edge("bureau", "score")
    return graph.compile(checkpointer=saver)


def _failing_subgraph(saver: Saver | None) -> Any:
    inner = StateGraph(Log)
    inner.add_node("fetch", says("fetch"))
    inner.add_node("bureau", fails)
    inner.add_edge(START, "fetch").add_edge("fetch", "bureau")
    graph = StateGraph(Log)
    graph.add_node("verify", inner.compile())
    graph.add_edge(START, "verify")
    return graph.compile(checkpointer=saver)


def _fail(graph: Any, thread: str) -> None:
    go_failing(graph, thread, {"log": ["input"]})


def _fail_and_retry(graph: Any, thread: str) -> None:
    _fail(graph, thread)
    go(graph, thread, None)


CASES = (
    case("failed", _failing, _fail, "a node that raised"),
    case("failed twice", _failing, lambda g, t: (_fail(g, t), go_failing(g, t, None)), "raised again on resume"),
    case("half done", lambda saver: _half_done(saver, fails), _fail, "a node raised beside a finished sibling"),
    case(
        "half done resumed",
        lambda saver: _half_done(saver, fails_once()),
        _fail_and_retry,
        "a half-done step, finished on resume; the stored error stays beside the result",
    ),
    case("half done sends", _half_done_sends, _fail, "the last of four Sends raised"),
    case("asking and failing", _asking_and_failing, _fail, "a question beside an error"),
    case(
        "handled error",
        _handled,
        lambda graph, thread: go(graph, thread, {"log": ["input"]}),
        "a node whose error handler node took over",
    ),
    case("failed in subgraph", _failing_subgraph, _fail, "a node that raised inside a subgraph"),
)
