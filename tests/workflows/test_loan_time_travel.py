"""Time travel on loan cases, by value: one parallel branch, one reading, inside the income check, another policy."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from agentctl.stores.fingerprint import fingerprint
from tests.support.asking import Ask, called
from tests.support.incidents import SeededStore, seeded_store

CASE = "prod::app-7F3K"
MISREAD = "prod::app-4D2M"
WAITING = "prod::app-9Q1T"
AS_UNDERWRITER = ("--configurable", "actor=uw-1", "--configurable", "actor_role=underwriter")
ANSWERS = "fixtures/incidents/loan/answers"

pytestmark = pytest.mark.xdist_group("loan-time-travel")


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SeededStore]:
    """Every incident; at the end nothing in production has moved, and nobody outside was called."""
    with seeded_store(tmp_path_factory.mktemp("loan"), workflow="loan_underwriting") as seeded:
        before, counters = fingerprint(seeded.url), seeded.backoffice.counters()
        yield seeded
        assert fingerprint(seeded.url) == before
        assert seeded.backoffice.counters() == counters


@pytest.fixture
def ask(store: SeededStore, tmp_path: Path) -> Ask:
    return Ask(store.folder, tmp_path)


def test_one_parallel_branch_is_forked_and_the_others_result_survives(ask: Ask) -> None:
    forked = ask("fork", f"{CASE}@call:pull_bureau", "--patch", "pull_bureau:open_defaults=0")
    (run,) = forked["runs"]
    assert run["nodes"] == ["pull_bureau", "score_risk", "finalize"]
    assert called(run) == ["pull_bureau", "write_decision_record", "book_loan"]
    assert [call["served_by"] for call in run["tool_calls"]] == ["answered", "stub", "stub"]
    before, after = ask.values(CASE), ask.values("debug::app-7F3K.fork-1")
    assert after["income_result"] == before["income_result"]
    assert before["bureau_result"]["open_defaults"] == 1
    assert after["bureau_result"] == {**before["bureau_result"], "open_defaults": 0}
    assert (after["final_decision"], after["reason_codes"]) == ("approve", ["MEETS_POLICY"])
    assert after["extractions"] == before["extractions"]


def test_one_of_three_readings_is_forked_and_the_other_two_are_not_run_again(ask: Ask) -> None:
    answer = f"read_document:ap-3150-payslip=@{ANSWERS}/payslip-one-figure.json"
    forked = ask("fork", f"{MISREAD}@before:extract_document", "--answer", answer)
    (run,) = forked["runs"]
    assert run["nodes"][:2] == ["extract_document", "merge_extraction"]
    assert run["nodes"].count("extract_document") == 1
    assert [call["id"] for call in run["tool_calls"] if call["name"] == "read_document"] == [
        "read_document:ap-3150-payslip"
    ]
    before, after = ask.values(MISREAD), ask.values("debug::app-4D2M.fork-1")
    read = {entry["document_id"]: entry for entry in after["extractions"]}
    assert [entry["document_id"] for entry in after["extractions"]] == [
        entry["document_id"] for entry in before["extractions"]
    ]
    assert read["ap-3150-payslip"]["fields"]["monthly_income"]["value"] == "4100.00"
    assert [entry for entry in after["extractions"] if entry["kind"] != "payslip"] == [
        entry for entry in before["extractions"] if entry["kind"] != "payslip"
    ]
    assert (before["route"], after["route"]) == ("review", "finalize")


def test_a_statement_is_corrected_inside_the_income_check(ask: Ask) -> None:
    statement = ask("show", CASE, "--call", "fetch_statement:ap-2207-statement-2026-08")["result"]["text"]
    assert "2026-08-27 CR 3850.00 NORDWIND LOGISTIK SALARY" in statement
    line = 'fetch_statement:lines[2]="2026-08-27 CR 10.00 SOMEBODY ELSE"'
    forked = ask("fork", f"{CASE}@call:fetch_statement:1", "--patch", line)
    (run,) = forked["runs"]
    assert run["nodes"][:4] == [
        "verify_income",
        "verify_income|fetch_statements",
        "verify_income|parse_statements",
        "verify_income|match_payroll",
    ]
    assert "pull_bureau" not in called(run)
    before, after = ask.values(CASE), ask.values("debug::app-7F3K.fork-1")
    assert after["bureau_result"] == before["bureau_result"]
    assert (before["income_result"]["status"], before["income_result"]["monthly"]) == ("verified", "3850.00")
    assert (after["income_result"]["status"], after["income_result"]["monthly"]) == ("mismatch", "0.00")


def test_a_case_is_scored_again_under_another_policy_as_a_deliberate_fork(ask: Ask) -> None:
    forked = ask("fork", f"{MISREAD}@before:score_risk", "--set", 'policy_version="2026-04"')
    (run,) = forked["runs"]
    assert run["nodes"][0] == "score_risk"
    before, after = ask.values(MISREAD), ask.values("debug::app-4D2M.fork-1")
    assert (before["policy_version"], after["policy_version"]) == ("2026-10", "2026-04")
    assert after["bureau_result"] == before["bureau_result"]


def test_a_decision_is_forked_before_and_after_the_question_to_the_underwriter(ask: Ask) -> None:
    value = '{"decision": "approve", "reason_code": "DOCUMENTS_EXPLAINED"}'
    before = ask("fork", f"{WAITING}@before:review", "--resume", value, *AS_UNDERWRITER)
    (run,) = before["runs"]
    assert (run["status"], run["nodes"]) == ("done", ["review", "finalize"])
    approved = ask.values("debug::app-9Q1T.fork-1")
    assert (approved["final_decision"], approved["review"]["reviewer_id"]) == ("approve", "uw-1")
    changed = ("--set", 'review.decision="approve"', "--set", 'review.reason_code="DOCUMENTS_EXPLAINED"')
    after = ask("fork", f"{MISREAD}@before:finalize", *changed)
    (run,) = after["runs"]
    assert (run["status"], run["nodes"]) == ("done", ["finalize"])
    assert called(run) == ["write_decision_record", "book_loan"]


def test_an_answer_of_somebody_else_is_asked_again_in_a_fork_too(ask: Ask) -> None:
    value = '{"decision": "approve", "reason_code": "DOCUMENTS_EXPLAINED"}'
    as_stranger = ("--configurable", "actor=uw-7", "--configurable", "actor_role=underwriter")
    (run,) = ask("fork", WAITING, "--resume", value, *as_stranger)["runs"]
    assert run["status"] == "interrupted"
    assert "uw-7" in ask.values("debug::app-9Q1T.fork-1")["review_problem"]


def test_a_replay_from_every_checkpoint_of_a_case_calls_nobody_outside(ask: Ask) -> None:
    """The fixture counts at the back office when all tests are done; here nothing escaped or was missing."""
    rows = ask("history", MISREAD, "--all")["items"]
    assert {row["ns"].partition(":")[0] for row in rows} == {"", "verify_income"}
    resume = ("--resume", '{"decision": "decline", "reason_code": "UNEXPLAINED_CONFLICT"}', *AS_UNDERWRITER)
    replayed = 0
    for row in rows:
        if not row["next"]:
            continue
        ns = ("--ns", row["ns"]) if row["ns"] else ()
        document = ask("replay", f"{MISREAD}@{row['id']}", *ns, *resume)
        effects = document["side_effects"]
        assert (effects["escaped"], effects["blocked"], effects["live"]) == (0, 0, 0), row
        assert [run["status"] for run in document["runs"]] == ["done"], row
        replayed += 1
    assert replayed >= 14


def test_two_decisions_differ_in_the_words_of_underwriting(ask: Ask) -> None:
    ask("fork", f"{CASE}@call:pull_bureau", "--patch", "pull_bureau:open_defaults=0")
    difference = ask("diff", CASE, "debug::app-7F3K.fork-1")
    told = {item["name"]: (item["fields"][0]["left"], item["fields"][0]["right"]) for item in difference["view"]}
    assert told["decision"] == ("decline", "approve")
    assert told["open defaults"] == (1, 0)
    assert "score" not in told
