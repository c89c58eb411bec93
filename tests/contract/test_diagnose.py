"""Diagnoses of stored threads: the verdict, what it points at, what is left to try, what differs from the recording."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, TypedDict

import pytest
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, ToolMessage
from langchain_core.tools import tool
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.graph import START, StateGraph
from langgraph.graph.message import add_messages
from langgraph.prebuilt import ToolNode

from agentctl.errors import NotFound
from agentctl.experiments.comparing.turn import recorded_results, turn_of, turn_start
from agentctl.experiments.diagnose import diagnose
from agentctl.experiments.experiment import Experiment, Target
from agentctl.experiments.forking.forms import parse_forms
from agentctl.experiments.judging.checks import Clause, parse_inline
from agentctl.experiments.prepare import seen_tip
from agentctl.records.runs import DiagnoseReport
from agentctl.sandbox.answers import Policy
from agentctl.sandbox.effects import Effects
from agentctl.sandbox.recorder import record_thread
from agentctl.stores.open import open_reader
from agentctl.stores.reading.lineage import head_id, read_lineage
from tests.catalog import CATALOG, config_of, sqlite_case, sqlite_thread
from tests.support.experiments import about_to_run, contents, experiment_on

NO_REFUND = parse_inline("reply contains no refund")
AGENT = CATALOG["agent"]
LOST = parse_forms(patch=['lookup_order:status="lost"'])
THIRTY = parse_forms(patch=["get_policy:days=14"])


def run_diagnosis(
    folder: Path, *, forms: Any = None, check: Clause | None = NO_REFUND, n: int = 4, **settings: Any
) -> tuple[DiagnoseReport, Experiment]:
    """Diagnoses the catalog's agent from its tool calls; `settings` go to the experiment or to `diagnose`."""
    prod = folder / "prod"
    prod.mkdir()
    diagnosis = {name: settings.pop(name) for name in ("trust_rest", "options") if name in settings}
    path, graph = sqlite_thread(prod, AGENT), AGENT.build(None)
    before = contents(path)
    with experiment_on(path, graph, folder / "debug.sqlite", check=check) as ready:
        target = about_to_run(ready.source, AGENT.thread, "tools")
        recording = record_thread(ready.source, AGENT.thread)
        policy = Policy(stubs={"issue_refund": "ok"}, effects=Effects(settings.pop("effects", {})), **settings)
        ready = replace(ready, policy=policy, recording=recording)
        report = diagnose(ready, target, forms, n=n, **diagnosis)
    assert contents(path) == before
    return report, ready


def test_a_corrected_result_that_ends_the_failure_is_tool_data(tmp_path: Path) -> None:
    report, _ = run_diagnosis(tmp_path, forms=LOST)
    assert report.verdict.name == "tool_data"
    (change,) = report.verdict.cause.substituted
    assert change.call == ("lookup_order", "c1")
    assert report.verdict.cause.fields == ("status",)
    assert report.side_effects.escaped == 0
    assert report.diff is not None
    assert report.diff.reply is not None
    assert [call.right.name for call in report.diff.tool_calls if call.right] == ["issue_refund"]
    fork = f"debug::{AGENT.thread}.fork-1"
    assert report.commands == (f"agentctl export {shlex.quote(fork)} --dataset regressions --format jsonl",)


def test_a_result_that_changes_nothing_is_not_the_cause_and_the_others_are_commands(tmp_path: Path) -> None:
    report, _ = run_diagnosis(tmp_path, forms=THIRTY, options=["--check", "reply contains no refund"])
    assert report.verdict.name == "not_the_cause"
    (command,) = report.commands
    words = shlex.split(command)
    assert words[:2] == ["agentctl", "diagnose"]
    assert words[2].startswith(f"prod::{AGENT.thread}@")
    name, _, value = words[words.index("--answer") + 1].partition("=")
    assert (name, json.loads(json.loads(value))["status"]) == ("c1", "delivered")
    assert words[words.index("--check") + 1] == "reply contains no refund"


def test_the_model_is_to_blame_when_the_rest_is_trusted(tmp_path: Path) -> None:
    report, _ = run_diagnosis(tmp_path, forms=THIRTY, trust_rest=True)
    assert report.verdict.name == "model_or_prompt"


def test_without_a_fork_the_calls_of_the_turn_are_what_to_try(tmp_path: Path) -> None:
    report, _ = run_diagnosis(tmp_path)
    assert report.verdict.name == "inconclusive"
    assert len(report.commands) == 2
    assert report.fork is None
    assert report.diff is None


def test_a_failure_that_does_not_show_lists_what_is_different_now(tmp_path: Path) -> None:
    prod = tmp_path / "prod"
    prod.mkdir()
    with sqlite_case(prod, AGENT) as (path, graph), experiment_on(path, graph, tmp_path / "debug.sqlite") as ready:
        recording = record_thread(ready.source, AGENT.thread)
        stubs = {
            "lookup_order": {"order_id": "A1", "status": "lost", "total": 120.0},
            "get_policy": {"topic": "lost", "days": 30},
            "issue_refund": "ok",
        }
        again = Experiment(
            source=ready.source,
            debug=ready.debug,
            graph=graph,
            policy=Policy(mode="sandbox", stubs=stubs),
            recording=recording,
            check=NO_REFUND,
            configurable={"tone": "kind"},
        )
        found = diagnose(again, about_to_run(ready.source, AGENT.thread, "tools"), None, n=4)
    assert found.verdict.name == "not_reproduced"
    told = "\n".join(found.faithfulness)
    assert 'tool data: lookup_order has changed since (stub): status "delivered" -> "lost"' in told
    assert 'configurable tone: not recorded, replayed with "kind"' in told
    assert "model: answers are not recorded" in told


class Talk(TypedDict):
    messages: Annotated[list[AnyMessage], add_messages]
    verdict: str


@tool
def read_limit(account: str) -> str:
    """Reads an account's limit."""
    return json.dumps({"account": account, "limit": 100})


def rules_alone(saver: Any) -> Any:
    """A graph without a model: a faulty rule refuses everybody, whatever the tool says."""

    def ask(state: Talk) -> Mapping[str, object]:
        call = {"name": "read_limit", "args": {"account": "a"}, "id": "c1", "type": "tool_call"}
        return {"messages": [AIMessage("", id="ai-1", tool_calls=[call])]}

    def decide(state: Talk) -> Mapping[str, object]:
        last = state["messages"][-1]
        assert isinstance(last, ToolMessage)
        return {"verdict": "refused", "messages": [AIMessage("refused", id="ai-2")]}

    graph: StateGraph[Any, Any, Any, Any] = StateGraph(Talk)
    graph.add_node("ask", ask)
    graph.add_node("tools", ToolNode([read_limit]))
    graph.add_node("decide", decide)
    graph.add_edge(START, "ask")
    graph.add_edge("ask", "tools")
    graph.add_edge("tools", "decide")
    return graph.compile(checkpointer=saver)


def test_the_graphs_own_code_is_to_blame_where_no_model_ran(tmp_path: Path) -> None:
    path = tmp_path / "prod.sqlite"
    with SqliteSaver.from_conn_string(str(path)) as saver:
        rules_alone(saver).invoke({"messages": [HumanMessage("?", id="h")]}, config_of("t"), durability="sync")
    with experiment_on(path, rules_alone(None), tmp_path / "debug.sqlite") as ready:
        ready = Experiment(
            source=ready.source,
            debug=ready.debug,
            graph=ready.graph,
            recording=record_thread(ready.source, "t"),
            check=parse_inline("state verdict == 'refused'"),
        )
        target = about_to_run(ready.source, "t", "tools")
        report = diagnose(ready, target, parse_forms(patch=["read_limit:limit=1000"]), n=4)
    assert report.verdict.name == "graph_code"
    assert not any("model" in line for line in report.faithfulness)


def test_a_blocked_call_leaves_runs_undecided_and_says_what_would_answer_it(tmp_path: Path) -> None:
    report, _ = run_diagnosis(tmp_path, mode="sandbox")
    assert report.verdict.name == "inconclusive"
    assert report.replays.group.n == 0
    assert report.side_effects.blocked > 0
    assert "--stub " in report.verdict.sentence


def test_a_check_on_calls_is_settled_by_the_blocked_call(tmp_path: Path) -> None:
    report, _ = run_diagnosis(tmp_path, mode="sandbox", check=parse_inline("called lookup_order"))
    assert (report.replays.group.n, report.replays.group.n_failed) == (4, 4)


def test_a_turn_begins_at_its_input_and_ends_at_the_next(tmp_path: Path) -> None:
    case = CATALOG["agent two turns"]
    with sqlite_case(tmp_path, case) as (path, _):
        reader = open_reader(str(path))
        lineage = read_lineage(reader, case.thread)
        inputs = [row.id for row in lineage.rows if row.source == "input"]
        first, last = turn_of(lineage, lineage.rows[2].id), turn_of(lineage, lineage.tip.id)
        assert (first.first, first.end) == (inputs[0], inputs[1])
        assert (last.first, last.end) == (inputs[1], None)
        assert turn_start(reader, case.thread) == lineage.rows[lineage.index[inputs[1]] + 1].id
        calls = [
            [site.pending_at for site in recorded_results(reader, case.thread, None, row.id)]
            for row in (lineage.rows[2], lineage.tip)
        ]
        assert calls[0]
        assert calls[1]
        assert not set(calls[0]) & set(calls[1])
        reader.close()


def test_the_branch_that_the_customer_saw_is_not_the_edited_one(tmp_path: Path) -> None:
    case = CATALOG["agent corrected"]
    with sqlite_case(tmp_path, case) as (path, _):
        reader = open_reader(str(path))
        target = about_to_run(reader, case.thread, "tools")
        tip = seen_tip(reader, target)
        assert tip is not None
        assert tip != head_id(reader, case.thread)
        assert {row.source for row in read_lineage(reader, case.thread, tip=tip).rows} == {"input", "loop"}
        reader.close()


def test_a_thread_that_took_no_step_has_no_turn_to_replay(tmp_path: Path) -> None:
    path = tmp_path / "prod.sqlite"
    with SqliteSaver.from_conn_string(str(path)) as saver:
        rules_alone(saver).update_state(config_of("t"), {"messages": [HumanMessage("?", id="h")]}, as_node="decide")
    reader = open_reader(str(path))
    with pytest.raises(NotFound, match="no step was taken"):
        turn_start(reader, "t")
    reader.close()
    assert Target("t", "x").place.target == "t@x"
