"""Threads of plain graphs: edges, loops, joins, Sends, Commands, deferred and cached nodes."""

from __future__ import annotations

import operator
from typing import Annotated, Any, TypedDict

from langgraph.cache.memory import InMemoryCache
from langgraph.graph import END, START, StateGraph
from langgraph.types import CachePolicy, Command, RetryPolicy, Send

from tests.catalog.case import Saver, case, config_of, go


class Log(TypedDict, total=False):
    log: Annotated[list[str], operator.add]
    n: int
    item: str


def says(name: str) -> Any:
    """Returns a node that appends its own name to the log."""

    def node(state: Log) -> Log:
        return {"log": [name]}

    return node


def _linear(saver: Saver | None) -> Any:
    graph = StateGraph(Log)
    for name in ("collect", "decide", "answer"):
        graph.add_node(name, says(name))
    graph.add_edge(START, "collect").add_edge("collect", "decide").add_edge("decide", "answer").add_edge("answer", END)
    return graph.compile(checkpointer=saver)


def _loop(saver: Saver | None) -> Any:
    graph = StateGraph(Log)
    graph.add_node("work", lambda state: {"n": state.get("n", 0) + 1, "log": [f"round {state.get('n', 0)}"]})
    graph.add_edge(START, "work")
    graph.add_conditional_edges("work", lambda state: "work" if state["n"] < 3 else END, ["work", END])
    return graph.compile(checkpointer=saver)


def _join(saver: Saver | None) -> Any:
    graph = StateGraph(Log)
    for name in ("start", "left", "right", "end"):
        graph.add_node(name, says(name))
    graph.add_edge(START, "start").add_edge("start", "left").add_edge("start", "right")
    graph.add_edge(["left", "right"], "end")
    return graph.compile(checkpointer=saver)


def _uneven_join(saver: Saver | None) -> Any:
    graph = StateGraph(Log)
    for name in ("left", "right", "right_more", "end"):
        graph.add_node(name, says(name))
    graph.add_edge(START, "left").add_edge(START, "right").add_edge("right", "right_more")
    graph.add_edge(["left", "right_more"], "end")
    return graph.compile(checkpointer=saver)


def _fan_out(saver: Saver | None) -> Any:
    graph = StateGraph(Log)
    graph.add_node("plan", says("plan"))
    graph.add_node("read", lambda arg: {"log": [f"read {arg['item']}"]})
    graph.add_node("watch", says("watch"))
    graph.add_node("sum", says("sum"))
    graph.add_edge(START, "plan").add_edge("plan", "watch")
    graph.add_conditional_edges("plan", lambda _: [Send("read", {"item": name}) for name in "abc"], ["read"])
    graph.add_edge("read", "sum")
    return graph.compile(checkpointer=saver)


def _pending_sends(saver: Saver | None) -> Any:
    graph = StateGraph(Log)
    graph.add_node("plan", says("plan"))
    graph.add_node("read", lambda arg: {"log": [f"read {arg['item']}"]})
    graph.add_node("skim", lambda arg: {"log": [f"skim {arg['item']}"]})
    graph.add_edge(START, "plan")
    graph.add_conditional_edges(
        "plan", lambda _: [Send("read", {"item": "a"}), Send("skim", {"item": "b"}), Send("read", {"item": "c"})]
    )
    return graph.compile(checkpointer=saver, interrupt_after=["plan"])


def _command(saver: Saver | None) -> Any:
    def triage(state: Log) -> Command[Any]:
        return Command(goto="refunds", update={"log": ["triage"]})

    def refunds(state: Log) -> Command[Any]:
        return Command(goto=[Send("note", {"item": "x"}), "close"], update={"log": ["refunds"]})

    graph = StateGraph(Log)
    graph.add_node("triage", triage, destinations=("refunds", "orders"))
    graph.add_node("orders", says("orders"))
    graph.add_node("refunds", refunds, destinations=("note", "close"))
    graph.add_node("note", lambda arg: {"log": [f"note {arg['item']}"]})
    graph.add_node("close", says("close"))
    graph.add_edge(START, "triage")
    return graph.compile(checkpointer=saver)


def _defer(saver: Saver | None) -> Any:
    graph = StateGraph(Log)
    for name in ("split", "short", "long", "longer"):
        graph.add_node(name, says(name))
    graph.add_node("gather", says("gather"), defer=True)
    graph.add_edge(START, "split").add_edge("split", "short").add_edge("split", "long").add_edge("long", "longer")
    graph.add_edge("short", "gather").add_edge("longer", "gather")
    return graph.compile(checkpointer=saver)


def _deferred_join(saver: Saver | None) -> Any:
    graph = StateGraph(Log)
    for name in ("left", "right", "side", "side_more"):
        graph.add_node(name, says(name))
    graph.add_node("gather", says("gather"), defer=True)
    graph.add_edge(START, "left").add_edge(START, "right").add_edge(START, "side").add_edge("side", "side_more")
    graph.add_edge(["left", "right"], "gather")
    return graph.compile(checkpointer=saver)


def _retry(saver: Saver | None) -> Any:
    tried: list[int] = []

    def flaky(state: Log) -> Log:
        tried.append(1)
        if len(tried) % 2:
            raise ConnectionError("try again")
        return {"log": ["flaky"]}

    graph = StateGraph(Log)
    graph.add_node("flaky", flaky, retry_policy=RetryPolicy(max_attempts=2, initial_interval=0.001, jitter=False))
    graph.add_node("end", says("end"))
    graph.add_edge(START, "flaky").add_edge("flaky", "end")
    return graph.compile(checkpointer=saver)


def _cached(saver: Saver | None) -> Any:
    graph = StateGraph(Log)
    graph.add_node("slow", lambda state: {"n": 7}, cache_policy=CachePolicy(key_func=lambda _: "same"))
    graph.add_node("end", says("end"))
    graph.add_edge(START, "slow").add_edge("slow", "end")
    return graph.compile(checkpointer=saver, cache=InMemoryCache())


def _two_cached(saver: Saver | None) -> Any:
    graph = StateGraph(Log)
    for name in ("slow_a", "slow_b"):
        graph.add_node(name, says(name), cache_policy=CachePolicy(key_func=lambda _: "same"))
        graph.add_edge(START, name)
    graph.add_node("end", says("end"))
    graph.add_edge(["slow_a", "slow_b"], "end")
    return graph.compile(checkpointer=saver, cache=InMemoryCache())


def _silent(saver: Saver | None) -> Any:
    graph = StateGraph(Log)
    graph.add_node("look", lambda state: None)
    graph.add_node("end", lambda state: None)
    graph.add_edge(START, "look").add_edge("look", "end")
    return graph.compile(checkpointer=saver)


def _ask(graph: Any, thread: str) -> None:
    go(graph, thread, {"log": ["input"]})


def _ask_twice(graph: Any, thread: str) -> None:
    go(graph, thread, {"log": ["first"]})
    go(graph, thread, {"log": ["second"]})


def _nothing(graph: Any, thread: str) -> None:
    """An empty thread: asked about, never run."""
    assert graph.get_state(config_of(thread)).next == ()


CASES = (
    case("linear", _linear, _ask, "three nodes in a line"),
    case("two turns", _linear, _ask_twice, "the same thread given input twice"),
    case("empty", _linear, _nothing, "a thread id that no row has"),
    case("loop", _loop, _ask, "one node visited three times by a conditional edge"),
    case("join", _join, _ask, "two parallel nodes and a join"),
    case("uneven join", _uneven_join, _ask, "a join whose two sides arrive in different steps"),
    case("fan out", _fan_out, _ask, "three Sends beside a plain edge"),
    case("pending sends", _pending_sends, _ask, "Sends to two nodes, stopped before they run"),
    case("command", _command, _ask, "routing by Command, to one node and to a Send and a node together"),
    case("defer", _defer, _ask, "a deferred node waiting for the longer branch"),
    case("deferred join", _deferred_join, _ask, "a deferred join held back by a longer side branch"),
    case("retry", _retry, _ask, "a node that succeeds at its second attempt"),
    case("cached", _cached, _ask_twice, "a node answered from the cache on the second turn"),
    case("two cached", _two_cached, _ask_twice, "two siblings answered from the cache"),
    case("silent", _silent, lambda graph, thread: go(graph, thread, {"n": 1}), "nodes that write nothing"),
    case("id with at", _linear, _ask, "a thread id with an @ in it", thread="ann@example.com"),
    case("id with colons", _linear, _ask, "a thread id that looks like a profile", thread="prod::support-1"),
    case("id with spaces", _linear, _ask, "a thread id with spaces, a tilde and an @", thread="case 7 @head ~1 "),
)
