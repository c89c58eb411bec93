"""Reports F: questions that wait, and what becomes of the answers."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Literal
from uuid import UUID

import pytest

from agentctl.errors import Refused, StoreError
from agentctl.experiments.workflows.runs import ENVIRONMENT, PRODUCTION, Workflow, WorkflowStore, resume_workflow
from agentctl.testing import CliResult, build_thread, run_cli
from tests.support import field_agents, field_asking
from tests.support.copies import stock_saver
from tests.support.field_asking import RAN


class Debug:
    """Commands on a debug store: `run`, `resume` and others, on the graphs of `field_asking`."""

    def __init__(self, url: str) -> None:
        self.url = url

    def __call__(self, verb: str, *words: str) -> CliResult:
        return run_cli(verb, *words, "--debug-store", self.url, "--json")

    def start(self, graph: str, thread: str, given: str = '{"log": []}', *words: str) -> list[Any]:
        """Runs a thread to its questions and returns them."""
        done = self("run", f"{field_asking.FILE}:{graph}", "--thread", thread, "--input", given, *words)
        assert (done.code, done.json["status"]) == (0, "interrupted"), done.out
        questions: list[Any] = done.json["interrupts"]
        return questions

    def resume(self, graph: str, thread: str, *words: str) -> CliResult:
        """Answers."""
        return self("resume", f"debug::{thread}", "--graph", f"{field_asking.FILE}:{graph}", *words)

    def values(self, thread: str) -> dict[str, Any]:
        """The state of a thread's head."""
        values: dict[str, Any] = self("show", f"debug::{thread}").json["values"]
        return values


@pytest.fixture
def debug(tmp_path: Path) -> Debug:
    return Debug(str(tmp_path / "debug.sqlite"))


@pytest.fixture(params=["sqlite", "postgres"])
def either(request: pytest.FixtureRequest, tmp_path: Path) -> Debug:
    """A debug store of either kind."""
    sqlite = str(tmp_path / "debug.sqlite")
    return Debug(sqlite if request.param == "sqlite" else request.getfixturevalue("fresh_postgres_url"))


def test_f1_two_questions_are_answered_in_one_command(either: Debug) -> None:
    asked = either.start("pair_graph", "t")

    done = either.resume("pair_graph", "t", *(f'--map={one["id"]}="to {one["value"]}"' for one in asked))

    assert (done.code, done.json["status"]) == (0, "done")
    assert sorted(either.values("t")["log"]) == [["legal?", "to legal?"], ["risk?", "to risk?"]]


def test_f2_an_answer_to_a_question_that_does_not_wait_is_refused_and_nothing_is_written(debug: Debug) -> None:
    asked = debug.start("pair_graph", "t")
    before = debug("history", "debug::t").json["items"]

    refused = debug.resume("pair_graph", "t", "--map", f"{'0' * 32}=1")

    assert refused.code == 2
    error = refused.json["error"]
    assert error["message"] == f"t has no waiting question {'0' * 32}"
    assert error["hint"] == "waiting: " + ", ".join(one["id"] for one in asked)
    assert debug("history", "debug::t").json["items"] == before


def test_f3_one_value_for_several_questions_is_refused_with_their_ids_nodes_and_texts(debug: Debug) -> None:
    asked = debug.start("pair_graph", "t")

    refused = debug.resume("pair_graph", "t", "--value", '"yes"')

    assert refused.code == 5
    error = refused.json["error"]
    assert error["candidates"] == asked
    assert [(one["node"], one["value"]) for one in asked] == [("legal", "legal?"), ("risk", "risk?")]
    assert all(f"--map {one['id']}=JSON" in error["hint"] for one in asked)


EFFECTS = tuple(word for name in ("read", "refund", "mail") for word in ("--effect", f"{name}=state"))


def test_f4_f5_f7_tools_that_ask_in_turn_are_told_with_what_runs_again(debug: Debug) -> None:
    build_thread(field_asking.tools_graph, Path(debug.url), "t", {"messages": [("user", "hi")]})
    RAN.clear()

    planned = debug.resume("tools_graph", "t", "--value", '"yes"', "--dry-run", *EFFECTS)
    first = debug.resume("tools_graph", "t", "--value", '"yes"', *EFFECTS)
    second = debug.resume("tools_graph", "t", "--value", '"no"', *EFFECTS)

    says = (
        "tools has 3 calls without a result and 1 question: its tools ask in turn, answers are given in the order in"
        " which they ask, and all of them run again with each answer"
    )
    assert [one.json["warnings"] for one in (planned, first, second)] == [[says]] * 3
    assert [tool["name"] for tool in planned.json["plan"]["tools"]] == ["read", "refund", "mail"]
    assert [one["value"] for one in first.json["interrupts"]] == ["mail?"]
    assert second.json["reply"] == "read refund: yes mail: no"
    assert RAN == ["read", "read"]


def test_f7_tools_that_run_again_after_an_answer_are_not_called_for_real(debug: Debug) -> None:
    build_thread(field_asking.tools_graph, Path(debug.url), "t", {"messages": [("user", "hi")]})
    RAN.clear()

    resumed = debug.resume("tools_graph", "t", "--value", '"yes"')

    assert (resumed.code, resumed.json["status"], RAN) == (5, "blocked", [])


def test_a_result_given_in_place_of_an_answer_leaves_no_question(debug: Debug, tmp_path: Path) -> None:
    source = tmp_path / "prod" / "prod.sqlite"
    source.parent.mkdir()
    build_thread(field_asking.tools_graph, source, "t", {"messages": [("user", "hi")]})
    given = [f'--answer=c{number}="result {number}"' for number in (1, 2, 3)]

    forked = debug("fork", "t", "--store", str(source), "--graph", f"{field_asking.FILE}:tools_graph", *given)

    assert (forked.code, forked.json["next"]) == (0, ["agent"])
    assert forked.json["runs"][0]["reply"] == "result 1 result 2 result 3"
    assert debug("doctor", "debug::t.fork-1").json["items"] == []


def test_f6_answers_reach_the_tools_that_asked_however_slow_these_are(debug: Debug) -> None:
    effects = ("--effect", "slow=state", "--effect", "fast=state")
    asked = debug.start("sends_graph", "t", '{"messages": [["user", "hi"]]}', *effects)
    assert sorted(one["value"] for one in asked) == ["fast?", "slow?"]

    done = debug.resume("sends_graph", "t", *(f'--map={one["id"]}="to {one["value"]}"' for one in asked), *effects)

    assert (done.code, done.json["status"]) == (0, "done"), done.out
    answers = [one["text"] for item in debug("show", "debug::t", "--messages").json["items"] for one in item["answers"]]
    assert sorted(answers) == ["fast? to fast?", "slow? to slow?"]


def test_f8_a_task_that_finished_before_the_question_of_a_subgraph_is_not_run_again(either: Debug) -> None:
    RAN.clear()
    either.start("inside_graph", "t")

    done = either.resume("inside_graph", "t", "--value", '"yes"')

    assert (done.code, done.json["nodes"]) == (0, ["inner", "inner|node"])
    assert RAN == ["fetch"]
    assert either.values("t")["log"] == ["fetched", "yes"]


def test_f9_null_is_an_answer(debug: Debug) -> None:
    debug.start("line_graph", "t")

    done = debug.resume("line_graph", "t", "--value", "null")

    assert (done.code, done.json["status"]) == (0, "done")
    assert debug.values("t")["log"] == ["work", ["go on?", None]]


@pytest.mark.parametrize(
    ("tools", "access", "error"), [("sandbox", "read", Refused), ("production", "write", StoreError)]
)
def test_f10_no_answer_is_sent_through_a_server_that_may_drop_it(
    tools: Literal["sandbox", "production"], access: Literal["read", "write"], error: type[Exception]
) -> None:
    server = WorkflowStore("http://127.0.0.1:9", "http://127.0.0.1:9", access=access)
    workflow = Workflow(field_asking.line(), server, tools=tools)

    with pytest.raises(error):
        resume_workflow(workflow, str(UUID(int=7)), value="yes", env={ENVIRONMENT: PRODUCTION})


def test_f11_input_and_an_answer_are_never_given_in_one_command(debug: Debug) -> None:
    debug.start("line_graph", "t")
    graph = f"{field_asking.FILE}:line_graph"

    with_input = debug.resume("line_graph", "t", "--value", '"yes"', "--input", '{"log": []}')
    with_answer = debug("run", graph, "--thread", "t", "--input", '{"log": []}', "--value", '"yes"')

    assert (with_input.code, with_answer.code) == (2, 2)
    assert "--input" in with_input.json["error"]["message"] and "--value" in with_answer.json["error"]["message"]


def test_f12_input_to_a_thread_that_waits_is_refused_unless_its_question_is_to_be_lost(either: Debug) -> None:
    (asked,) = either.start("line_graph", "t")
    given = (f"{field_asking.FILE}:line_graph", "--thread", "t", "--input", '{"log": ["again"]}')

    refused = either("run", *given)

    assert refused.code == 5
    error = refused.json["error"]
    assert error["message"] == "t waits for an answer, and new input would discard the question"
    assert error["candidates"] == [asked]
    assert "agentctl resume " in error["hint"] and error["hint"].endswith("or discard it: --discard-interrupt")
    assert f"--graph {field_asking.FILE}:line_graph" in error["hint"]

    RAN.clear()
    discarded = either("run", *given, "--discard-interrupt")

    assert (discarded.code, discarded.json["discarded"]) == (0, [asked])
    assert RAN == ["work"]


def test_f12_input_that_leaves_calls_without_a_result_says_so(debug: Debug) -> None:
    failing = field_agents.with_tool_node([field_agents.lookup, field_agents.pay])
    with stock_saver(debug.url) as saver:
        config: Any = {"configurable": {"thread_id": "t"}}
        graph = failing.copy(update={"checkpointer": saver, "interrupt_before_nodes": ["tools"]})
        graph.invoke({"messages": [("user", "where is A1?")]}, config, durability="sync")
    given = ("--thread", "t", "--input", json.dumps({"messages": [["user", "hello?"]]}))

    refused = debug("run", f"{field_agents.FILE}:node_agent", *given)
    told = debug("run", f"{field_agents.FILE}:node_agent", *given, "--discard-interrupt")

    assert refused.code == 5
    assert told.json["warnings"] == [
        "lookup (look-1), pay (pay-1) have no result, and new input leaves them so for good: models refuse such a"
        " conversation"
    ]
