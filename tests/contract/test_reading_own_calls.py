"""Calls that nodes make by themselves, read from rows of real threads: each once, where the node that made it ran."""

from __future__ import annotations

import operator
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Annotated, Any, TypedDict

import pytest
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, ToolMessage
from langgraph.checkpoint.postgres import PostgresSaver
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.graph import START, StateGraph
from langgraph.graph.message import add_messages

from agentctl.records.messages import CallSite
from agentctl.sandbox.calls import canonical_args
from agentctl.sandbox.recorder import record_thread
from agentctl.stores.base import Reader
from agentctl.stores.open import open_reader
from agentctl.stores.reading.calls import read_calls
from agentctl.stores.reading.lineage import read_lineage
from tests.catalog import CATALOG, config_of, run_case, sqlite_case
from tests.support.examples import examples_of

READS = [("read_document", f"read_document:{doc}", k) for k, doc in enumerate(("pay-1", "pay-2", "bank-1"), start=1)]
BUREAU = [("pull_bureau", "bureau_pull:1", 1), ("check_sanctions", "sanctions:1", 1)]


def sites_of(reader: Reader, thread: str = "t", tip: str | None = None) -> tuple[CallSite, ...]:
    return read_calls(reader, read_lineage(reader, thread, tip=tip))


def named(sites: tuple[CallSite, ...]) -> list[tuple[str, str, int]]:
    return [(site.name, site.id, site.occurrence) for site in sites]


def by_id(sites: tuple[CallSite, ...]) -> dict[str, CallSite]:
    return {site.id: site for site in sites}


@contextmanager
def ran(tmp_path: Path, name: str) -> Iterator[tuple[Reader, Any]]:
    with sqlite_case(tmp_path, CATALOG[name], "t") as (path, graph), closing(open_reader(str(path))) as reader:
        yield reader, graph


def test_each_call_is_found_once_in_the_step_and_the_task_that_made_it(tmp_path: Path) -> None:
    with ran(tmp_path, "own calls") as (reader, graph):
        sites = sites_of(reader)
        history = {s.config["configurable"]["checkpoint_id"]: s for s in graph.get_state_history(config_of("t"))}
    calls = by_id(sites)
    inner = next(ns for ns in reader.namespaces("t") if ns)
    assert sorted(named(sites)) == sorted(
        [*READS, *BUREAU, ("fetch_statements", "statements:1", 1), ("match_payroll", "payroll:1", 1)]
    )
    assert {site.id: site.ns for site in sites if site.ns} == {"statements:1": inner, "payroll:1": inner}
    reading = history[calls["read_document:pay-2"].pending_at]
    assert [calls[id].task for _, id, _ in READS] == [task.id for task in reading.tasks]
    assert reading.next == ("read",) * 3
    deciding = history[calls["bureau_pull:1"].pending_at]
    tasks = {task.name: task.id for task in deciding.tasks}
    assert calls["bureau_pull:1"].task == calls["sanctions:1"].task == tasks["bureau"]
    assert inner == f"income:{tasks['income']}"
    for site in sites:
        if not site.ns:
            after = history[str(site.answered_at)]
            assert after.parent_config["configurable"]["checkpoint_id"] == site.pending_at


def test_calls_of_a_step_that_has_not_ended_are_there_with_their_answers(tmp_path: Path) -> None:
    with ran(tmp_path, "own calls failing") as (reader, graph):
        sites = sites_of(reader)
        head = graph.get_state(config_of("t")).config["configurable"]["checkpoint_id"]
    assert named(sites) == [*READS, *BUREAU]
    assert [(site.pending_at, site.answered_at) for site in sites[3:]] == [(head, None)] * 2
    assert [site.answer.text for site in sites[3:] if site.answer] == ['{"score": 512, "file": "f-1"}', '{"hits": 0}']


def test_calls_before_and_after_a_question_in_a_subgraph(tmp_path: Path) -> None:
    with ran(tmp_path, "own calls asking") as (reader, _):
        asking = named(sites_of(reader))
    (tmp_path / "answered").mkdir()
    with ran(tmp_path / "answered", "own calls answered") as (reader, _):
        answered = by_id(sites_of(reader))
    assert sorted(asking) == sorted([*READS, *BUREAU, ("fetch_statements", "statements:1", 1)])
    assert answered["payroll:1"].pending_at == answered["statements:1"].answered_at


def test_the_recording_holds_each_call_once_by_its_arguments(tmp_path: Path, fresh_postgres_url: str) -> None:
    with PostgresSaver.from_conn_string(fresh_postgres_url) as saver:
        saver.setup()
        run_case(CATALOG["own calls"], saver, "t")
    with ran(tmp_path, "own calls") as (reader, _), closing(open_reader(fresh_postgres_url)) as postgres:
        recordings = [record_thread(store, "t") for store in (reader, postgres)]
    for recording in recordings:
        answers = recording.answers(("read_document", canonical_args({"doc": "pay-2"})))
        assert [(entry.id, entry.content) for entry in answers] == [
            ("read_document:pay-2", '{"doc": "pay-2", "amount": 200}')
        ]
        assert {entry.kind for entry in recording.entries} == {"message"}
        assert all(entry.message is not None for entry in recording.entries)
    assert [(e.name, e.id) for e in recordings[0].entries] == [(e.name, e.id) for e in recordings[1].entries]


def test_an_example_of_a_thread_in_which_no_human_says_anything_has_its_input_and_its_calls(tmp_path: Path) -> None:
    (example,) = examples_of(tmp_path, "own calls")
    assert example.inputs["input"] == {"person": "p-1"}
    assert example.outputs["state"]["decision"] == "decline 600 ACME"  # type: ignore[index]
    assert sorted(call.id for call in example.tool_calls) == sorted(
        [*(id for _, id, _ in (*READS, *BUREAU)), "statements:1", "payroll:1"]
    )
    assert example.steps[-4:] == ("income", "income|fetch", "income|match", "score")


# Shapes that are not the helper's: several channels, ids given later, pairs that are handed on or made again


class State(TypedDict, total=False):
    messages: Annotated[list[AnyMessage], add_messages]
    lookups: Annotated[list[AnyMessage], add_messages]
    seen: Annotated[list[str], operator.add]
    n: int


def pair(name: str, call_id: str, answer: str, *, ids: bool = True, **args: Any) -> list[AnyMessage]:
    call = {"name": name, "args": args, "id": call_id, "type": "tool_call"}
    asked = AIMessage("", id=f"{call_id}:asked" if ids else None, tool_calls=[call])
    return [asked, ToolMessage(answer, name=name, tool_call_id=call_id, id=f"{call_id}:answered" if ids else None)]


def line(saver: Any, **nodes: Any) -> Any:
    builder = StateGraph(State)
    for before, name in zip((START, *nodes), nodes, strict=False):
        builder.add_node(name, nodes[name])
        builder.add_edge(before, name)
    return builder.compile(checkpointer=saver)


@pytest.fixture
def prod(tmp_path: Path) -> Iterator[tuple[Any, Any]]:
    """A saver, and what gives the calls of thread `t` by now."""
    path = tmp_path / "threads.sqlite"
    with SqliteSaver.from_conn_string(str(path)) as saver:
        yield saver, lambda tip=None: sites_of(open_reader(str(path)), tip=tip)


def go(graph: Any, value: Any, **where: Any) -> None:
    graph.invoke(value, config_of("t", **where), durability="sync")


def test_pairs_in_several_channels_beside_a_conversation_are_all_found(prod: Any) -> None:
    saver, sites = prod
    graph = line(
        saver,
        a=lambda state: {"messages": pair("look", "m1", "one", order="A1")},
        b=lambda state: {"lookups": pair("look", "l1", "two", order="B2")},
        say=lambda state: {"messages": [AIMessage("done")]},
    )
    go(graph, {"messages": [HumanMessage("?")]})
    assert [(site.id, site.answer.text, site.occurrence) for site in sites()] == [("m1", "one", 1), ("l1", "two", 2)]


def test_a_pair_whose_messages_got_their_ids_later_counts_once(prod: Any) -> None:
    saver, sites = prod
    inner = line(None, look=lambda state: {"lookups": pair("look", "c1", "one", ids=False, order="A1")})
    go(line(saver, sub=inner, end=lambda state: {"seen": ["end"]}), {"seen": []})
    (site,) = sites()
    assert site.ns.startswith("sub:")
    assert site.ai_message_id is not None


def test_a_conversation_that_is_returned_whole_makes_no_new_calls(prod: Any) -> None:
    saver, sites = prod
    graph = line(
        saver,
        look=lambda state: {"messages": pair("look", "c1", "one", order="A1")},
        same=lambda state: {"messages": state["messages"]},
        more=lambda state: {"messages": [*state["messages"], *pair("look", "c2", "two", order="B2")]},
    )
    go(graph, {"messages": [HumanMessage("?", id="h")]})
    found = by_id(sites())
    assert list(found) == ["c1", "c2"]
    assert len(sites()) == 2
    assert found["c1"].pending_at < found["c2"].pending_at


def test_the_same_call_made_again_counts_again_with_its_own_answer(prod: Any) -> None:
    """The node derives the message ids from the call, so the second pair replaces the first in the state."""
    saver, sites = prod

    def poll(state: State) -> State:
        n = state.get("n", 0) + 1
        return {"n": n, "lookups": pair("poll", "poll:1", f"answer {min(n, 2)}")}

    builder = StateGraph(State).add_node("poll", poll).add_edge(START, "poll")
    builder.add_conditional_edges("poll", lambda state: "poll" if state["n"] < 3 else "__end__")
    go(builder.compile(checkpointer=saver), {"n": 0})
    found = sites()
    assert [(site.occurrence, site.answer.text) for site in found] == [
        (1, "answer 1"),
        (2, "answer 2"),
        (3, "answer 2"),
    ]
    assert len({site.pending_at for site in found}) == 3


def test_a_pair_that_came_with_the_input_was_made_by_no_task(prod: Any) -> None:
    saver, sites = prod
    go(line(saver, end=lambda state: {"seen": ["end"]}), {"messages": [HumanMessage("?"), *pair("look", "c1", "one")]})
    (site,) = sites()
    assert (site.id, site.task) == ("c1", "")


def test_a_branch_holds_only_the_calls_of_its_own_steps(prod: Any) -> None:
    saver, sites = prod

    def look(state: State) -> State:
        order = "B2" if "fork" in state["seen"] else "A1"
        return {"lookups": pair("look", f"look:{order}", f"answer {order}", order=order)}

    graph = line(saver, first=lambda state: {"seen": ["first"]}, look=look)
    go(graph, {"seen": []})
    old = graph.get_state(config_of("t")).config["configurable"]["checkpoint_id"]
    before = next(s for s in graph.get_state_history(config_of("t")) if s.next == ("look",))
    forked = graph.update_state(before.config, {"seen": ["fork"]}, as_node="first")
    graph.invoke(None, forked, durability="sync")
    assert [site.id for site in sites(old)] == ["look:A1"]
    assert [site.id for site in sites()] == ["look:B2"]
