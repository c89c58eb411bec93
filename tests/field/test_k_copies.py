"""Reports K: copying threads, and the rows of other writers."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any, TypedDict

import pytest
from langgraph.graph import START, StateGraph
from langgraph.types import Command, interrupt

from agentctl.errors import Refused
from agentctl.experiments.experiment import Target
from agentctl.experiments.replay import replay
from agentctl.testing import CliResult, run_cli
from tests.support import javascript as js
from tests.support.copies import stock_saver, tuples
from tests.support.damage import Rows, postgres_rows, sqlite_rows
from tests.support.experiments import about_to_run, experiment_on
from tests.support.postgres import new_database

INNER = "inner:00000000-0000-0000-0000-000000000001"


class State(TypedDict, total=False):
    answer: str
    note: str


def _graph() -> Any:
    graph = StateGraph(State)
    graph.add_node("ask", lambda state: {"answer": interrupt("ok?"), "note": "asked"})
    graph.add_node("end", lambda state: {"note": "done"})
    graph.add_edge(START, "ask").add_edge("ask", "end")
    return graph.compile()


@pytest.fixture(params=["sqlite", "postgres"])
def rows(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Rows]:
    """An empty store of either kind."""
    if request.param == "sqlite":
        with sqlite_rows(tmp_path) as found:
            yield found
    else:
        with new_database(request.getfixturevalue("postgres_url")) as url, postgres_rows(url) as found:
            yield found


@pytest.fixture(params=["to sqlite", "to postgres"])
def target(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """A store to copy into."""
    is_sqlite = request.param == "to sqlite"
    return str(tmp_path / "target.sqlite") if is_sqlite else str(request.getfixturevalue("fresh_postgres_url"))


def _answered(rows: Rows, thread: str = "t") -> Any:
    graph = _graph().copy(update={"checkpointer": rows.saver})
    for value in ({"note": ""}, Command(resume="yes")):
        graph.invoke(value, {"configurable": {"thread_id": thread}}, durability="sync")
    return graph


def _cli(rows: Rows, *words: str) -> CliResult:
    return run_cli(*words, "--store", rows.url)


def _ids(found: CliResult) -> list[str]:
    return [str(item["id"]) for item in found.json["items"]]


def test_k1_a_copy_is_the_same_but_for_the_thread_id(rows: Rows, target: str) -> None:
    rows.run("subgraph parallel", "t")
    done = _cli(rows, "copy", "t", "--to", target, "--only", "all", "--as", "copy", "--json")
    assert (done.code, done.json["verified"]) == (0, True)
    with stock_saver(target) as copied:
        found, original = tuples(copied, "copy"), tuples(rows.saver, "t")
    assert [one[:5] for one in found] == [one[:5] for one in original]
    assert [one[6] for one in found] == [one[6] for one in original]


def test_k2_a_copied_point_goes_on_without_running_what_had_finished(rows: Rows, target: str) -> None:
    graph = rows.run("half done", "t")
    assert _cli(rows, "copy", "t", "--to", target, "--only", "point", "--as", "copy").code == 0
    config: Any = {"configurable": {"thread_id": "copy"}}
    with stock_saver(target) as saver:
        found = graph.copy(update={"checkpointer": saver}).get_state(config)
    original = graph.get_state({"configurable": {"thread_id": "t"}})
    assert (found.values, found.next) == (original.values, original.next)
    assert [(task.name, task.result) for task in found.tasks] == [(one.name, one.result) for one in original.tasks]


def test_k3_one_lineage_of_a_long_thread_is_copied_and_counted_before(rows: Rows, target: str) -> None:
    graph = _answered(rows)
    for _ in range(4):
        graph.invoke(Command(update={"note": "x"}, goto="end"), {"configurable": {"thread_id": "t"}}, durability="sync")
    ids = rows.ids("t")
    words = ("copy", f"t@{ids[2]}", "--to", target, "--as", "copy", "--json")
    planned = _cli(rows, *words, "--dry-run").json
    done = _cli(rows, *words).json
    assert planned["n_checkpoints"] == done["n_checkpoints"] == 3 < len(ids)
    assert _ids(run_cli("history", "copy", "--store", target, "--json")) == ids[2::-1]


def test_k4_pickles_of_the_dev_server_are_not_loaded_and_the_server_is_named(tmp_path: Path) -> None:
    folder = tmp_path / ".langgraph_api"
    folder.mkdir()
    pickled = folder / ".langgraph_checkpoint.1.pckl"
    pickled.write_bytes(b"cos\nsystem\n(S'touch ran'\ntR.")
    for store in (folder, pickled):
        refused = run_cli("copy", "t", "--store", store, "--to", tmp_path / "copy.sqlite", cwd=tmp_path)
        assert refused.code == 4
        assert "pickle" in refused.err and "--store http://127.0.0.1:2024" in refused.err
    assert sorted(found.name for found in tmp_path.iterdir()) == [".langgraph_api"]


def test_k5_threads_are_listed_from_the_rows_whatever_their_ids(rows: Rows) -> None:
    names = ["a", "thread with 'quotes'", "x@y::z"]
    for name in names:
        _answered(rows, name)
    assert sorted(item["thread"] for item in _cli(rows, "threads", "--json").json["items"]) == sorted(names)
    assert "3 threads looked at" in run_cli("doctor", "--all", "--store", rows.url, terminal=True).out


def test_k6_the_same_checkpoint_id_in_two_namespaces_is_two_checkpoints(rows: Rows, target: str) -> None:
    _answered(rows)
    for table, columns in (
        ("checkpoints", "thread_id, checkpoint_id, parent_checkpoint_id, type, checkpoint, metadata"),
        ("{writes}", "thread_id, checkpoint_id, task_id, idx, channel, type, {value}, task_path"),
        ("checkpoint_blobs", "thread_id, channel, version, type, blob"),
    ):
        if rows.kind == "postgres" or table != "checkpoint_blobs":
            rows.sql(f"INSERT INTO {table} (checkpoint_ns, {columns}) SELECT '{INNER}', {columns} FROM {table}")
    done = _cli(rows, "copy", "t", "--to", target, "--only", "all", "--as", "copy", "--json").json
    n_writes = int(rows.sql("SELECT count(*) FROM {writes}")[0][0])
    assert (done["n_checkpoints"], done["n_writes"], done["verified"]) == (2 * len(rows.ids("t")), n_writes, True)
    for ns in ((), ("--ns", INNER)):
        copied = run_cli("history", "copy", *ns, "--store", target, "--json")
        assert _ids(copied) == _ids(_cli(rows, "history", "t", *ns, "--json")) == rows.ids("t")[::-1]


def test_k8_a_server_is_no_target_of_a_copy(rows: Rows) -> None:
    _answered(rows)
    refused = _cli(rows, "copy", "t", "--to", "http://127.0.0.1:1")
    assert refused.code == 5
    assert "a SQLite file or a Postgres database" in refused.err


def test_k9_empty_ids_and_versions_are_faults_and_no_run_begins_there(rows: Rows) -> None:
    _answered(rows)
    last = rows.ids("t")[-1]
    rows.checkpoint("t", last, lambda document: document.update(id="", ts="", channel_versions={}))
    rows.sql("UPDATE checkpoints SET checkpoint_id = '' WHERE checkpoint_id = ?", last)
    found = _cli(rows, "doctor", "t")
    assert found.code == 1
    assert "id_invalid" in found.out and "versions_missing" in found.out
    assert len(_ids(_cli(rows, "history", "t", "--json"))) == 4


def test_k10_a_row_without_versions_seen_is_shown_named_and_not_run(rows: Rows, tmp_path: Path) -> None:
    graph = _answered(rows)
    before_end = rows.ids("t")[-2]
    rows.checkpoint("t", before_end, lambda document: document.pop("versions_seen"))
    assert _cli(rows, "show", f"t@{before_end}", "--json").json["values"]["answer"] == "yes"
    found = _cli(rows, "doctor", "t")
    assert (found.code, "versions_seen" in found.out) == (1, True)
    with experiment_on(rows.url, graph, tmp_path / "debug" / "k10.sqlite") as experiment:
        target = Target("t", before_end, store=rows.url, profile="prod")
        with pytest.raises(Refused, match="no versions_seen"):
            replay(experiment, target)


def test_k11_a_write_that_was_lost_beside_a_question_is_found(rows: Rows) -> None:
    _answered(rows)
    assert _cli(rows, "doctor", "t").code == 0
    rows.sql("DELETE FROM {writes} WHERE channel = 'answer'")
    found = _cli(rows, "doctor", "t")
    assert found.code == 1
    assert "writes_missing" in found.out and "the step changed answer" in found.out


def test_k12_constructors_in_state_are_shown_by_name_and_a_run_that_would_load_them_is_refused(tmp_path: Path) -> None:
    forged = {
        "lc": 1,
        "type": "constructor",
        "id": ["langchain", "messages", "HumanMessage"],
        "kwargs": {"content": "x"},
    }
    store = str(tmp_path / "js.sqlite")
    js.fill(store, js.chat(answer=forged))
    shown = run_cli("show", js.THREAD, "--channel", "answer", "--store", store, "--json").json["value"]
    assert shown == {"$type": "langchain.messages.HumanMessage", "content": "x"}
    graph = StateGraph(State)
    graph.add_node("agent", lambda state: {"note": "ran"})
    graph.add_edge(START, "agent")
    others = ("messages", "count", "ratio", "cfg")
    with experiment_on(store, graph.compile(), tmp_path / "debug.sqlite", drop=others) as experiment:
        with pytest.raises(Refused, match=r"channel answer of checkpoint .* holds langchain\.messages\.HumanMessage"):
            replay(experiment, about_to_run(experiment.source, js.THREAD, "agent", visit=1))
        assert not experiment.debug.writer.heads()
    with closing(sqlite3.connect(store)) as database:
        assert database.execute("SELECT count(*) FROM checkpoints").fetchone() == (5,)
