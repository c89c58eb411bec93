"""Graphs and threads drawn at random: nodes, edges, joins, Sends, Commands, interrupts, failures, forks."""

from __future__ import annotations

import contextlib
import operator
from dataclasses import dataclass
from typing import Annotated, Any, Literal, TypedDict

from hypothesis import strategies as st
from langgraph.errors import GraphRecursionError, InvalidUpdateError
from langgraph.graph import END, START, StateGraph
from langgraph.types import Command, Send, interrupt

from tests.catalog import Saver, config_of

NAMES = ("a", "b+c", "d", "e, f", "g")
Behaviour = Literal["write", "silent", "ask", "ask_twice", "fail", "fail_once", "command", "command_send"]
_STEP_LIMIT = 9


class State(TypedDict, total=False):
    log: Annotated[list[str], operator.add]
    n: Annotated[int, operator.add]


@dataclass(frozen=True)
class NodeSpec:
    name: str
    behaviour: Behaviour
    goto: str
    defer: bool


@dataclass(frozen=True)
class GraphSpec:
    """Edges and joins are by node name; `sends` maps a node to where its conditional edge sends, round by round."""

    nodes: tuple[NodeSpec, ...]
    entries: tuple[str, ...]
    edges: tuple[tuple[str, str], ...]
    joins: tuple[tuple[tuple[str, ...], str], ...]
    sends: tuple[tuple[str, tuple[str, ...]], ...]
    choices: tuple[tuple[str, tuple[str, ...]], ...]
    before: tuple[str, ...]
    after: tuple[str, ...]


@dataclass(frozen=True)
class Move:
    """One thing done with the thread; `at` picks a checkpoint by position, counted modulo the history's length."""

    kind: Literal["input", "continue", "answer", "answer_one", "update", "copy", "replay", "goto", "exit", "bulk"]
    at: int
    node: str


def _nodes(names: tuple[str, ...]) -> st.SearchStrategy[tuple[NodeSpec, ...]]:
    behaviours: st.SearchStrategy[Any] = st.sampled_from(
        ["write"] * 8 + ["silent", "ask", "ask", "ask_twice", "fail", "fail_once", "command", "command_send"]
    )
    rare = st.sampled_from([False] * 7 + [True])
    return st.tuples(*(st.builds(NodeSpec, st.just(name), behaviours, st.sampled_from(names), rare) for name in names))


@st.composite
def graph_specs(draw: st.DrawFn) -> GraphSpec:
    names = NAMES[: draw(st.integers(2, len(NAMES)))]
    node = st.sampled_from(names)
    pairs = st.tuples(node, node)
    some = st.lists(node, unique=True, max_size=2).map(tuple)
    joins = st.tuples(st.lists(node, unique=True, min_size=2, max_size=3).map(tuple), node)
    return GraphSpec(
        nodes=draw(_nodes(names)),
        entries=draw(st.lists(node, unique=True, min_size=1, max_size=2).map(tuple)),
        edges=tuple(draw(st.lists(pairs, unique=True, max_size=4))),
        joins=tuple(draw(st.lists(joins, unique=True, max_size=2))),
        sends=tuple(draw(st.lists(st.tuples(node, st.lists(node, max_size=3).map(tuple)), max_size=2))),
        choices=tuple(draw(st.lists(st.tuples(node, st.lists(node, min_size=1, max_size=2).map(tuple)), max_size=2))),
        before=draw(some) if draw(st.booleans()) else (),
        after=draw(some) if draw(st.booleans()) else (),
    )


def moves() -> st.SearchStrategy[list[Move]]:
    often = ["input", "continue", "continue", "answer", "answer_one", "update", "update"]
    kinds: st.SearchStrategy[Any] = st.sampled_from([*often, "copy", "replay", "goto", "exit", "bulk"])
    return st.lists(st.builds(Move, kinds, st.integers(0, 30), st.sampled_from(NAMES)), max_size=5)


def build(spec: GraphSpec, saver: Saver) -> Any:
    graph = StateGraph(State)
    for node in spec.nodes:
        graph.add_node(node.name, _action(node), defer=node.defer)
    for name in spec.entries:
        graph.add_edge(START, name)
    for source, target in spec.edges:
        graph.add_edge(source, target)
    for sources, target in spec.joins:
        graph.add_edge(list(sources), target)
    for number, (source, targets) in enumerate(spec.sends):
        graph.add_conditional_edges(source, _sends(f"sends_{number}", targets), [*spec_names(spec), END])
    for number, (source, targets) in enumerate(spec.choices):
        graph.add_conditional_edges(source, _choice(f"choice_{number}", targets), [*spec_names(spec), END])
    return graph.compile(checkpointer=saver, interrupt_before=list(spec.before), interrupt_after=list(spec.after))


def spec_names(spec: GraphSpec) -> list[str]:
    return [node.name for node in spec.nodes]


def _action(node: NodeSpec) -> Any:
    calls: list[int] = []

    def act(state: State) -> Any:
        calls.append(1)
        match node.behaviour:
            case "silent":
                return None
            case "ask":
                return {"log": [interrupt(f"{node.name}?")]}
            case "ask_twice":
                return {"log": [interrupt(f"{node.name}1?"), interrupt(f"{node.name}2?")]}
            case "fail":
                raise ValueError(f"{node.name} failed")
            case "fail_once" if len(calls) == 1:
                raise ValueError(f"{node.name} failed once")
            case "command":
                return Command(goto=node.goto, update={"log": [node.name]})
            case "command_send":
                return Command(goto=[Send(node.goto, {"n": 1}), node.goto], update={"n": 1})
        return {"log": [node.name], "n": 1}

    return act


def _sends(name: str, targets: tuple[str, ...]) -> Any:
    def send(state: State) -> Any:
        return [Send(target, {"n": 1}) for target in targets] if state.get("n", 0) < 6 else END

    send.__name__ = name
    return send


def _choice(name: str, targets: tuple[str, ...]) -> Any:
    def choose(state: State) -> Any:
        n = state.get("n", 0)
        return targets[n % len(targets)] if n < 6 else END

    choose.__name__ = name
    return choose


def drive(graph: Any, thread: str, todo: list[Move]) -> None:
    """Gives the thread an input, then does the moves; those that LangGraph refuses leave it as it is."""
    _run(graph, thread, {"log": ["input"], "n": 0})
    for move in todo:
        with contextlib.suppress(InvalidUpdateError, KeyError):
            _do(graph, thread, move)


def _do(graph: Any, thread: str, move: Move) -> None:
    history = list(graph.get_state_history(config_of(thread)))
    if not history:
        return
    place = history[move.at % len(history)].config
    match move.kind:
        case "input":
            _run(graph, thread, {"log": ["again"], "n": 0})
        case "exit":
            _run(graph, thread, {"log": ["again"], "n": 0}, durability="exit")
        case "continue":
            _run(graph, thread, None)
        case "answer":
            questions = graph.get_state(config_of(thread)).interrupts
            _run(graph, thread, Command(resume={question.id: "yes" for question in questions}) if questions else None)
        case "answer_one":
            questions = graph.get_state(config_of(thread)).interrupts
            _run(graph, thread, Command(resume={questions[0].id: "yes"}) if questions else None)
        case "update":
            graph.update_state(place, {"log": ["update"], "n": 1}, as_node=move.node)
        case "copy":
            graph.update_state(place, None, as_node="__copy__")
        case "replay":
            _run(graph, thread, None, checkpoint_id=place["configurable"]["checkpoint_id"])
        case "goto":
            _run(graph, thread, Command(goto=move.node, update={"log": ["sent"]}))
        case "bulk":
            tasks = graph.get_state(place).tasks
            if tasks:
                updates = [({"log": ["bulk"]}, task.name, task.id) for task in tasks]
                graph.bulk_update_state(place, [updates])


def _run(graph: Any, thread: str, value: Any, *, durability: str = "sync", **where: Any) -> None:
    """Runs one task at a time, so that which siblings finish before a failure does not depend on timing."""
    settings = config_of(thread, **where) | {"recursion_limit": _STEP_LIMIT, "max_concurrency": 1}
    with contextlib.suppress(ValueError, GraphRecursionError):
        graph.invoke(value, settings, durability=durability)
