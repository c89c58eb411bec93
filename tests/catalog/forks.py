"""Threads with more than one branch, and threads written by `update_state`."""

from __future__ import annotations

from typing import Any

from langgraph.graph import END, START, StateGraph
from langgraph.types import Command, Send, StateUpdate

from tests.catalog.case import Saver, before, case, config_of, go
from tests.catalog.flows import Log, says


def _line(saver: Saver | None) -> Any:
    graph = StateGraph(Log)
    for name in ("collect", "decide", "answer"):
        graph.add_node(name, says(name))
    graph.add_edge(START, "collect").add_edge("collect", "decide").add_edge("decide", "answer").add_edge("answer", END)
    return graph.compile(checkpointer=saver)


def _diamond(saver: Saver | None) -> Any:
    graph = StateGraph(Log)
    for name in ("left", "right", "end"):
        graph.add_node(name, says(name))
    graph.add_edge(START, "left").add_edge(START, "right").add_edge(["left", "right"], "end")
    return graph.compile(checkpointer=saver)


def _fan_out(saver: Saver | None) -> Any:
    graph = StateGraph(Log)
    graph.add_node("plan", says("plan"))
    graph.add_node("read", lambda arg: {"log": [f"read {arg['item']}"]})
    graph.add_node("sum", says("sum"))
    graph.add_edge(START, "plan").add_edge("read", "sum")
    graph.add_conditional_edges("plan", lambda _: [Send("read", {"item": name}) for name in "ab"], ["read"])
    return graph.compile(checkpointer=saver)


def _routed(saver: Saver | None) -> Any:
    graph = StateGraph(Log)
    graph.add_node("triage", lambda state: Command(goto="orders", update={"log": ["triage"]}))
    graph.add_node("orders", says("orders"))
    graph.add_node("refunds", says("refunds"))
    graph.add_edge(START, "triage")
    return graph.compile(checkpointer=saver)


def _ask(graph: Any, thread: str) -> None:
    go(graph, thread, {"log": ["input"]})


def _update_fork(graph: Any, thread: str) -> None:
    _ask(graph, thread)
    fork = graph.update_state(before(graph, thread, "decide"), {"log": ["corrected"]}, as_node="collect")
    go(graph, thread, None, at=fork["configurable"]["checkpoint_id"])


def _update_pending_node(graph: Any, thread: str) -> None:
    _ask(graph, thread)
    graph.update_state(before(graph, thread, "decide"), {"log": ["decided by hand"]}, as_node="decide")


def _update_head(graph: Any, thread: str) -> None:
    _ask(graph, thread)
    graph.update_state(config_of(thread), {"log": ["a note"]}, as_node="answer")


def _update_first(graph: Any, thread: str) -> None:
    graph.update_state(config_of(thread), {"log": ["seeded"]}, as_node="collect")
    go(graph, thread, None)


def _replay_fork(graph: Any, thread: str) -> None:
    _ask(graph, thread)
    go(graph, thread, None, at=before(graph, thread, "decide")["configurable"]["checkpoint_id"])


def _several_forks(graph: Any, thread: str) -> None:
    _ask(graph, thread)
    place = before(graph, thread, "decide")
    for text in ("one", "two"):
        graph.update_state(place, {"log": [text]}, as_node="collect")
        go(graph, thread, None)
    go(graph, thread, None, at=place["configurable"]["checkpoint_id"])
    graph.update_state(before(graph, thread, "answer"), {"log": ["unfinished"]}, as_node="decide")


def _bulk_update(graph: Any, thread: str) -> None:
    _ask(graph, thread)
    place = before(graph, thread, "left")
    graph.bulk_update_state(place, [[StateUpdate({"log": ["L"]}, "left"), StateUpdate({"log": ["R"]}, "right")]])
    go(graph, thread, None)


def _bulk_supersteps(graph: Any, thread: str) -> None:
    graph.bulk_update_state(
        config_of(thread),
        [[StateUpdate({"log": ["hello"]}, "__input__")], [StateUpdate({"log": ["c"]}, "collect")]],
    )


def _update_one_of_two(graph: Any, thread: str) -> None:
    _ask(graph, thread)
    graph.update_state(before(graph, thread, "left"), {"log": ["L"]}, as_node="left")


def _update_sends(graph: Any, thread: str) -> None:
    _ask(graph, thread)
    place = before(graph, thread, "read")
    tasks = graph.get_state(place).tasks
    graph.bulk_update_state(
        place, [[StateUpdate({"log": [f"by hand {i}"]}, "read", task.id) for i, task in enumerate(tasks)]]
    )


def _copy(graph: Any, thread: str) -> None:
    _ask(graph, thread)
    graph.update_state(before(graph, thread, "decide"), None, as_node="__copy__")
    go(graph, thread, None)


def _clear(graph: Any, thread: str) -> None:
    graph.update_state(config_of(thread), {"log": ["seeded"]}, as_node="collect")
    graph.update_state(config_of(thread), None, as_node=END)


def _reroute(graph: Any, thread: str) -> None:
    _ask(graph, thread)
    graph.update_state(before(graph, thread, "orders"), Command(goto="refunds"), as_node="triage")
    go(graph, thread, None)


def _goto_after_end(graph: Any, thread: str) -> None:
    _ask(graph, thread)
    go(graph, thread, Command(goto="decide"))


CASES = (
    case("update fork", _line, _update_fork, "an update_state fork in the middle, run to the end"),
    case("update pending node", _line, _update_pending_node, "an update written as the pending node, not run"),
    case("update head", _line, _update_head, "an update at the head of a finished thread"),
    case("update first", _line, _update_first, "a thread whose first row is an update"),
    case("replay fork", _line, _replay_fork, "run again from a checkpoint by id"),
    case("several forks", _line, _several_forks, "four branches off one thread"),
    case("bulk update", _diamond, _bulk_update, "bulk_update_state of both tasks of a step"),
    case("bulk supersteps", _line, _bulk_supersteps, "a history imported by bulk_update_state"),
    case("update one of two", _diamond, _update_one_of_two, "an update that loses the sibling of a join"),
    case("update sends", _fan_out, _update_sends, "one update a Send task"),
    case("copy fork", _line, _copy, "a __copy__ fork, run"),
    case("clear tasks", _line, _clear, "pending tasks cleared by an update as END"),
    case("reroute", _routed, _reroute, "a Command given as the update of a routing node"),
    case("goto after end", _line, _goto_after_end, "Command(goto) on a finished thread"),
)
