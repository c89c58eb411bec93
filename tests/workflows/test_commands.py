"""`agentctl run` and `resume` on the four workflows: on sandbox tools into a debug store, and on real ones."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest
import yaml
from langgraph.store.sqlite import SqliteStore

from agentctl.stores.open import open_reader, open_writer
from agentctl.testing import CliResult, run_cli
from fixtures.backoffice.support import IDENTITY
from fixtures.incidents.support.files import order_record
from graphs.common.answers import AnswerClaims
from graphs.common.effects import application_database
from graphs.common.owners import caller_of
from tests.support.backoffice import TODAY, SupportWorld, support_world

ROOT = Path(__file__).resolve().parents[2]
NAMES = {
    "support": "support_refunds",
    "loan": "loan_underwriting",
    "travel": "travel_booking",
    "research": "research_report",
}
REAL = ("--tools", "production", "--configurable", f"today={TODAY}", "--json")
OWNER = ("--configurable", "user_id=u-1", "--configurable", "tenant=acme")


@dataclass(frozen=True)
class Desk:
    """A project folder with the four workflows; every command runs in it."""

    folder: Path

    def __call__(self, *words: str, **environ: str) -> CliResult:
        with patch.dict(os.environ, environ):
            return run_cli(*words, cwd=self.folder)

    def run(self, workflow: str, thread: str, value: object, *words: str) -> Any:
        """Starts a thread on sandbox tools, and returns the document."""
        done = self("run", workflow, "--thread", thread, "--input", json.dumps(value), *OWNER, *words, "--json")
        assert done.code == 0, done.out
        return done.json

    def resume(self, thread: str, value: object, *words: str) -> Any:
        """Answers the one question of a thread, and returns the document."""
        done = self("resume", f"debug::{thread}", "--value", json.dumps(value), *words, "--json")
        assert done.code == 0, done.out
        return done.json


@pytest.fixture
def desk(tmp_path: Path, request: pytest.FixtureRequest) -> Desk:
    """The project; its debug store is in Postgres where a test says so."""
    wants_postgres = getattr(request, "param", "sqlite") == "postgres"
    debug = request.getfixturevalue("fresh_postgres_url") if wants_postgres else "debug.sqlite"
    config = {
        "profiles": {"live": {"store": "live.sqlite", "access": "write"}},
        "debug_store": debug,
        "workflows": {
            name: {
                "graph": f"{ROOT}/graphs/{name}/graph.py:build_graph",
                "sandbox": f"{ROOT}/sandbox_tools/{short}.py:registry",
                "production": f"{ROOT}/graphs/{name}/tools.py:registry_from_environment",
            }
            for short, name in NAMES.items()
        },
    }
    config["workflows"]["support_refunds"]["claims"] = f"{ROOT}/graphs/support_refunds/application.py:claim_answer"
    (tmp_path / "agentctl.yaml").write_text(yaml.safe_dump(config), "utf-8")
    return Desk(tmp_path)


def stub(**answers: object) -> tuple[str, ...]:
    return tuple(word for name, value in answers.items() for word in ("--stub", f"{name}={json.dumps(value)}"))


def as_caller(actor: str, role: str) -> tuple[str, ...]:
    return ("--configurable", f"actor={actor}", "--configurable", f"actor_role={role}")


def question(document: Mapping[str, Any]) -> Any:
    (asked,) = document["interrupts"]
    return asked["value"]


def progress(document: Mapping[str, Any]) -> list[tuple[str, Any]]:
    return [(event["node"], event["data"].get("progress")) for event in document["events"] if event["mode"] == "custom"]


def lost_order(total: str) -> dict[str, Any]:
    entry = {"order_id": "A100", "status": "lost", "total": total, "shipping": "5.00", "ordered_days_ago": 20}
    return order_record(entry, TODAY)


def test_support_asks_before_it_refunds_and_refunds_when_it_is_approved(desk: Desk) -> None:
    said = {"messages": [["user", "Order A100 is lost, refund me."]]}
    order = stub(lookup_order=lost_order("900.00"))
    asked = desk.run("support_refunds", "s-1", said, *order, "--configurable", f"today={TODAY}")
    assert question(asked)["kind"] == "approve_refund"
    done = desk.resume("s-1", {"decision": "approve"}, *order, *as_caller("lead-3", "refund_approver"))
    assert done["status"] == "done" and "is on its way" in done["reply"]
    assert [call["served_by"] for call in done["tool_calls"] if call["name"] == "issue_refund"] == ["stub"]


@pytest.mark.parametrize("desk", ["postgres"], indirect=True)
def test_a_loan_is_asked_about_in_its_graph_and_its_subgraph_and_goes_on_after_a_failure(desk: Desk) -> None:
    entries = {"Employer": "Nordwind", "Employer number": "E1001", "Employee": "Jana Roth", "Net pay": "4,200.00 EUR"}
    read = [{"label": label, "value": value} for label, value in entries.items()]
    document = {"document_id": "doc-1", "kind": "payslip", "entries": read}
    application = {
        "applicant_id": "ap-1",
        "amount": "12000.00",
        "currency": "EUR",
        "term_months": 36,
        "segment": "retail",
    }
    case = {"application": application, "documents": [{"document_id": "doc-1", "kind": "payslip"}]}
    asked = desk.run("loan_underwriting", "app-1", case, *stub(read_document=document))
    assert question(asked)["kind"] == "request_documents"
    operations = as_caller("ops-1", "operations")
    fields = {"fields": {"birth_date": "1989-03-14", "id_last4": "4821"}}
    asked = desk.resume("app-1", fields, *operations, "--stream", "custom")
    assert question(asked)["kind"] == "request_statements", question(asked)
    assert ("verify_income|fetch_statements", "0 statements fetched") in progress(asked)
    employer = {"employer_id": "E1001", "name": "Nordwind"}
    answered = ("resume", "debug::app-1", "--value", '{"unavailable": true}', *operations, "--json")
    failed = desk(*answered, *stub(lookup_employer=employer))
    assert (failed.code, failed.json["status"], failed.json["interrupts"]) == (6, "error", [])
    whole = stub(lookup_employer={**employer, "payroll_names": ["NORDWIND"]})
    goes_on = desk("run", "loan_underwriting", "--thread", "app-1", *whole, "--json").json
    assert question(goes_on)["kind"] == "review"
    decision = {"decision": "decline", "reason_code": "UNEXPLAINED_CONFLICT"}
    again = desk.resume("app-1", decision)
    assert "may not review" in question(again)["problem"], "who asked for statements does not answer by themselves"
    done = desk.resume("app-1", decision, *as_caller("underwriter-sandbox", "underwriter"))
    assert (done["status"], done["side_effects"]["escaped"]) == ("done", 0)


def test_a_trip_is_quoted_and_booked_when_the_quote_is_approved(desk: Desk) -> None:
    days = {"depart_on": "2026-12-10", "return_on": "2026-12-13"}
    times = {"departs_at": "09:00", "arrives_on": "2026-12-10", "arrives_at": "14:00", "stops": 0}
    route = {"airline": "aurora", "origin": "Lisbon", "destination": "Oslo", "currency": "EUR"}
    nights = {"city": "Oslo", "check_in": "2026-12-10", "check_out": "2026-12-13", "currency": "EUR"}
    room = {"offer_id": "grand", "hotel": "Grand", "stars": 4, "area": "Centre", "chain": "", "total": "300.00"}
    stubs = stub(
        search_flights={**route, **days, "offers": [{"offer_id": "au-1", "total": "200.00", **times}]},
        search_hotels={**nights, "offers": [{**room, "description": "A quiet house."}]},
    )
    said = {"messages": [["user", "A trip from Lisbon to Oslo, leaving 2026-12-10, back 2026-12-13."]]}
    more = ("--configurable", "payment_method=pm_visa", "--configurable", "today=2026-11-30", "--stream", "custom")
    asked = desk.run("travel_booking", "tr-1", said, *stubs, *more)
    quote = question(asked)
    assert (quote["total"], {call["served_by"] for call in asked["tool_calls"]}) == ("500.00", {"stub"})
    assert ("hold_fare", "fare held") in progress(asked)
    wrong = desk.resume("tr-1", {"approved": True, "quote_version": 1})
    assert "is not the present one" in question(wrong)["problem"]
    done = desk.resume("tr-1", {"approved": True, "quote_version": quote["quote_version"]})
    assert done["status"] == "done" and done["reply"].startswith("Your trip is booked.")


def test_research_streams_its_subagents_and_publishes_when_it_is_approved(desk: Desk) -> None:
    asked = desk.run(
        "research_report",
        "rs-1",
        {"question": "What did the 2026 census find?"},
        "--stream",
        "messages",
        "--stream",
        "updates",
    )
    assert question(asked)["action_requests"][0]["name"] == "publish_report"
    inner = {event["node"] for event in asked["events"] if event["ns"].startswith("tools:")}
    assert {"tools|model", "tools|tools"} <= inner
    refused = desk.resume("rs-1", {"decisions": [{"type": "approve"}]})
    assert "may not review" in question(refused)["problem"]


def production(world: SupportWorld) -> dict[str, str]:
    return {
        "AGENTCTL_ENV": "production",
        "SUPPORT_BACKOFFICE_URL": world.backoffice.url,
        "SUPPORT_SERVICE_IDENTITY": IDENTITY,
        "SUPPORT_DATABASE_URL": world.database_url,
    }


@pytest.fixture
def world(tmp_path: Path) -> Any:
    with support_world(tmp_path) as made:
        yield made


def test_a_refund_in_production_is_paid_once_by_whoever_answers_first(desk: Desk, world: SupportWorld) -> None:
    world.put_order("A100", "lost", "900.00")
    open_writer(str(desk.folder / "live.sqlite")).setup()
    with SqliteStore.from_conn_string(str(desk.folder / "live.sqlite")) as store:
        store.setup()
    environ = production(world)
    said = json.dumps({"messages": [["user", "Order A100 is lost, refund me. Please remember: e-mail me in German."]]})
    asked = desk("run", "support_refunds", "--thread", "live::s-1", "--input", said, *OWNER, *REAL, **environ)
    assert question(asked.json)["kind"] == "approve_refund", asked.out
    approve = ("resume", "live::s-1", "--value", '{"decision": "approve"}', *REAL)
    done = desk(*approve, *as_caller("lead-3", "refund_approver"), **environ)
    assert (done.code, done.json["status"]) == (0, "done"), done.out
    assert "live" in {call["served_by"] for call in done.json["tool_calls"]}
    assert len(world.backoffice.effects("refund")) == 1
    assert world.backoffice.effects("refund")[0]["amount"] == question(asked.json)["amount"]
    assert desk(*approve, *as_caller("lead-4", "refund_approver"), **environ).code == 5
    case = desk("case", "show", done.json["case"], "--json").json
    assert (case["n_runs"], case["threads"]) == (2, [])
    assert "agentctl_case" not in open_reader(str(desk.folder / "live.sqlite")).rows("s-1")[0].metadata


def test_an_answer_that_the_application_has_taken_already_is_refused(desk: Desk, world: SupportWorld) -> None:
    world.put_order("A100", "lost", "900.00")
    open_writer(str(desk.folder / "live.sqlite")).setup()
    environ = production(world)
    said = json.dumps({"messages": [["user", "Order A100 is lost, refund me."]]})
    asked = desk("run", "support_refunds", "--thread", "live::s-2", "--input", said, *OWNER, *REAL, **environ).json
    first = caller_of({"user_id": "u-1", "tenant": "acme", "actor": "lead-3", "actor_role": "refund_approver"})
    claims = AnswerClaims(application_database(world.database_url))
    claims.take("s-2", asked["interrupts"][0]["id"], first, {"decision": "reject", "reason": "no"})
    approve = ("resume", "live::s-2", "--value", '{"decision": "approve"}', *REAL)
    refused = desk(*approve, *as_caller("lead-4", "refund_approver"), **environ)
    assert refused.code == 5
    assert "AlreadyAnswered: s-2 was answered by lead-3" in refused.json["error"]["message"]
    assert world.backoffice.effects("refund") == []
