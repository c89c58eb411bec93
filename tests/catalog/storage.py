"""Threads whose rows are laid out differently: delta channels, durability "exit", the functional API, odd values."""

from __future__ import annotations

import operator
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Annotated, Any, TypedDict
from uuid import UUID

from langchain_core.messages import AIMessage, AnyMessage, HumanMessage
from langgraph.channels import DeltaChannel
from langgraph.func import entrypoint, task
from langgraph.graph import START, StateGraph
from langgraph.graph.message import _messages_delta_reducer
from langgraph.types import Command, interrupt

from tests.catalog.case import Saver, before, case, config_of, go
from tests.catalog.flows import Log, says


def extend(value: list[str], writes: list[list[str]]) -> list[str]:
    """A batch reducer: appends every write."""
    return [*value, *(item for write in writes for item in write)]


class Delta(TypedDict, total=False):
    messages: Annotated[list[AnyMessage], DeltaChannel(_messages_delta_reducer, snapshot_frequency=3)]
    notes: Annotated[list[str], DeltaChannel(extend, snapshot_frequency=100)]
    n: int


def _chat(state: Delta) -> Any:
    turn = len(state["messages"])
    return {"messages": [AIMessage(f"reply {turn}", id=f"ai-{turn}")], "notes": [f"note {turn}"]}


def _delta(saver: Saver | None) -> Any:
    graph = StateGraph(Delta)
    graph.add_node("chat", _chat)
    graph.add_node("left", lambda state: {"notes": ["left"], "n": 1})
    graph.add_node("right", lambda state: {"notes": ["right"]})
    graph.add_edge(START, "chat").add_edge("chat", "left").add_edge("chat", "right")
    return graph.compile(checkpointer=saver)


def _delta_asking(saver: Saver | None) -> Any:
    graph = StateGraph(Delta)
    graph.add_node("chat", _chat)
    graph.add_node("check", lambda state: {"notes": [interrupt("right?")]})
    graph.add_edge(START, "chat").add_edge("chat", "check")
    return graph.compile(checkpointer=saver)


def _talk(graph: Any, thread: str) -> None:
    for turn in range(4):
        go(graph, thread, {"messages": [HumanMessage(f"question {turn}", id=f"h-{turn}")]})


def _talk_and_ask(graph: Any, thread: str) -> None:
    go(graph, thread, {"messages": [HumanMessage("question", id="h-0")]})
    go(graph, thread, Command(resume="yes", update={"notes": ["on the way"]}))
    go(graph, thread, {"messages": [HumanMessage("question", id="h-1")]})


def _fork_delta(graph: Any, thread: str) -> None:
    _talk(graph, thread)
    replaced = {"messages": [HumanMessage("another question", id="h-0")]}
    graph.update_state(before(graph, thread, "chat"), replaced, as_node="__start__")
    go(graph, thread, None)


def _line(saver: Saver | None) -> Any:
    graph = StateGraph(Log)
    for name in ("collect", "decide", "answer"):
        graph.add_node(name, says(name))
    graph.add_edge(START, "collect").add_edge("collect", "decide").add_edge("decide", "answer")
    return graph.compile(checkpointer=saver)


def _asking_line(saver: Saver | None) -> Any:
    graph = StateGraph(Log)
    graph.add_node("collect", says("collect"))
    graph.add_node("ask", lambda state: {"log": [interrupt("go on?")]})
    graph.add_edge(START, "collect").add_edge("collect", "ask")
    return graph.compile(checkpointer=saver)


def _exit(graph: Any, thread: str) -> None:
    graph.invoke({"log": ["input"]}, config_of(thread), durability="exit")


def _exit_delta(graph: Any, thread: str) -> None:
    for turn in range(2):
        value = {"messages": [HumanMessage(f"question {turn}", id=f"h-{turn}")]}
        graph.invoke(value, config_of(thread), durability="exit")


def _functional(saver: Saver | None) -> Any:
    @task
    def fetch(name: str) -> str:
        return f"fetched {name}"

    @task
    def approve(text: str) -> bool:
        return bool(interrupt({"approve": text}))

    @entrypoint(checkpointer=saver)
    def pipeline(names: list[str], *, previous: Any = None) -> dict[str, Any]:
        parts = [fetch(name) for name in names]
        texts = [part.result() for part in parts]
        return {"texts": texts, "ok": approve(", ".join(texts)).result(), "previous": previous}

    return pipeline


def _call(graph: Any, thread: str) -> None:
    go(graph, thread, ["a", "b"])


def _call_and_answer(graph: Any, thread: str) -> None:
    go(graph, thread, ["a", "b"])
    go(graph, thread, Command(resume=True))


def _call_twice(graph: Any, thread: str) -> None:
    for names in (["a", "b"], ["c"]):
        go(graph, thread, names)
        go(graph, thread, Command(resume=True))


class Values(TypedDict, total=False):
    text: str
    flag: bool
    small: int
    ratio: float
    nothing: None
    raw: bytes
    items: Annotated[list[Any], operator.add]
    table: dict[str, Any]


def _values(saver: Saver | None) -> Any:
    graph = StateGraph(Values)
    graph.add_node("fill", lambda state: VALUES)
    graph.add_node("end", lambda state: {"small": state["small"] + 1})
    graph.add_edge(START, "fill").add_edge("fill", "end")
    return graph.compile(checkpointer=saver)


VALUES: Values = {
    "text": "naïve ☕",
    "flag": True,
    "small": -7,
    "ratio": 0.25,
    "nothing": None,
    "raw": b"\x00\xff",
    "items": [
        UUID("12345678-1234-5678-1234-567812345678"),
        Decimal("12.50"),
        datetime(2026, 11, 30, 14, 0, tzinfo=UTC),
        date(2026, 11, 30),
        timedelta(hours=1),
        (1, 2),
    ],
    "table": {"nested": {"deep": [1, {"x": None}]}, "empty": {}},
}


CASES = (
    case("delta", _delta, _talk, "delta channels over four turns, one with snapshots, parallel writers"),
    case("delta interrupted", _delta_asking, _talk_and_ask, "a delta channel written by an answer's update"),
    case("delta fork", _delta, _fork_delta, "a fork that replaces a message of a delta channel"),
    case("exit", _line, _exit, "durability exit: one row for a run of three nodes"),
    case("exit twice", _line, lambda g, t: (_exit(g, t), _exit(g, t)), "two runs with durability exit"),
    case("exit interrupted", _asking_line, _exit, "durability exit, stopped at a question"),
    case("exit delta", _delta, _exit_delta, "durability exit with delta channels"),
    case("functional", _functional, _call, "an entrypoint waiting inside a task"),
    case("functional answered", _functional, _call_and_answer, "an entrypoint that asked and finished"),
    case("functional twice", _functional, _call_twice, "an entrypoint run twice on one thread"),
    case("values", _values, lambda graph, thread: go(graph, thread, {"text": ""}), "one channel of each common type"),
)
