"""Reports D: pending writes, parallel branches, Send, error handlers."""

from __future__ import annotations

from typing import Any

import pytest
from langgraph.types import Command, StateUpdate

from tests.catalog import config_of
from tests.support.application import ON_BOTH_STORES, Application, Apps

NEW: dict[str, Any] = {"log": []}


@ON_BOTH_STORES
def test_d1_a_fork_of_a_half_done_step_keeps_what_had_finished_or_says_what_it_leaves(app: Apps) -> None:
    half = app("flows.py:half")
    half.run(NEW)
    at = half.state().config["configurable"]["checkpoint_id"]
    mine = half.write("mine.json", '{"log": ["mine"]}')

    updated = half("fork", "t", "--update", mine, "--as-node", "b", "--json").json
    set_as = half("fork", "t", "--set", 'log=["set"]', "--as-node", "b", "--json").json
    routed = half("fork", "t", "--goto", "join", "--json").json

    assert (updated["next"], updated["runs"][0]["nodes"]) == (["join"], ["join"])
    assert _log(half, updated) == ["a", "mine", "join"], "a's result is kept, and the join runs"
    assert _log(half, set_as)[-2:] == ["set", "join"]
    assert updated["warnings"] == set_as["warnings"] == []
    assert routed["warnings"] == [f"recorded results at {at} are not in this branch: a"]
    assert _log(half, routed) == ["join"]


def test_d1_a_route_past_a_waiting_call_warns_that_it_stays_without_a_result(app: Apps) -> None:
    loop = app("agents.py:loop")
    loop.run({"messages": [("human", "pay them all")]})

    past = loop("fork", "t@before:tools:1", "--goto", "agent", "--no-run", "--json").json
    there = loop("fork", "t@before:tools:1", "--goto", "tools", "--no-run", "--json").json

    assert past["warnings"] == ["pay (c0) has no result in this branch, and a model may refuse that"]
    assert there["warnings"] == []


@ON_BOTH_STORES
def test_d2_each_task_shows_its_result_error_or_question_beside_the_state_without_them(app: Apps) -> None:
    half = app("flows.py:half")
    half.run(NEW)
    failed = app("flows.py:cut_off")
    failed.run(NEW, thread="failed")

    shown = half("show", "t", "--json").json
    told = half("show", "t", terminal=True).out
    failure = failed("show", "failed", terminal=True).out

    a, b = shown["tasks"]
    assert (a["finished"], a["result"]) == (True, [{"channel": "log", "value": ["a"]}])
    assert (b["finished"], b["result"], [asked["value"] for asked in b["interrupts"]]) == (False, None, ["b?"])
    assert shown["values"]["log"] == [], "results of an unfinished step are not in the state"
    assert 'task     a: finished\n         log: ["a"]\ntask     b: asks\n' in told
    assert "task     b: failed\n         ValueError('the neighbour fell over')\n" in failure


@ON_BOTH_STORES
def test_d3_d4_one_of_several_tasks_is_updated_by_its_id_and_the_others_keep_their_results(app: Apps) -> None:
    fan = app("flows.py:fan")
    fan.run(NEW)
    mine = fan.write("mine.json", '{"log": ["mine"]}')
    ids = [task["id"] for task in fan("show", "t@before:work", "--json").json["tasks"]]

    several = fan("fork", "t@before:work", "--update", mine, "--as-node", "work")
    forked = fan("fork", "t@before:work", "--update", mine, "--as-node", ids[1], "--json").json
    by_end = fan("fork", "t@before:work", "--update", mine, "--as-node", ids[2][-8:], "--json").json

    assert several.code == 3
    assert [line.strip() for line in several.err.splitlines() if line.startswith("  ")] == ids
    assert f"hint: name one by its id: --as-node {ids[0]}" in several.err
    assert (forked["as_node"], forked["next"], forked["runs"][0]["nodes"]) == ("work", ["gather"], ["gather"])
    assert _log(fan, forked) == ["split", "work 0", "mine", "work 2", "gather"]
    assert _log(fan, by_end) == ["split", "work 0", "work 1", "mine", "gather"]


@ON_BOTH_STORES
def test_d4_an_update_of_both_tasks_of_a_pair_is_read_as_what_it_is(app: Apps) -> None:
    asking = app("flows.py:twice")
    asking.run(NEW)
    with asking.stock() as graph:
        updates = [StateUpdate({"log": [f"{name} by hand"]}, name) for name in ("a", "b")]
        graph.invoke(None, graph.bulk_update_state(config_of("t"), [updates]), durability="sync")

    update = next(row for row in asking("history", "t", "--json").json["items"] if row["source"] == "update")

    assert (update["wrote"], update["next"], update["as_node"]) == (["a", "b"], ["join"], "a, b")
    assert asking("show", "t", "--json").json["values"]["log"] == ["a by hand", "b by hand", "join"]


@ON_BOTH_STORES
def test_d5_answered_questions_are_told_from_those_that_wait(app: Apps) -> None:
    twice = app("flows.py:twice")
    twice.run(NEW)
    asked = {question.value: question.id for question in twice.state().interrupts}
    twice.run(Command(resume={asked["first?"]: "1", asked["only?"]: "o"}))

    told = twice("show", "t", terminal=True).out
    forked = twice("fork", "t", "--resume", '"2"', "--json").json
    a, b = twice("show", "t", "--json").json["tasks"]

    assert [(question["value"], a["finished"]) for question in a["interrupts"]] == [("second?", False)]
    assert a["interrupts"][0]["id"] not in asked.values()
    assert [(question["value"], b["finished"]) for question in b["interrupts"]] == [("only?", True)]
    assert f'task     b: finished\n         answered  {asked["only?"]}  "only?"\n' in told
    answer = next(line for line in told.splitlines() if line.startswith("answer "))
    assert " fork " in answer and answer.endswith("--resume JSON") and answer.count("--resume") == 1
    assert (forked["next"], forked["runs"][0]["nodes"]) == (["a"], ["a", "join"]), "b does not run again"
    assert _log(twice, forked) == ["a: 1", "a: 2", "b: o", "join"]


@ON_BOTH_STORES
def test_d6_pending_sends_are_copied_and_replayed(app: Apps) -> None:
    fan = app("flows.py:fan")
    fan.run(NEW)

    copied = fan("copy", "t@before:work", "--as", "mid", "--json").json
    replayed = fan("replay", "t@before:work", "--json").json
    mid = fan.debug("show", "mid", "--json").json

    assert copied["verified"]
    assert mid["next"] == ["work"] * 3
    assert replayed["plan"]["nodes"] == ["work"] * 3
    assert replayed["runs"][0]["nodes"] == ["work", "work", "work", "gather"]
    assert fan.debug("diff", "mid", f"debug::{replayed['runs'][0]['thread']}", "--json").code == 0
    assert _log(fan, replayed) == ["split", "work 0", "work 1", "work 2", "gather"]


def test_d6_a_question_of_one_send_leaves_the_others_finished(app: Apps) -> None:
    fan = app("flows.py:asking_fan")
    fan.run(NEW)

    forked = fan("fork", "t", "--resume", '"yes"', "--json").json

    assert (forked["next"], forked["runs"][0]["nodes"]) == (["work"], ["work", "gather"])
    assert _log(fan, forked) == ["split", "work", "work 1: yes", "work", "gather"]


@ON_BOTH_STORES
def test_d7_a_handled_error_and_the_one_that_was_raised_are_told_apart(app: Apps) -> None:
    failed, handled = app("flows.py:cut_off"), app("flows.py:handled")
    failed.run(NEW)
    handled.run(NEW, thread="handled")

    (row,) = [row for row in failed("history", "t", "--json").json["items"] if row["next"] == ["a", "b"]]
    threads = {item["thread"]: item for item in failed("threads", "--json").json["items"]}
    a, b = failed("show", "t", "--json").json["tasks"]

    assert "a failed: ValueError('the bureau is down'), handled by __error_handler__a" in row["summary"]
    assert "b failed: ValueError('the neighbour fell over')" in row["summary"]
    assert row["error"] == threads["t"]["error"] == "ValueError('the neighbour fell over')"
    assert (a["handled_by"], b["handled_by"]) == ("__error_handler__a", None)
    assert (threads["t"]["status"], threads["handled"]["status"]) == ("error", "done")
    assert failed("doctor", "t", "--json").json["items"][0]["cause"] == "b raised ValueError('the neighbour fell over')"
    (made,) = [item for item in handled("history", "handled", "--json").json["items"] if not item["next"]]
    assert made["wrote"] == ["b", "__error_handler__a"]


@ON_BOTH_STORES
def test_d8_a_handler_runs_again_when_the_thread_goes_on_and_its_tools_do_not(app: Apps) -> None:
    failed = app("flows.py:cut_off")
    failed.run(NEW)
    failed.run(None)
    mine = failed.write("mine.json", '{"log": ["mine"]}')

    (note,) = [note for note in failed("history", "t", "--json").json["notes"] if "handler" in note]
    blocked = failed("replay", "t", "--json")
    update = ("fork", "t", "--update", mine, "--as-node", "b")
    forked = failed(*update, "--stub", 'notify="stubbed"', "--json").json

    assert "__error_handler__a ran, and runs again when the thread goes on; b did not finish" in note
    assert blocked.code == 5
    assert blocked.json["plan"]["tools"] == [{"name": "notify", "effect": "write", "served_by": "blocked"}]
    assert blocked.json["side_effects"]["escaped"] == 0
    assert failed(*update).code == 5, "without an answer the handler is stopped at its tool"
    assert forked["next"] == ["a|__error_handler__a"], "the node does not run again, its handler does"
    assert (forked["runs"][0]["status"], forked["runs"][0]["nodes"]) == ("done", ["a|__error_handler__a"])
    assert sorted(_log(failed, forked)) == ["handled, stubbed", "mine"]


@pytest.mark.parametrize("name", ["handled", "cut_off"])
def test_d8_a_replay_runs_the_node_and_its_handler_anew(app: Apps, name: str) -> None:
    failed = app(f"flows.py:{name}")
    failed.run(NEW)

    (run,) = failed("replay", "t@before:a", "--stub", 'notify="stubbed"', "--json").json["runs"]

    assert run["status"] == "done"
    assert [node for node in run["nodes"] if node.startswith("a")] == ["a", "a|__error_handler__a"]
    assert [(call["name"], call["served_by"]) for call in run["tool_calls"]] == [("notify", "stub")]


def _log(app: Application, report: Any) -> Any:
    """The log at the end of a report's first run."""
    return app.debug("show", report["runs"][0]["thread"], "--json").json["values"]["log"]
