"""Publishing: what the reviewer is shown, what may be answered and by whom, and one publication whatever happens."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from langchain_core.messages import AIMessage, ToolMessage
from langgraph.checkpoint.memory import InMemorySaver

from agentctl.testing import ScriptedModel, Turn
from graphs.common.answers import AlreadyAnswered, AnswerClaims, answer, recover
from graphs.common.effects import NotProduction, application_database, http_client
from graphs.common.owners import NotTheOwner, caller_of
from graphs.common.services import ServiceUnavailable
from graphs.research_report.application import claim_answer
from graphs.research_report.graph import ResearchGraph
from graphs.research_report.models import make_models
from graphs.research_report.policy import CURRENT_POLICY, load_policies
from graphs.research_report.report import report_sha256
from graphs.research_report.scripts.lead import lead_script
from tests.support.research import (
    APPROVE,
    BERTHS,
    COUNT_URL,
    PRICE,
    ResearchWorld,
    analyst,
    asked,
    brief,
    called,
    edit,
    norhaven,
    offered,
    page,
    reject,
    research,
    research_world,
    resume,
    reviewer,
)
from tests.support.stores import copied


@pytest.fixture(scope="module")
def module_world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ResearchWorld]:
    with research_world(tmp_path_factory.mktemp("research")) as running:
        yield running


@pytest.fixture
def world(module_world: ResearchWorld) -> Iterator[ResearchWorld]:
    """The module's world, with the usual pages."""
    module_world.web.hold(*norhaven())
    yield module_world
    module_world.backoffice.clear_faults()


@pytest.fixture
def thread(request: pytest.FixtureRequest) -> str:
    """A thread of the test's own: all of them publish at one back office."""
    return str(request.node.name)


@pytest.fixture(scope="module")
def parked(module_world: ResearchWorld) -> InMemorySaver:
    """A thread that waits for the review of its report on berths: tests take copies of it."""
    module_world.web.hold(*norhaven())
    saver = InMemorySaver()
    research(module_world.graph(saver), analyst("parked"), brief(BERTHS))
    return saver


@pytest.fixture
def graph(world: ResearchWorld, parked: InMemorySaver, thread: str) -> ResearchGraph:
    """The workflow, with a copy of the parked thread as the test's own."""
    return world.graph(copied(parked, "parked", thread))


def args_of(question: dict[str, Any]) -> dict[str, Any]:
    return dict(question["action_requests"][0]["args"])


def outcome(graph: Any, thread: str) -> Any:
    return graph.get_state(analyst(thread)).values.get("outcome")


def test_the_reviewer_sees_report_quotes_open_issues_and_what_is_uncertain(world: ResearchWorld, thread: str) -> None:
    old = page(COUNT_URL, "Norhaven may have 120 berths with shore power.", published_on="2024-01-01")
    world.web.hold(old, norhaven()[2])
    graph = world.graph(InMemorySaver())
    research(graph, analyst(thread))
    question = asked(graph, analyst(thread))
    report = offered(graph, analyst(thread))
    assert question["review_configs"] == [
        {"action_name": "publish_report", "allowed_decisions": ["approve", "edit", "reject"]}
    ]
    assert question["report_sha256"] == report_sha256(report)
    assert question["quotes"][old["source_id"]] == ["Norhaven may have 120 berths with shore power."]
    assert [(issue["kind"], issue["finding"]) for issue in question["open_issues"]] == [("old_sources", "f1")]
    assert question["uncertain"] == ["f1"]
    assert question["problem"] == ""


def test_an_approved_report_is_published_as_the_next_version_of_its_artifact(world: ResearchWorld, thread: str) -> None:
    graph = world.graph(InMemorySaver())
    question = f"How far is shore power, asked by {thread}?"
    for version in (1, 2):
        attempt = f"{thread}.{version}"
        research(graph, analyst(attempt), brief(BERTHS, question=question))
        report = offered(graph, analyst(attempt))
        state = resume(graph, reviewer(attempt), APPROVE)
        [publication] = world.published(attempt)
        assert publication["version"] == version
        assert publication["report"] == report.model_dump(mode="json")
        assert publication["reference"] == f"{attempt}:publish_report:{report_sha256(report)}"
        assert state["structured_response"] == report
        assert outcome(graph, attempt) == "published"
    kept = [each for each in world.backoffice.records("artifacts") if each["artifact"] == publication["artifact"]]
    assert [each["version"] for each in kept] == [2, 1, 2], "the latest, and each version"
    assert publication["artifact"].startswith("how-far-is-shore-power")


def test_an_edited_report_is_published_as_edited_and_the_thread_shows_that(world: ResearchWorld, thread: str) -> None:
    graph = world.graph(InMemorySaver())
    research(graph, analyst(thread))
    args = args_of(asked(graph, analyst(thread)))
    edited = {**args, "report": {**args["report"], "title": "Shore power, edited"}}
    state = resume(graph, reviewer(thread), edit(edited))
    [publication] = world.published(thread)
    assert publication["report"]["title"] == state["structured_response"].title == "Shore power, edited"
    assert called(state["messages"], "publish_report")[-1]["args"] == edited
    [review] = graph.get_state(analyst(thread)).values["reviews"]
    assert (review["decision"], review["by"], review["report_sha256"]) == ("edit", "rev-1", publication["sha256"])


@pytest.mark.parametrize(
    ("feedback", "findings", "confidence"),
    [
        ("Please drop f2.", ["f1"], ["high"]),
        ("f1 must be uncertain.", ["f1", "f2"], ["uncertain", "medium"]),
        ("Say more on cost.", ["f1", "f2"], ["high", "medium"]),
    ],
)
def test_a_rejection_goes_on_with_the_feedback(
    world: ResearchWorld, thread: str, feedback: str, findings: list[str], confidence: list[str]
) -> None:
    graph = world.graph(InMemorySaver())
    research(graph, analyst(thread))
    resume(graph, reviewer(thread), reject(feedback))
    assert world.published(thread) == []
    report = offered(graph, analyst(thread))
    assert [finding.id for finding in report.findings] == findings
    assert [finding.confidence for finding in report.findings] == confidence
    assert (f"Reviewer: {feedback}" in report.open_questions) is (feedback == "Say more on cost.")
    resume(graph, reviewer(thread), APPROVE)
    [publication] = world.published(thread)
    assert publication["report"] == report.model_dump(mode="json")
    decisions = [review["decision"] for review in graph.get_state(analyst(thread)).values["reviews"]]
    assert decisions == ["reject", "approve"]


@pytest.mark.parametrize(
    ("value", "problem"),
    [
        ("yes", "the answer: Input should be"),
        ({"decisions": []}, "decisions: List should have at least 1 item"),
        ({"decisions": [{"type": "respond", "message": "hm"}]}, "decisions.0: Input tag 'respond'"),
        ({"decisions": [{"type": "reject"}]}, "decisions.0.reject.message: Field required"),
        ({"decisions": [{"type": "approve", "by": "rev-1"}]}, "decisions.0.approve.by: Extra inputs"),
    ],
)
def test_a_malformed_answer_is_asked_again_with_the_reason(
    world: ResearchWorld, graph: ResearchGraph, thread: str, value: object, problem: str
) -> None:
    n_calls = len(called(graph.get_state(analyst(thread)).values["messages"], "publish_report"))
    first = args_of(asked(graph, analyst(thread)))
    resume(graph, reviewer(thread), value)
    again = asked(graph, analyst(thread))
    assert problem in again["problem"]
    assert args_of(again) == first
    assert len(called(graph.get_state(analyst(thread)).values["messages"], "publish_report")) == n_calls
    resume(graph, reviewer(thread), APPROVE)
    assert len(world.published(thread)) == 1


@pytest.mark.parametrize("role", ["customer", "analyst"])
def test_who_answers_is_read_from_the_caller_and_must_be_a_reviewer(
    world: ResearchWorld, graph: ResearchGraph, thread: str, role: str
) -> None:
    resume(graph, analyst(thread, actor_role=role), APPROVE)
    assert asked(graph, analyst(thread))["problem"] == f"u-1 as {role} may not review reports"
    assert world.published(thread) == []
    resume(graph, reviewer(thread), APPROVE)
    assert [review["by"] for review in graph.get_state(analyst(thread)).values["reviews"]] == ["rev-1"]
    assert len(world.published(thread)) == 1


def test_a_reviewer_of_another_tenant_reviews_nothing(world: ResearchWorld, graph: ResearchGraph, thread: str) -> None:
    stranger = reviewer(thread, tenant="rival")
    with pytest.raises(NotTheOwner):
        answer(graph, stranger, APPROVE, claims=AnswerClaims(application_database(world.database_url)))
    resume(graph, stranger, APPROVE)
    assert asked(graph, analyst(thread))["problem"] == "rev-1 may not act for another tenant or user"
    assert world.published(thread) == []


def _with_report(change: Any) -> ScriptedModel:
    """A lead that changes the first report it offers."""

    def careless(turn: Turn) -> AIMessage:
        reply = lead_script(turn)
        if not called(list(turn.messages), "publish_report"):
            for call in called([reply], "publish_report"):
                change(call["args"]["report"])
        return reply

    return ScriptedModel(script=careless)


@pytest.mark.parametrize(
    ("change", "code"),
    [
        (lambda report: report["sources"][0]["quotes"].append("Norhaven is best."), "quote_not_found"),
        (lambda report: report["findings"][0]["sources"].append("s-invented"), "unknown_source"),
        (lambda report: report["findings"][1].update(flags=[]), "missing_flag"),
        (lambda report: report["findings"][0].update(statement=7), "schema"),
    ],
    ids=["invented quote", "invented source", "missing flag", "schema"],
)
def test_a_report_that_fails_the_checks_reaches_no_reviewer(
    world: ResearchWorld, thread: str, change: Any, code: str
) -> None:
    graph = world.graph(InMemorySaver(), model=replace(make_models(env={}), lead=_with_report(change)))
    state = research(graph, analyst(thread))
    refused = next(m for m in state["messages"] if isinstance(m, ToolMessage) and m.name == "publish_report")
    assert refused.status == "error" and code in refused.text
    assert len(called(state["messages"], "publish_report")) == 2
    assert offered(graph, analyst(thread)).findings


def test_an_edit_that_fails_the_checks_is_asked_again(world: ResearchWorld, graph: ResearchGraph, thread: str) -> None:
    args = args_of(asked(graph, analyst(thread)))
    source = {**args["report"]["sources"][0], "quotes": ["The best port of all."]}
    wrong = {**args, "report": {**args["report"], "sources": [source, *args["report"]["sources"][1:]]}}
    resume(graph, reviewer(thread), edit(wrong))
    assert "the page does not say: The best port of all." in asked(graph, analyst(thread))["problem"]
    resume(graph, reviewer(thread), edit({**args, "artifact": "somebody-elses"}))
    assert asked(graph, analyst(thread))["problem"] == "the artifact cannot be edited"
    assert world.published(thread) == []


def test_the_same_report_is_published_once_however_often_it_is_approved(world: ResearchWorld, thread: str) -> None:
    def twice(turn: Turn) -> AIMessage:
        reply = lead_script(turn)
        offers = called(list(turn.messages), "publish_report")
        if called([reply], "Report") and len(offers) < 2:
            return AIMessage("", tool_calls=[turn.call("publish_report", dict(offers[0]["args"]))])
        return reply

    graph = world.graph(InMemorySaver(), model=replace(make_models(env={}), lead=ScriptedModel(script=twice)))
    research(graph, analyst(thread), brief(BERTHS))
    resume(graph, reviewer(thread), APPROVE)
    state = resume(graph, reviewer(thread), APPROVE)
    assert len(called(state["messages"], "publish_report")) == 2
    assert len(world.published(thread)) == 1
    assert outcome(graph, thread) == "published"


def test_two_reports_in_one_message_are_refused(world: ResearchWorld, thread: str) -> None:
    def both(turn: Turn) -> AIMessage:
        reply = lead_script(turn)
        if called([reply], "publish_report") and not called(list(turn.messages), "publish_report"):
            args = dict(reply.tool_calls[0]["args"])
            return AIMessage("", tool_calls=[turn.call("publish_report", args, n) for n in (0, 1)])
        return reply

    graph = world.graph(InMemorySaver(), model=replace(make_models(env={}), lead=ScriptedModel(script=both)))
    state = research(graph, analyst(thread), brief(BERTHS))
    refused = [m for m in state["messages"] if isinstance(m, ToolMessage) and m.name == "publish_report"]
    assert [message.text for message in refused] == ["one report at a time"] * 2
    assert offered(graph, analyst(thread))


def test_a_run_that_was_rejected_too_often_ends_with_the_report_unpublished(world: ResearchWorld, thread: str) -> None:
    changed = {CURRENT_POLICY: replace(load_policies()[CURRENT_POLICY], publish_attempts=2)}
    graph = world.graph(InMemorySaver(), policies=changed)
    research(graph, analyst(thread), brief(BERTHS))
    resume(graph, reviewer(thread), reject("Not yet."))
    state = resume(graph, reviewer(thread), reject("Still not."))
    assert graph.get_state(analyst(thread)).next == ()
    assert outcome(graph, thread) == "unpublished"
    assert "may offer no further report" in state["structured_response"].open_questions[-1]
    assert world.published(thread) == []


def test_a_final_report_that_nobody_reviewed_is_checked_all_the_same(world: ResearchWorld, thread: str) -> None:
    def hasty(turn: Turn) -> AIMessage:
        reply = lead_script(turn)
        for call in called([reply], "publish_report"):
            report = dict(call["args"]["report"])
            report["findings"][0] |= {"sources": ["s-invented"], "confidence": "high"}
            return AIMessage("", tool_calls=[turn.call("Report", report)])
        return reply

    graph = world.graph(InMemorySaver(), model=replace(make_models(env={}), lead=ScriptedModel(script=hasty)))
    state = research(graph, analyst(thread), brief(BERTHS))
    [finding] = state["structured_response"].findings
    assert (finding.sources, finding.confidence) == ([], "uncertain")
    assert outcome(graph, thread) == "unpublished"


def test_what_was_published_is_the_report_whatever_the_model_says_last(world: ResearchWorld, thread: str) -> None:
    def boastful(turn: Turn) -> AIMessage:
        reply = lead_script(turn)
        for call in called([reply], "Report"):
            call["args"]["title"] = "Something else"
        return reply

    graph = world.graph(InMemorySaver(), model=replace(make_models(env={}), lead=ScriptedModel(script=boastful)))
    research(graph, analyst(thread), brief(BERTHS))
    state = resume(graph, reviewer(thread), APPROVE)
    assert state["structured_response"].title == "How far is shore power in Norhaven"


def test_of_two_reviewers_at_once_one_wins_and_the_other_is_told_who(
    world: ResearchWorld, graph: ResearchGraph, thread: str
) -> None:
    claims = AnswerClaims(application_database(world.database_url))
    [waiting] = graph.get_state(analyst(thread)).interrupts
    start = threading.Barrier(2)
    results: dict[str, Any] = {}

    def decide(actor: str) -> None:
        start.wait()
        try:
            results[actor] = answer(graph, reviewer(thread, actor=actor), APPROVE, claims=claims, asked=waiting.id)
        except AlreadyAnswered as late:
            results[actor] = late

    both = [threading.Thread(target=decide, args=(actor,)) for actor in ("rev-1", "rev-2")]
    for each in both:
        each.start()
    for each in both:
        each.join()
    [(loser, refused)] = [(actor, result) for actor, result in results.items() if isinstance(result, AlreadyAnswered)]
    assert refused.winner == ({"rev-1", "rev-2"} - {loser}).pop()
    assert len(world.published(thread)) == 1


def test_an_answer_whose_process_died_is_recovered_as_its_winner(
    world: ResearchWorld, graph: ResearchGraph, thread: str
) -> None:
    claims = AnswerClaims(application_database(world.database_url))
    [waiting] = graph.get_state(analyst(thread)).interrupts
    claims.take(thread, waiting.id, caller_of(reviewer(thread)["configurable"]), APPROVE)
    recover(graph, analyst(thread), claims=claims)
    assert [review["by"] for review in graph.get_state(analyst(thread)).values["reviews"]] == ["rev-1"]
    assert len(world.published(thread)) == 1


def test_an_answer_that_another_program_has_claimed_is_refused(
    world: ResearchWorld, graph: ResearchGraph, thread: str
) -> None:
    [waiting] = graph.get_state(analyst(thread)).interrupts
    env = {"RESEARCH_DATABASE_URL": world.database_url}
    claim_answer(thread, waiting.id, APPROVE, reviewer(thread, actor="rev-2")["configurable"], env)
    claims = AnswerClaims(application_database(world.database_url))
    with pytest.raises(AlreadyAnswered, match="rev-2"):
        answer(graph, reviewer(thread), APPROVE, claims=claims)
    assert world.published(thread) == []


def test_no_answer_at_all_is_a_bad_answer(world: ResearchWorld, graph: ResearchGraph, thread: str) -> None:
    [waiting] = graph.get_state(analyst(thread)).interrupts
    resume(graph, reviewer(thread), {waiting.id: None})
    assert "Input should be" in asked(graph, analyst(thread))["problem"]


@pytest.mark.parametrize("fault", ["error", "drop_answer"])
def test_a_publication_whose_answer_is_lost_is_looked_up_before_it_is_tried_again(
    world: ResearchWorld, graph: ResearchGraph, thread: str, fault: str
) -> None:
    world.backoffice.add_fault(fault, "POST /publications", times=1)
    resume(graph, reviewer(thread), APPROVE)
    assert len(world.published(thread)) == 1
    assert outcome(graph, thread) == "published"


def test_when_the_receiver_stays_down_the_run_stops_and_goes_on_later(
    world: ResearchWorld, graph: ResearchGraph, thread: str
) -> None:
    world.backoffice.add_fault("error", "POST /publications")
    with pytest.raises(ServiceUnavailable):
        resume(graph, reviewer(thread), APPROVE)
    assert graph.get_state(analyst(thread)).next == ("tools",)
    world.backoffice.clear_faults()
    graph.invoke(None, analyst(thread), durability="sync")
    assert len(world.published(thread)) == 1
    assert outcome(graph, thread) == "published"


def test_nothing_is_published_outside_production(world: ResearchWorld, thread: str) -> None:
    graph = world.graph(InMemorySaver(), tools=world.tools(env={}))
    research(graph, analyst(thread), brief(BERTHS))
    with pytest.raises(NotProduction):
        resume(graph, reviewer(thread), APPROVE)
    assert world.published(thread) == []


def test_a_publication_under_another_identity_is_refused_and_raises_an_alert(world: ResearchWorld, thread: str) -> None:
    with http_client(world.backoffice.url, identity="research-agent@debug") as http:
        graph = world.graph(InMemorySaver(), tools=world.tools(http=http))
        research(graph, analyst(thread), brief(PRICE))
        resume(graph, reviewer(thread), APPROVE)
    assert world.published(thread) == []
    assert [alert["identity"] for alert in world.backoffice.alerts()] == ["research-agent@debug"]
