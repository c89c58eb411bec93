"""Reports A: replay and time travel on the root graph."""

from __future__ import annotations

import sqlite3
from collections import Counter
from contextlib import closing
from pathlib import Path

import psycopg
import pytest
from langchain_core.messages import HumanMessage
from langgraph.types import Command

from agentctl.testing import build_thread, run_cli
from tests.catalog import config_of, go
from tests.support.application import ON_BOTH_STORES, Application, Apps

QUESTION = {"messages": [HumanMessage("pay them all")]}

_GRAPH = """
from langchain_core.messages import AIMessage
from langgraph.graph import MessagesState, StateGraph


def agent(state):
    return {"messages": [AIMessage("hello")]}


graph = StateGraph(MessagesState).add_node("agent", agent).set_entry_point("agent").compile()
"""


@ON_BOTH_STORES
def test_a1_a_replay_says_what_will_run_and_runs_every_node_but_no_tool(app: Apps) -> None:
    loop = app("agents.py:loop")
    loop.run(QUESTION)

    replayed = loop("replay", "t@before:tools:1")

    assert replayed.code == 0
    assert "from here on these run: tools\n  tools from recorded, else blocked: pay" in replayed.err
    (run,) = loop("replay", "t@before:tools:1", "--json").json["runs"]
    assert run["nodes"] == ["tools", "agent"] * 3
    assert [(call["args"], call["served_by"]) for call in run["tool_calls"]] == [
        ({"number": number}, "recorded") for number in range(3)
    ]
    assert run["reply"] == "all paid"


def test_a1_a_replay_of_an_async_graph_calls_no_tool_either(app: Apps) -> None:
    loop = app("agents.py:loop")
    loop.run(QUESTION)

    replayed = app("agents.py:async_loop")("replay", "t@root", "-n", "3", "--json").json

    assert replayed["side_effects"] == {"recorded": 9, "stubbed": 0, "live": 0, "blocked": 0, "escaped": 0}
    assert {run["reply"] for run in replayed["runs"]} == {"all paid"}


def test_a2_a_replay_runs_exactly_what_comes_after_and_from_the_head_nothing(app: Apps) -> None:
    line = app("flows.py:line")
    line.run({"log": []})

    ran = {at: line("replay", f"t@{at}", "--json").json for at in ("root", "before:second", "before:third", "head")}

    assert ran["root"]["runs"][0]["nodes"] == ["first", "second", "third"]
    assert ran["before:second"]["runs"][0]["nodes"] == ["second", "third"]
    assert ran["before:third"]["runs"][0]["nodes"] == ["third"]
    assert "nothing runs from" in ran["head"]["error"]["message"]
    for text in (line("replay", "--help").out, line("replay", "t@root").err):
        assert "cache" not in text
    assert "every node after it executes, no tool does" in " ".join(line("replay", "--help").out.split())


@ON_BOTH_STORES
def test_a3_each_checkpoint_names_the_nodes_that_made_it_and_that_run_next(app: Apps) -> None:
    line = app("flows.py:line")
    line.run({"log": []})

    rows = line("history", "t", "--json").json["items"]

    assert [(row["wrote"], row["next"]) for row in reversed(rows)] == [
        ([], ["__start__"]),
        (["__start__"], ["first"]),
        (["first"], ["second"]),
        (["second"], ["third"]),
        (["third"], []),
    ]
    assert line("resolve", "t@before:second").out.split()[0] == rows[2]["id"]
    assert line("resolve", "t@after:second").out.split()[0] == rows[1]["id"]


def test_a3_a_node_of_a_subgraph_is_found_where_it_is(app: Apps) -> None:
    nested = app("nested.py:two_questions")
    nested.run({"amount": 0, "log": []}, Command(resume="one"), Command(resume="two"))

    elsewhere = nested("resolve", "t@before:second")
    ns = next(row["ns"] for row in nested("history", "t", "--all", "--json").json["items"] if row["ns"])

    assert elsewhere.code == 3
    assert elsewhere.err.endswith(f"hint: it is in a subgraph: --ns {ns}\n")
    assert nested("resolve", "t@before:second", "--ns", ns).code == 0


def test_a4_a_node_of_a_loop_is_named_with_its_visit(app: Apps) -> None:
    loop = app("agents.py:loop")
    loop.run(QUESTION)
    visits = [row["id"] for row in reversed(loop("history", "t", "--json").json["items"]) if row["next"] == ["tools"]]

    assert len(visits) == 3
    for spelled, visit in (("1", 0), ("2", 1), ("3", 2), ("-1", 2), ("-3", 0)):
        assert loop("resolve", f"t@before:tools:{spelled}").out.split()[0] == visits[visit]
    last = loop("resolve", "t@before:tools")
    assert last.out.split()[0] == visits[2] and "the last checkpoint about to run tools" in last.err + last.out
    beyond = loop("resolve", "t@before:tools:4")
    assert (beyond.code, beyond.err.splitlines()[-1]) == (3, "hint: it has 3: before:tools:1 to before:tools:3")
    several = loop("resolve", "t@call:pay")
    assert several.code == 3
    assert [line.split()[0] for line in several.err.splitlines() if "call:pay:" in line.split()[0]] == [
        "call:pay:1",
        "call:pay:2",
        "call:pay:3",
    ]


@ON_BOTH_STORES
def test_a5_each_run_from_a_pinned_checkpoint_is_a_branch_and_the_head_is_named(app: Apps) -> None:
    line = app("flows.py:line")
    line.run({"log": []})
    with line.stock() as graph:
        old = next(state for state in graph.get_state_history(config_of("t")) if state.next == ("second",)).config
        for _ in range(2):
            graph.invoke(None, old, durability="sync")

    history = line("history", "t", "--json").json

    forks = [row for row in history["items"] if row["source"] == "fork"]
    assert history["n_branches"] == 3
    assert {row["parent"] for row in forks} == {old["configurable"]["checkpoint_id"]}
    assert history["head"] == line.state().config["configurable"]["checkpoint_id"]
    assert "the head descends from a fork" in history["notes"][0]


def test_a5_what_a_replay_made_is_named_with_its_new_head_and_goes_on_from_there(app: Apps) -> None:
    asking = app("flows.py:asking")
    asking.run({"log": []}, Command(resume="yes"))

    first = asking("replay", "t@before:ask", "--json").json["runs"][0]

    assert first["status"] == "interrupted"
    assert first["head"] == asking.debug("history", first["thread"], "--json").json["head"]
    went_on = asking("resume", f"debug::{first['thread']}", "--value", '"no"', "--json").json
    assert went_on["nodes"] == ["ask", "last"]
    assert went_on["head"] != first["head"]


@pytest.mark.parametrize("spelling", ["{file}", "sqlite:///{file}", "{folder}/../{name}/prod.sqlite"])
def test_a6_a_replay_never_writes_into_the_store_that_it_reads(tmp_path: Path, spelling: str) -> None:
    (tmp_path / "app.py").write_text(_GRAPH)
    namespace: dict[str, object] = {}
    exec(_GRAPH, namespace)
    file = tmp_path / "prod.sqlite"
    build_thread(namespace["graph"], file, "t", {"messages": [("human", "hi")]})
    before = file.read_bytes()

    debug = spelling.format(file=file, folder=tmp_path, name=tmp_path.name)
    stores = ("--store", file, "--debug-store", debug)
    replayed = run_cli("replay", "t@root", *stores, "--graph", "app.py:graph", cwd=tmp_path)

    assert replayed.code == 5
    assert "only read" in replayed.err
    assert file.read_bytes() == before


@ON_BOTH_STORES
def test_a6_a7_a_replay_into_a_question_asks_again_on_a_copy_and_leaves_the_source(app: Apps) -> None:
    asking = app("flows.py:asking")
    asking.run({"log": []}, Command(resume="yes"))
    before = _rows(asking.store)

    (run,) = asking("replay", "t@before:ask", "--json").json["runs"]
    (told,) = asking("replay", "t@before:ask", "--resume", '"no"', "--json").json["runs"]

    assert (run["status"], [asked["value"] for asked in run["interrupts"]]) == ("interrupted", ["go on?"])
    assert _rows(asking.store) == before
    assert (told["status"], told["nodes"]) == ("done", ["ask", "last"])
    values = asking.debug("show", told["thread"], "--json").json["values"]
    assert values["log"] == ["first", "ask: no", "last"], "the recorded answer is not used"


@ON_BOTH_STORES
def test_a8_a_task_without_a_stored_result_may_have_run_and_a_replay_does_not_call_it(app: Apps) -> None:
    loop = app("agents.py:loop")
    loop.run(QUESTION)
    _cut_off_after(loop, loop("resolve", "t@before:tools:1").out.split()[0])

    shown = loop("show", "t", terminal=True)
    replayed = loop("replay", "t", "--json")

    assert loop("threads", "--json").json["items"][0]["status"] == "pending"
    assert "task     tools: no result stored; it may have run" in shown.out
    assert replayed.code == 5
    assert replayed.json["side_effects"]["blocked"] == 1, "nothing was recorded of it, and it does not run"
    answered = loop("fork", "t", "--answer", 'pay="paid 0"', "--stub", 'pay="paid"', "--json").json
    assert answered["runs"][0]["reply"] == "all paid"


@ON_BOTH_STORES
def test_a8_beside_a_finished_task_it_is_said_which_may_have_run(app: Apps) -> None:
    pair = app("flows.py:pair")
    pair.run({"log": []})
    at = pair("resolve", "t@before:join~1").out.split()[0]
    _cut_off_after(pair, at, keep="a")

    (note,) = (line for line in pair("history", "t", "--json").json["notes"] if "finished" in line)

    assert note == f"{at[-8:]}: a finished and will not run again; b did not finish and may already have run outside"


def test_a9_steps_that_were_not_stored_are_counted(app: Apps) -> None:
    line = app("flows.py:line")
    with line.stock() as graph:
        graph.invoke({"log": []}, config_of("t"), durability="exit")

    history = line("history", "t", "--json").json

    (row,) = history["items"]
    assert (row["step"], row["parent"], row["wrote"]) == (3, None, ["first", "second", "third"])
    note = f"step 3 ({row['id'][-8:]}), no parent: 4 steps not stored (durability exit, or pruned)"
    assert history["notes"] == [note]
    missing = line("replay", "t@before:second")
    assert (missing.code, missing.err.splitlines()[-1]) == (
        3,
        "hint: no node runs there; 4 steps are not stored (durability exit, or pruned)",
    )


def test_a9_a_run_with_durability_exit_after_others_is_told_from_them(app: Apps) -> None:
    line = app("flows.py:line")
    with line.stock() as graph:
        go(graph, "t", {"log": []})
        graph.invoke({"log": []}, config_of("t"), durability="exit")

    history = line("history", "t", "--json").json

    assert Counter(tuple(row["wrote"]) for row in history["items"])["first", "second", "third"] == 1
    assert "4 steps not stored (durability exit, or pruned)" in history["notes"][0]


def _rows(store: str) -> dict[str, list[tuple[object, ...]]]:
    """Every checkpoint and write of a store."""
    tables = ("checkpoints", "writes") if not store.startswith("postgres") else ("checkpoints", "checkpoint_writes")
    with closing(psycopg.connect(store) if store.startswith("postgres") else sqlite3.connect(store)) as connection:
        return {name: sorted(map(repr, connection.execute(f"SELECT * FROM {name}").fetchall())) for name in tables}  # type: ignore[misc]


def _cut_off_after(app: Application, checkpoint_id: str, *, keep: str = "") -> None:
    """Takes away what came after a checkpoint, and the writes on it but those of one node: a process died there."""
    postgres = app.store.startswith("postgres")
    writes, mark = ("checkpoint_writes", "%s") if postgres else ("writes", "?")
    with closing(psycopg.connect(app.store) if postgres else sqlite3.connect(app.store)) as connection:
        for statement in (
            f"DELETE FROM checkpoints WHERE checkpoint_id > {mark}",
            f"DELETE FROM {writes} WHERE checkpoint_id > {mark}",
        ):
            connection.execute(statement, (checkpoint_id,))
        connection.execute(
            f"DELETE FROM {writes} WHERE checkpoint_id = {mark} AND task_path NOT LIKE {mark}",
            (checkpoint_id, f"%, {keep}" if keep else "nothing"),
        )
        connection.commit()
