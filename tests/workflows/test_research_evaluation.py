"""The evaluation set: every trap is avoided, and the measures see a report that falls into one."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest

from graphs.research_report.evaluation import Score, load_cases, run_cases, totals
from graphs.research_report.evaluation.cases import Case
from graphs.research_report.evaluation.scoring import Usage, score, supports
from graphs.research_report.evidence import Evidence
from graphs.research_report.graph import build_graph
from graphs.research_report.models import make_models
from graphs.research_report.notes import Page
from graphs.research_report.report import Finding, Report, Source
from sandbox_tools.research import registry
from tests.support.research import COUNT_URL, page

TEXT = "Norhaven counted 120 berths with shore power in 2026."
PAGE = Page.model_validate(page(COUNT_URL, TEXT))
EVIDENCE = Evidence({PAGE.source_id: PAGE}, (), 365)


@pytest.fixture(scope="module")
def scores() -> Iterator[list[Score]]:
    yield run_cases(build_graph(registry(), model=make_models(env={})), load_cases())


def test_every_case_with_its_trap_is_good(scores: list[Score]) -> None:
    assert {each.case: (each.wrong, each.missing, each.is_good) for each in scores} == {
        case.id: ((), (), True) for case in load_cases()
    }
    assert {each.trap for each in scores} >= {"conflict", "syndication", "outdated page", "no good answer"}


def test_the_set_is_summed_up_in_rates_and_costs_per_run(scores: list[Score]) -> None:
    found = totals(scores)
    assert (found["citation_support"], found["key_facts"], found["unsupported_claims"]) == (1.0, 1.0, 0.0)
    assert (found["schema_valid"], found["good"]) == (1.0, 1.0)
    assert found["model_calls"] > 5 and found["tool_calls"] > 5
    assert found["input_tokens"] > found["output_tokens"] > 0


CASE = Case(
    "c", "none", "How many?", ("berths",), facts=("120 berths",), wrong=("95 berths",), flags=("single_source",)
)


def report(statement: str, *, quote: str = TEXT, confidence: str = "medium") -> Report:
    finding = {"id": "f1", "sub_question": "q1", "statement": statement, "sources": [PAGE.source_id]}
    source = Source(id=PAGE.source_id, url=PAGE.url, title=PAGE.title, accessed_on=PAGE.accessed_on, quotes=[quote])
    return Report(
        title="t",
        summary="s",
        outline=["q1: berths"],
        findings=[Finding.model_validate({**finding, "confidence": confidence, "flags": ["single_source"]})],
        sources=[source],
        open_questions=[],
    )


def test_a_good_report_is_good() -> None:
    assert score(CASE, report(f"As of 2026: {TEXT}"), EVIDENCE, Usage()).is_good


@pytest.mark.parametrize(
    ("statement", "quote", "n_unsupported", "n_covered", "wrong"),
    [
        ("As of 2026: there are 95 berths with shore power.", TEXT, 1, 0, ("95 berths",)),
        (f"As of 2026: {TEXT}", "Norhaven is best.", 1, 1, ()),
        ("As of 2026: berths with shore power are many in Norhaven.", TEXT, 0, 0, ()),
    ],
    ids=["another figure", "a quote that is on no page", "a fact is missing"],
)
def test_what_is_wrong_with_a_report_is_measured(
    statement: str, quote: str, n_unsupported: int, n_covered: int, wrong: tuple[str, ...]
) -> None:
    found = score(CASE, report(statement, quote=quote), EVIDENCE, Usage())
    assert (found.n_unsupported, found.n_covered, found.wrong, found.is_good) == (
        n_unsupported,
        n_covered,
        wrong,
        False,
    )


def test_doubts_that_were_not_told_are_missing() -> None:
    wanted = replace(CASE, open=("nobody counts",), flags=("conflict",), confidence="uncertain")
    found = score(wanted, report(f"As of 2026: {TEXT}"), EVIDENCE, Usage())
    assert found.missing == ("open: nobody counts", "flag: conflict", "confidence: uncertain")


def test_a_run_without_a_report_is_not_valid() -> None:
    found = score(CASE, None, EVIDENCE, Usage())
    assert (found.is_valid, found.is_good, totals([found])["schema_valid"]) == (False, False, 0.0)


def test_another_grader_may_judge_support() -> None:
    good = report(f"As of 2026: {TEXT}")
    assert supports(good.findings[0], [TEXT])
    assert score(CASE, good, EVIDENCE, Usage(), grader=lambda finding, quotes: False).n_unsupported == 1
