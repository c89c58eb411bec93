"""Time travel on research threads, by value: inside one search, around it, at the review; delta channels read right."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from langgraph.checkpoint.sqlite import SqliteSaver

from agentctl.experiments.experiment import Target
from agentctl.experiments.replay import replay
from agentctl.experiments.runs.running import Limits
from agentctl.sandbox.answers import Policy
from agentctl.sandbox.effects import Effects
from agentctl.sandbox.recorder import record_thread
from agentctl.stores.fingerprint import fingerprint
from agentctl.stores.open import open_reader
from agentctl.stores.postgres.reading_role import reading_role
from agentctl.stores.reading.lineage import read_tree
from agentctl.stores.reading.steps import StepReader
from fixtures import web as recorded_web
from fixtures.backoffice import running
from fixtures.incidents.research.files import APPROVE, REVIEWER, load_incidents
from fixtures.incidents.research.ordinary import ordinary_cases
from fixtures.incidents.research.seeding import TENANT, seed
from graphs.research_report.graph import ResearchGraph, build_graph
from graphs.research_report.models import make_models
from sandbox_tools.research import registry
from tests.support.asking import Ask, called
from tests.support.experiments import experiment_on
from tests.support.incidents import NOW, SeededStore, seeded_store
from tests.support.postgres import new_database
from tests.support.stock import differences, inert, value_differences

INCIDENTS = {incident.name: incident for incident in load_incidents()}
STALE, CERTAIN = INCIDENTS["stale-page"], INCIDENTS["added-certainty"]
PUBLISHED, WAITING = (each.case.thread for each in list(ordinary_cases(2)))
AS_REVIEWER = [word for name, value in REVIEWER.items() for word in ("--configurable", f"{name}={value}")]
APPROVED = ("--resume", json.dumps(APPROVE), *AS_REVIEWER)

pytestmark = pytest.mark.xdist_group("research-time-travel")


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SeededStore]:
    """Every incident; at the end nothing in production has moved, and neither back office nor web was called."""
    with seeded_store(tmp_path_factory.mktemp("research"), workflow="research_report") as seeded:
        before, counters = fingerprint(seeded.url), seeded.counters()
        yield seeded
        assert fingerprint(seeded.url) == before
        assert seeded.counters() == counters


@pytest.fixture
def ask(store: SeededStore, tmp_path: Path) -> Ask:
    return Ask(store.folder, tmp_path, {"AGENTCTL_STORE": store.url})


@dataclass(frozen=True)
class Corrected:
    """The stale page corrected inside the search that read it: the fork, and who asks about it."""

    ask: Ask
    document: Mapping[str, Any]

    @property
    def thread(self) -> str:
        return f"debug::{STALE.thread}.fork-1"


@pytest.fixture(scope="module")
def corrected(store: SeededStore, tmp_path_factory: pytest.TempPathFactory) -> Corrected:
    ask = Ask(store.folder, tmp_path_factory.mktemp("corrected"), {"AGENTCTL_STORE": store.url})
    return _corrected(ask)


def _corrected(ask: Ask) -> Corrected:
    experiment = STALE.experiment
    return Corrected(ask, ask("fork", f"{STALE.thread}{experiment.target}", *experiment.fork, *APPROVED))


@cache
def workflow() -> ResearchGraph:
    """The workflow over its sandbox."""
    return build_graph(registry(), model=make_models(env={}))


def _rejected(message: str) -> str:
    return json.dumps({"decisions": [{"type": "reject", "message": message}]})


def _findings(values: Mapping[str, Any]) -> dict[str, tuple[str, str]]:
    """What each finding of the final report says, and how certain it is."""
    return {each["id"]: (each["statement"], each["confidence"]) for each in values["structured_response"]["findings"]}


def _contents(values: Mapping[str, Any], folder: str) -> dict[str, str]:
    """The contents of a state's files below a folder, without the times of writing."""
    return {path: file["content"] for path, file in values["files"].items() if path.startswith(folder)}


def _tasks(run: Mapping[str, Any]) -> list[str]:
    """What the subagents of a run were asked, by its first word or sub-question."""
    return [
        call["args"]["description"].partition(":")[0].partition(" /")[0]
        for call in run["tool_calls"]
        if call["name"] == "task"
    ]


def _question(ask: Ask, target: str) -> dict[str, Any]:
    """What a thread asks its reviewer."""
    [asked] = [interrupt for task in ask("show", target)["tasks"] for interrupt in task["interrupts"]]
    return dict(asked["value"])


# Inside a search, and around it


def test_a_page_is_corrected_inside_one_search_and_the_other_search_is_kept(corrected: Corrected) -> None:
    _holds(corrected)


def test_the_same_on_postgres(store: SeededStore, postgres_url: str, tmp_path: Path) -> None:
    with (
        new_database(postgres_url) as url,
        running(tmp_path / "backoffice.sqlite") as backoffice,
        recorded_web.running([TENANT]) as web,
    ):
        seed(url, backoffice, web, now=NOW, incidents=[STALE], n_ordinary=0)
        with reading_role(url) as reading:
            assert reading is not None
            before, counters = fingerprint(url), (backoffice.counters(), web.counters())
            _holds(_corrected(Ask(store.folder, tmp_path, {"AGENTCTL_STORE": reading})))
            assert fingerprint(url) == before
            assert (backoffice.counters(), web.counters()) == counters


def _holds(corrected: Corrected) -> None:
    (run,) = corrected.document["runs"]
    assert (run["status"], run["nodes"][0], run["nodes"][1].partition("|")[0]) == ("done", "tools", "tools")
    assert _tasks(run) == ["Sub-question q1", "Check"]
    assert not {"web_search", "fetch_page"} & set(called(run))
    assert [call["served_by"] for call in run["tool_calls"] if call["name"] == "publish_report"] == ["stub"]
    answered = [(each["name"], each["how"]) for each in corrected.document["answered"]]
    assert answered == [("fetch_page", "substituted"), *[("fetch_page", "kept")] * 4]

    before, after = corrected.ask.values(STALE.thread), corrected.ask.values(corrected.thread)
    assert _findings(before)["f1"] == (
        "As of 2025-03-13: Of these, 4,810 were fast chargers of 50 kilowatts or more.",
        "uncertain",
    )
    assert _findings(after)["f1"] == (
        "As of 2026-03-12: Of these, 6,260 were fast chargers of 50 kilowatts or more.",
        "medium",
    )
    assert _findings(after)["f2"] == _findings(before)["f2"]
    assert _contents(after, "/notes/q2/") == _contents(before, "/notes/q2/")
    assert after["files"]["/notes/q2/s-c2a9423749.json"] == before["files"]["/notes/q2/s-c2a9423749.json"]
    pages = _contents(before, "/pages/")
    changed = {path for path, content in _contents(after, "/pages/").items() if content != pages[path]}
    assert [json.loads(pages[path])["url"] for path in changed] == ["https://stats.veldmark.example/charging-points"]
    assert "6,260" in _contents(after, "/pages/")[changed.pop()]


def test_a_subagents_result_is_changed_at_the_lead_and_no_subagent_but_the_critique_runs(ask: Ask) -> None:
    """Under the first prompts the report is drafted from summaries: one with its doubt back is enough."""
    patch = CERTAIN.variants[1].fork
    forked = ask("fork", f"{CERTAIN.thread}@call:task:1", *patch, *APPROVED)
    (run,) = forked["runs"]
    assert (run["status"], _tasks(run)) == ("done", ["Check"])
    before, after = ask.values(CERTAIN.thread), ask.values(f"debug::{CERTAIN.thread}.fork-1")
    assert "will open at Sundvik" in _findings(before)["f1"][0]
    assert "may open at Sundvik" in _findings(after)["f1"][0]
    assert (_findings(before)["f1"][1], _findings(after)["f1"][1]) == ("medium", "uncertain")
    assert _contents(after, "/notes/") == _contents(before, "/notes/")


def test_one_of_two_subagents_results_is_given_whole_and_the_other_is_kept(ask: Ask, tmp_path: Path) -> None:
    told = ask("show", STALE.thread, "--call", "task:1")
    summary = json.loads(told["result"]["text"])
    assert summary["sub_question"] == "q1"
    (tmp_path / "q1.json").write_text(json.dumps({**summary, "notes": [], "summary": [], "unresolved": True}))
    answer = f"task=@{tmp_path / 'q1.json'}"
    forked = ask("fork", f"{STALE.thread}@call:task:1", "--answer", answer, *APPROVED)
    (run,) = forked["runs"]
    assert (run["status"], _tasks(run)) == ("done", ["Check"])
    kept = {(each["name"], each["how"]) for each in forked["answered"]}
    assert kept == {("task", "substituted"), ("task", "kept"), ("write_todos", "kept")}
    before, after = ask.values(STALE.thread), ask.values(f"debug::{STALE.thread}.fork-1")
    [(statement, confidence)] = _findings(after).values()
    assert (statement, confidence) == _findings(before)["f2"]
    [question] = after["structured_response"]["open_questions"]
    assert question.startswith("q1: no source answers fast public charging points")
    assert _contents(after, "/notes/") == _contents(before, "/notes/")


# At the review


def test_a_waiting_report_is_approved_in_a_fork_and_published_by_the_sandbox_alone(ask: Ask) -> None:
    run = ask.run("fork", WAITING, *APPROVED)
    assert (run["status"], called(run)) == ("done", ["publish_report"])
    assert [call["served_by"] for call in run["tool_calls"]] == ["stub"]
    after = ask.values(f"debug::{WAITING}.fork-1")
    assert (after["outcome"], [(each["decision"], each["by"]) for each in after["reviews"]]) == (
        "published",
        [("approve", "rev-1")],
    )


def test_a_waiting_report_is_edited_in_a_fork_and_the_thread_shows_what_was_published(ask: Ask) -> None:
    args = _question(ask, WAITING)["action_requests"][0]["args"]
    args["report"]["title"] = "What Halden Grid builds"
    edited = {"decisions": [{"type": "edit", "edited_action": {"name": "publish_report", "args": args}}]}
    run = ask.run("fork", WAITING, "--resume", json.dumps(edited), *AS_REVIEWER)
    assert run["status"] == "done"
    assert [call["args"]["report"]["title"] for call in run["tool_calls"]] == ["What Halden Grid builds"]
    after = ask.values(f"debug::{WAITING}.fork-1")
    assert after["structured_response"]["title"] == "What Halden Grid builds"
    assert [each["decision"] for each in after["reviews"]] == ["edit"]


def test_a_published_report_is_rejected_in_a_fork_from_before_its_review(ask: Ask) -> None:
    rejected = _rejected("f1 is uncertain: say so.")
    run = ask.run("fork", f"{PUBLISHED}@interrupt", "--resume", rejected, *AS_REVIEWER)
    assert (run["status"], called(run)) == ("interrupted", [])
    assert _question(ask, f"debug::{PUBLISHED}.fork-1")["uncertain"] == ["f1"]
    run = ask.run("fork", f"{PUBLISHED}@interrupt", "--resume", rejected, *APPROVED)
    assert (run["status"], called(run)) == ("done", ["publish_report"])
    after = ask.values(f"debug::{PUBLISHED}.fork-2")
    assert [each["decision"] for each in after["reviews"]] == ["reject", "approve"]
    before = ask.values(PUBLISHED)
    assert (_findings(before)["f1"][1], _findings(after)["f1"][1]) == ("medium", "uncertain")
    assert not before["structured_response"]["summary"].startswith("Uncertain: ")
    assert after["structured_response"]["summary"].startswith("Uncertain: ")


def test_an_analyst_cannot_approve_their_own_report_in_a_fork_either(ask: Ask) -> None:
    run = ask.run("fork", WAITING, "--resume", json.dumps(APPROVE))
    assert (run["status"], called(run)) == ("interrupted", [])
    assert "may not review reports" in _question(ask, f"debug::{WAITING}.fork-1")["problem"]


def test_a_fork_after_the_review_does_not_ask_again_and_keeps_the_decision(ask: Ask) -> None:
    run = ask.run("fork", f"{PUBLISHED}@call:publish_report", "--patch", "publish_report:version=7")
    assert (run["status"], called(run)) == ("done", [])
    before, after = ask.values(PUBLISHED), ask.values(f"debug::{PUBLISHED}.fork-1")
    assert after["reviews"] == before["reviews"]
    versions = [
        json.loads(message["content"])["version"]
        for message in after["messages"]
        if message["name"] == "publish_report"
    ]
    assert versions == [7]


# Looking, copying and exporting: messages and files are delta channels


def test_every_checkpoint_reads_as_stock_langgraph_reads_it(store: SeededStore) -> None:
    with closing(open_reader(store.url)) as reader, SqliteSaver.from_conn_string(store.url) as saver:
        graph = workflow().copy(update={"checkpointer": saver})
        for thread in (PUBLISHED, WAITING):
            assert value_differences(reader, graph, thread) == []
            assert differences(reader, graph, thread) == []


def test_the_conversation_and_the_files_are_shown_as_stock_langgraph_has_them(ask: Ask, store: SeededStore) -> None:
    stock = _stock_values(store.url, PUBLISHED)
    shown = ask("show", PUBLISHED, "--messages", "--all")["items"]
    told = [(item["message"]["role"], item["message"]["id"], item["message"]["text"]) for item in shown]
    assert told == [(message.type, message.id, message.text) for message in stock["messages"]]
    assert ask("show", PUBLISHED, "--channel", "files")["value"] == inert(stock["files"])


def test_every_namespace_is_in_the_history_and_a_subagent_has_its_own_conversation(ask: Ask) -> None:
    rows = ask("history", PUBLISHED, "--all")["items"]
    subagents = sorted({row["ns"] for row in rows} - {""})
    assert {ns.partition(":")[0] for ns in subagents} == {"tools"}
    asked = {ask("show", PUBLISHED, "--ns", ns)["values"]["messages"][0]["content"].split()[0]: ns for ns in subagents}
    assert set(asked) == {"Sub-question", "Check"}
    search = ask("show", PUBLISHED, "--ns", asked["Sub-question"])["values"]
    answers = [message for message in ask.values(PUBLISHED)["messages"] if message["name"] == "task"]
    assert search["messages"][-1]["content"] == answers[0]["content"]
    assert set(search["files"]) == {path for path in ask.values(PUBLISHED)["files"] if path != "/draft.json"}
    wrote = [row for row in rows if row["ns"] == "" and "files" in row["channels"]]
    assert [row["wrote"] for row in reversed(wrote)] == [["tools", "tools"], ["tools"]]


@pytest.mark.parametrize("only", ["lineage", "point", "all"])
def test_a_copy_reads_the_same_through_stock_langgraph(ask: Ask, store: SeededStore, tmp_path: Path, only: str) -> None:
    target = str(tmp_path / "copy.sqlite")
    copied = ask("copy", PUBLISHED, "--to", target, "--as", "copied", "--only", only)
    assert copied["verified"]
    assert _stock_values(target, "copied") == _stock_values(store.url, PUBLISHED)


def _stock_values(url: str, thread: str) -> dict[str, Any]:
    with SqliteSaver.from_conn_string(url) as saver:
        graph = workflow().copy(update={"checkpointer": saver})
        return dict(graph.get_state({"configurable": {"thread_id": thread}}).values)


def test_two_reports_differ_finding_by_finding(corrected: Corrected) -> None:
    difference = corrected.ask("diff", STALE.thread, corrected.thread)
    told = {(item["name"], item["key"]): item for item in difference["view"]}
    assert [key for name, key in told if name == "findings"] == ["f1"]
    finding = {field["name"]: (field["left"], field["right"]) for field in told["findings", "f1"]["fields"]}
    assert finding == {
        "value": (
            "As of 2025-03-13: Of these, 4,810 were fast chargers of 50 kilowatts or more.",
            "As of 2026-03-12: Of these, 6,260 were fast chargers of 50 kilowatts or more.",
        ),
        "confidence": ("uncertain", "medium"),
        "flags": (["only_old", "single_source"], ["single_source"]),
    }
    assert {name for name, _ in told} == {"summary", "findings", "sources", "notes"}
    [source] = [item for (name, _), item in told.items() if name == "sources"]
    assert next((field["name"], field["left"], field["right"]) for field in source["fields"]) == (
        "published",
        "2025-03-13",
        "2026-03-12",
    )


def test_a_corrected_report_is_exported_with_its_brief_its_files_and_its_reply(
    corrected: Corrected, tmp_path: Path
) -> None:
    (run,) = corrected.document["runs"]
    exported = corrected.ask("export", corrected.thread, "--dataset", "reports", "--output", str(tmp_path), *APPROVED)
    assert (exported["n_examples"], exported["n_new"]) == (1, 1)
    example = json.loads((tmp_path / "reports" / "examples.jsonl").read_text("utf-8"))
    after = corrected.ask.values(corrected.thread)
    assert example["inputs"]["input"] == dict(STALE.case.brief)
    assert example["outputs"]["state"]["files"] == after["files"]
    assert example["outputs"]["state"]["structured_response"] == after["structured_response"]
    assert example["outputs"]["reply"] == run["reply"]
    assert "6,260 were fast chargers" in run["reply"]
    assert len(example["outputs"]["messages"]) == len(after["messages"])


# Replaying


def test_a_replay_from_checkpoints_all_along_a_published_report_calls_nobody_outside(
    store: SeededStore, tmp_path: Path
) -> None:
    """The fixture counts at back office and web when all tests are done; here nothing escaped or was missing."""
    tools = registry()
    policy = Policy(registry=tools, effects=Effects({}, (tools,)))
    with experiment_on(
        store.url, workflow(), tmp_path / "debug.sqlite", policy=policy, configurable=REVIEWER, limits=Limits()
    ) as opened:
        experiment = replace(opened, recording=record_thread(opened.source, CERTAIN.thread), answers=(APPROVE,))
        ids = sorted(read_tree(experiment.source, CERTAIN.thread, "").ids)
        planned = StepReader(experiment.source, CERTAIN.thread, "").next(ids)
        starts = [id for id in ids if planned[id]]
        reply = _stock_values(store.url, CERTAIN.thread)["messages"][-1].text
        for id in starts[::3]:
            report = replay(
                experiment, Target(CERTAIN.thread, id, "", store=experiment.source.info.url, profile="prod")
            )
            (run,) = report.group.runs
            assert (run.status, run.error) == ("done", None), id
            assert run.reply == reply, id
            assert {call.served_by for call in run.tool_calls} <= {"recorded", "state"}, id
    assert len(starts) == len(ids) - 1
