"""Threads of LangGraph.js: looked at, copied between the stores, and run by a Python graph."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Annotated, Any, TypedDict
from uuid import UUID, uuid5

import pytest
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langgraph.graph import START, StateGraph, add_messages

from agentctl.codec.values import decode
from agentctl.errors import Refused
from agentctl.experiments.experiment import Target
from agentctl.experiments.fork import fork
from agentctl.experiments.forking.forms import parse_forms
from agentctl.experiments.replay import replay
from agentctl.stores.open import open_reader
from agentctl.stores.reading.layout import PUSH, javascript_task_id
from agentctl.testing import CliResult, run_cli
from tests.support import javascript as js
from tests.support.copies import stock_saver
from tests.support.experiments import experiment_on
from tests.support.postgres import new_database

THREAD = js.THREAD


class State(TypedDict, total=False):
    messages: Annotated[list[Any], add_messages]
    count: int
    ratio: float
    cfg: Any


def _graph() -> Any:
    graph = StateGraph(State)
    graph.add_node("agent", lambda state: {"messages": [AIMessage("again", id="a9")], "count": state["count"] + 1})
    graph.add_node("tools", lambda state: {"messages": [ToolMessage("new", tool_call_id="call_1", id="t1")]})
    graph.add_edge(START, "agent")
    graph.add_conditional_edges("agent", lambda state: "__end__", ["tools", "__end__"])
    graph.add_edge("tools", "agent")
    return graph.compile()


@pytest.fixture(scope="module", params=["sqlite", "postgres"])
def store(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A store of LangGraph.js with one thread, which has values that only JavaScript writes."""
    steps = js.chat(tags=js.SET, maybe=js.UNDEFINED)
    if request.param == "sqlite":
        path = str(tmp_path_factory.mktemp("js") / "js.sqlite")
        js.fill(path, steps)
        yield path
    else:
        with new_database(request.getfixturevalue("postgres_url")) as url:
            js.fill(url, steps)
            yield url


def _values(store: str, thread: str) -> list[tuple[Any, ...]]:
    with closing(open_reader(store)) as reader:
        rows = {row.id: row for row in reader.rows(thread)}
        return [
            (
                rows[one.row.id].parent,
                {name: decode(value) for name, value in one.values.items()},
                dict(one.channel_versions),
                {node: dict(seen) for node, seen in one.versions_seen.items()},
                one.ts,
                [(w.task_id, w.idx, w.channel, w.value) for w in reader.writes(thread, "", [one.row.id])],
            )
            for one in reader.stored(thread, "", sorted(rows))
        ]


def _run(store: str, *words: str) -> CliResult:
    return run_cli(*words, "--store", store)


def test_a_thread_is_looked_at_like_one_of_python(store: str) -> None:
    (thread,) = _run(store, "threads", "--json").json["items"]
    assert (thread["thread"], thread["n_checkpoints"], thread["status"]) == (THREAD, 5, "done")
    history = _run(store, "history", THREAD, "--json").json["items"]
    assert [row["next"] for row in history] == [[], ["agent"], ["tools"], ["agent"], ["__start__"]]
    assert [row["wrote"] for row in history] == [["agent"], ["tools"], ["agent"], ["__start__"], []]
    shown = _run(store, "show", THREAD, "--json").json["values"]
    assert (shown["count"], shown["ratio"], shown["cfg"]) == (3, 0.5, {"a": [1, None]})
    assert (shown["tags"], shown["maybe"]) == ({"$type": "Set", "$value": ["vip"]}, {"$type": "undefined"})
    talk = _run(store, "show", THREAD, "--messages", "--json").json["items"]
    assert [(one["message"]["role"], one["message"]["text"]) for one in talk] == [
        ("human", "hi"),
        ("ai", ""),
        ("tool", "found"),
        ("ai", "done"),
    ]
    assert "+ ai: done" in run_cli("diff", "js@head~1", THREAD, "--store", store, terminal=True).out
    assert _run(store, "size", THREAD, "--by", "message").code == 0
    doctor = _run(store, "doctor", THREAD, "--json")
    assert doctor.code == 0
    assert "versions_integer" in doctor.out


def test_a_turn_is_exported_with_its_call_and_what_only_javascript_has(store: str, tmp_path: Path) -> None:
    words = ("--dataset", "d", "--check", "reply contains done", "--output", str(tmp_path))
    assert _run(store, "export", THREAD, *words).code == 0
    (example,) = [json.loads(line) for line in (tmp_path / "d" / "examples.jsonl").read_text("utf-8").splitlines()]
    assert example["outputs"]["reply"] == "done"
    assert example["outputs"]["state"]["tags"] == {"$type": "Set", "$value": ["vip"]}
    assert "found" in json.dumps(example["metadata"]) + json.dumps(example["outputs"])


@pytest.mark.parametrize("to", ["sqlite", "postgres"])
def test_a_copy_reads_back_equal_in_both_kinds_of_store_and_loads_in_python(
    store: str, to: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    target = str(tmp_path / "copy.sqlite") if to == "sqlite" else request.getfixturevalue("fresh_postgres_url")
    done = _run(store, "copy", THREAD, "--to", target, "--as", "copy", "--only", "all", "--json")
    assert (done.code, done.json["verified"], done.json["n_checkpoints"]) == (0, True, 5)
    assert _values(target, "copy") == _values(store, THREAD)
    with stock_saver(target) as saver:
        loaded = saver.get_tuple({"configurable": {"thread_id": "copy", "checkpoint_ns": ""}})
    assert loaded is not None
    values = loaded.checkpoint["channel_values"]
    assert [type(one) for one in values["messages"]] == [HumanMessage, AIMessage, ToolMessage, AIMessage]
    assert (values["count"], values["tags"]) == (3, js.SET)


def test_a_python_graph_runs_from_versions_that_are_numbers(tmp_path: Path) -> None:
    source = str(tmp_path / "js.sqlite")
    js.fill(source, js.chat())
    with experiment_on(source, _graph(), tmp_path / "debug.sqlite") as experiment:
        target = Target(THREAD, js.id_of(3), store=source, profile="prod")
        (again,) = replay(experiment, target).group.runs
        (changed,) = fork(experiment, target, parse_forms(assign=["count=8"])).group.runs
        assert (again.status, again.reply, changed.status) == ("done", "again", "done")
        newest = experiment.debug.writer.rows("js.fork-1")[0]
        (stored,) = experiment.debug.writer.stored("js.fork-1", "", [newest.id])
    assert decode(stored.values["count"]) == 9
    assert {type(version) for version in stored.channel_versions.values()} <= {int, float}


def test_a_changed_result_is_refused_where_python_takes_the_writes_of_javascript_for_none(tmp_path: Path) -> None:
    source = str(tmp_path / "js.sqlite")
    js.fill(source, js.chat())
    with experiment_on(source, _graph(), tmp_path / "debug.sqlite") as experiment:
        target = Target(THREAD, js.id_of(2), store=source, profile="prod")
        with pytest.raises(Refused, match="not those of tools to this graph") as refused:
            fork(experiment, target, parse_forms(answer=['look="other"']))
        assert not experiment.debug.writer.heads()
    assert refused.value.hint is not None
    assert refused.value.hint.endswith(f"agentctl fork prod::js@{js.id_of(2)} --stub TOOL=JSON")


def test_a_run_on_postgres_from_versions_that_are_numbers_is_refused(tmp_path: Path, fresh_postgres_url: str) -> None:
    source = str(tmp_path / "js.sqlite")
    js.fill(source, js.chat())
    with experiment_on(source, _graph(), fresh_postgres_url) as experiment:
        with pytest.raises(Refused, match="are numbers") as refused:
            replay(experiment, Target(THREAD, js.id_of(3), store=source, profile="prod"))
        assert not experiment.debug.writer.heads()
    assert refused.value.hint == "run it on SQLite: --to FILE.sqlite"


def test_the_id_of_a_task_is_that_of_javascript_for_sends_and_in_a_namespace() -> None:
    """`v5(JSON.stringify([...]), id)`: no blanks, no escapes, numbers as text."""
    name = '["outer:1|prüfen","3","prüfen","__pregel_push","12"]'
    expected = str(uuid5(UUID(js.id_of(2)), name))
    assert javascript_task_id(js.id_of(2), "outer:1", 3, "prüfen", PUSH, "12") == expected
    assert javascript_task_id("no id", "", 3, "a", PUSH, "0") == ""


def _snapshots() -> Sequence[js.Step]:
    """A delta channel: a snapshot, then a write without one."""
    snapshot = {"lc": 2, "type": "delta_snapshot", "value": [js.HUMAN]}
    return [
        js.Step({"messages": snapshot}, {"messages": 1}, {}, [("messages", [js.CALLING])]),
        js.Step({}, {"messages": 2}, {"agent": {"branch:to:agent": 1}}),
    ]


def test_a_snapshot_of_a_delta_channel_is_its_value(tmp_path: Path) -> None:
    source = str(tmp_path / "js.sqlite")
    js.fill(source, _snapshots())
    talk = run_cli("show", f"{THREAD}@{js.id_of(0)}", "--messages", "--store", source, "--json").json["items"]
    assert [one["message"]["text"] for one in talk] == ["hi"]
