"""Threads that stop and ask: before, after and inside nodes, alone and several at once."""

from __future__ import annotations

from typing import Any

from langgraph.graph import START, StateGraph
from langgraph.types import Command, interrupt

from tests.catalog.case import Saver, case, config_of, go
from tests.catalog.flows import Log, says


def _line(saver: Saver | None, **stops: Any) -> Any:
    graph = StateGraph(Log)
    for name in ("draft", "review", "send"):
        graph.add_node(name, says(name))
    graph.add_edge(START, "draft").add_edge("draft", "review").add_edge("review", "send")
    return graph.compile(checkpointer=saver, **stops)


def asks(name: str, *questions: str) -> Any:
    """Returns a node that asks each question in turn and logs the answers."""

    def node(state: Log) -> Log:
        return {"log": [f"{name}: {interrupt(question)}" for question in questions]}

    return node


def _asking(saver: Saver | None) -> Any:
    graph = StateGraph(Log)
    graph.add_node("draft", says("draft"))
    graph.add_node("review", asks("review", "send it?"))
    graph.add_node("send", says("send"))
    graph.add_edge(START, "draft").add_edge("draft", "review").add_edge("review", "send")
    return graph.compile(checkpointer=saver)


def _asking_twice(saver: Saver | None) -> Any:
    graph = StateGraph(Log)
    graph.add_node("review", asks("review", "first?", "second?"))
    graph.add_node("send", says("send"))
    graph.add_edge(START, "review").add_edge("review", "send")
    return graph.compile(checkpointer=saver)


def _parallel(saver: Saver | None) -> Any:
    graph = StateGraph(Log)
    graph.add_node("legal", asks("legal", "legal ok?"))
    graph.add_node("risk", asks("risk", {"ask": "risk ok?"}))
    graph.add_node("notify", says("notify"))
    graph.add_node("sign", says("sign"))
    graph.add_edge(START, "legal").add_edge(START, "risk").add_edge(START, "notify")
    graph.add_edge(["legal", "risk"], "sign")
    return graph.compile(checkpointer=saver)


def _start(graph: Any, thread: str) -> None:
    go(graph, thread, {"log": ["input"]})


def _start_and_resume(graph: Any, thread: str) -> None:
    _start(graph, thread)
    go(graph, thread, None)


def _answer(graph: Any, thread: str) -> None:
    _start(graph, thread)
    go(graph, thread, Command(resume="yes"))


def _answer_once_of_two(graph: Any, thread: str) -> None:
    _answer(graph, thread)


def _answer_both(graph: Any, thread: str) -> None:
    _answer(graph, thread)
    go(graph, thread, Command(resume="no"))


def _answer_one_of_parallel(graph: Any, thread: str) -> None:
    _start(graph, thread)
    question = next(i for i in graph.get_state(config_of(thread)).interrupts if i.value == "legal ok?")
    go(graph, thread, Command(resume={question.id: "fine"}))


def _answer_all_parallel(graph: Any, thread: str) -> None:
    _start(graph, thread)
    go(graph, thread, Command(resume={i.id: "fine" for i in graph.get_state(config_of(thread)).interrupts}))


def _goto(graph: Any, thread: str) -> None:
    _start(graph, thread)
    go(graph, thread, Command(goto="send", update={"log": ["skipped the review"]}))


def _resume_with_update(graph: Any, thread: str) -> None:
    _start(graph, thread)
    go(graph, thread, Command(resume="yes", update={"n": 3}))


CASES = (
    case("interrupt before", lambda saver: _line(saver, interrupt_before=["review"]), _start, "stopped before a node"),
    case("interrupt after", lambda saver: _line(saver, interrupt_after=["draft"]), _start, "stopped after a node"),
    case(
        "interrupt before resumed",
        lambda saver: _line(saver, interrupt_before=["review"]),
        _start_and_resume,
        "stopped before a node and continued to the end",
    ),
    case("interrupt inside", _asking, _start, "a node that asks, unanswered"),
    case("interrupt answered", _asking, _answer, "a node that asked and was answered"),
    case("interrupt twice", _asking_twice, _answer_once_of_two, "a node that asks twice, answered once"),
    case("interrupt twice answered", _asking_twice, _answer_both, "a node that asked twice, both answered"),
    case("parallel interrupts", _parallel, _start, "two nodes ask at once beside a finished one"),
    case("parallel interrupts partly", _parallel, _answer_one_of_parallel, "one of two questions answered"),
    case("parallel interrupts answered", _parallel, _answer_all_parallel, "both questions answered at once"),
    case("command goto input", _asking, _goto, "a waiting thread sent elsewhere by Command(goto, update)"),
    case("resume with update", _asking, _resume_with_update, "an answer that brings an update along"),
)
