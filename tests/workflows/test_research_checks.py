"""The checks outside the model: what a report must satisfy before anyone is asked about it."""

from __future__ import annotations

from typing import Any

import pytest

from graphs.research_report.checks import Problem, check_report
from graphs.research_report.critique import Critique, Issue, open_issues
from graphs.research_report.evidence import Evidence, evidence_of
from graphs.research_report.figures import agree, contradict, figures
from graphs.research_report.notes import Note, Page, Quote, as_json, origins, read_notes, text_file
from graphs.research_report.report import Finding, Report, Source, report_sha256
from graphs.research_report.text import contains, is_hedged, normalised, sentences, without_hedges
from tests.support.research import COUNT_URL, REGISTER_URL, page

COUNTED = "Norhaven counted 120 berths with shore power in 2026."
REGISTERED = "The register shows 120 berths with shore power in 2026."


def evidence(*pages: dict[str, Any], old_after_days: int = 365) -> Evidence:
    """Pages as they were read, each noted with its first sentence for q1."""
    files = {}
    for each in pages:
        kept = Page.model_validate(each)
        files[kept.path] = text_file(as_json(kept))
        quotes = [Quote(quote=sentences(kept.text)[0], claim="c")] if kept.readable else []
        note = Note(
            source_id=kept.source_id,
            sub_question="q1",
            url=kept.url,
            title=kept.title,
            accessed_on=kept.accessed_on,
            published_on=kept.published_on,
            readable=kept.readable,
            reason=kept.reason,
            quotes=quotes,
        )
        files[note.path] = text_file(as_json(note))
    return evidence_of(files, old_after_days)


COUNT = page(COUNT_URL, COUNTED)
REGISTER = page(REGISTER_URL, REGISTERED)


def source(page: dict[str, Any], *quotes: str, **fields: Any) -> Source:
    given = {name: page[name] for name in ("url", "title", "accessed_on", "published_on")}
    return Source(id=page["source_id"], quotes=list(quotes) or [sentences(page["text"])[0]], **{**given, **fields})


def report(*sources: Source, **finding: Any) -> Report:
    fields: dict[str, Any] = {
        "id": "f1",
        "sub_question": "q1",
        "statement": f"As of 2026-05-02: {COUNTED}",
        "sources": [each.id for each in sources],
        "confidence": "uncertain",
        "flags": [],
    }
    return Report(
        title="Shore power",
        summary="Some.",
        outline=["q1: berths"],
        findings=[Finding(**{**fields, **finding})],
        sources=list(sources),
        open_questions=[],
    )


def codes(problems: list[Problem]) -> set[str]:
    return {problem.code for problem in problems}


def test_a_report_whose_quotes_are_on_its_pages_has_no_problem() -> None:
    good = report(source(COUNT), source(REGISTER), confidence="high")
    assert check_report(good, evidence(COUNT, REGISTER)) == []


def test_a_cited_id_must_be_among_the_sources() -> None:
    assert codes(check_report(report(source(COUNT), sources=["s-nowhere"]), evidence(COUNT))) == {"unknown_source"}


def test_a_finding_without_a_source_must_be_uncertain() -> None:
    assert check_report(report(sources=[]), evidence()) == []
    assert codes(check_report(report(sources=[], confidence="medium"), evidence())) == {"uncited"}


def test_a_source_that_was_never_fetched_is_cited_from_memory() -> None:
    assert codes(check_report(report(source(COUNT), flags=[]), evidence(REGISTER))) == {"not_fetched"}


def test_a_page_that_could_not_be_read_supports_nothing() -> None:
    blocked = page(COUNT_URL, "", reason="paywall: subscribers only")
    cited = source({**blocked, "title": "t", "text": COUNTED})
    assert "unreadable" in codes(check_report(report(cited), evidence(blocked)))


@pytest.mark.parametrize(
    "quote", ["Norhaven counted 121 berths with shore power in 2026.", "Norhaven has many berths."]
)
def test_a_quote_that_the_page_does_not_say_is_found_out(quote: str) -> None:
    problems = check_report(report(source(COUNT, quote), flags=["single_source"]), evidence(COUNT))
    assert codes(problems) == {"quote_not_found"}
    assert quote in problems[0].detail


def test_whitespace_quotation_marks_dashes_and_case_do_not_matter_to_a_quote() -> None:
    text = "The “register”\nshows 120 berths – with  shore power."
    assert contains(text, '"Register" shows 120 berths - with shore power.')
    assert not contains(text, "shows 12 berths")
    assert not contains(text, " \n")
    assert normalised("soft\u00adhyphen\u200b") == "softhyphen"


@pytest.mark.parametrize("field", ["url", "title", "accessed_on", "published_on"])
def test_what_a_source_says_of_its_page_must_be_what_was_fetched(field: str) -> None:
    other = {"url": "https://other.example/", "title": "Other"}.get(field, "2020-01-01")
    problems = check_report(report(source(COUNT, **{field: other}), flags=["single_source"]), evidence(COUNT))
    assert [(problem.code, field in problem.detail) for problem in problems] == [("differs_from_page", True)]


def test_an_address_must_be_http_with_a_host() -> None:
    problems = check_report(report(source(COUNT, url="https://")), evidence(COUNT))
    assert {"bad_url", "differs_from_page"} <= codes(problems)


def test_a_statement_must_say_as_of_when_it_holds() -> None:
    problems = check_report(report(source(COUNT), statement="Many berths.", flags=["single_source"]), evidence(COUNT))
    assert codes(problems) == {"no_time"}


def test_two_entries_may_not_have_one_id() -> None:
    twice = report(source(COUNT), source(COUNT), flags=["single_source"])
    assert codes(check_report(twice, evidence(COUNT))) == {"repeated_id"}


def test_a_single_source_is_flagged_and_gives_no_high_confidence() -> None:
    assert codes(check_report(report(source(COUNT), confidence="medium"), evidence(COUNT))) == {"missing_flag"}
    flagged = report(source(COUNT), confidence="high", flags=["single_source"])
    assert codes(check_report(flagged, evidence(COUNT))) == {"too_confident"}


@pytest.mark.parametrize(
    "copy",
    [
        page("https://wire.example/1", f"{COUNTED} More of it.", duplicate_of=COUNT["source_id"]),
        page("https://wire.example/1", f"{COUNTED} More of it.", duplicate_of=COUNT_URL),
        page("https://wire.example/1", COUNT["text"]),
        page("https://wire.example/1", f"{COUNTED} Reprinted with other words around it."),
    ],
    ids=["said by id", "said by address", "same text", "same sentence"],
)
def test_copies_of_one_release_count_once(copy: dict[str, Any]) -> None:
    known = evidence(COUNT, copy)
    assert known.independent([COUNT["source_id"], copy["source_id"]]) == 1
    both = report(source(COUNT), source(copy), confidence="high")
    assert codes(check_report(both, known)) == {"missing_flag", "too_confident"}


def test_the_earliest_of_several_copies_is_the_original() -> None:
    pages = [
        Page.model_validate(page(f"https://{n}.example/", "same", published_on=f"2026-05-0{n}")) for n in (3, 1, 2)
    ]
    assert set(origins(pages).values()) == {page("https://1.example/", "x")["source_id"]}


def test_copies_that_name_each_other_still_have_one_origin() -> None:
    one, two = page("https://1.example/", "a"), page("https://2.example/", "b")
    pages = [
        Page.model_validate({**one, "duplicate_of": two["source_id"]}),
        Page.model_validate({**two, "duplicate_of": one["source_id"]}),
    ]
    assert len(origins(pages)) == 2


def test_a_finding_on_old_sources_alone_is_flagged_and_uncertain() -> None:
    old = page(COUNT_URL, COUNTED, published_on="2024-01-01")
    problems = check_report(report(source(old), flags=["single_source"], confidence="medium"), evidence(old))
    assert codes(problems) == {"missing_flag", "too_confident"}
    assert check_report(report(source(old), flags=["single_source", "only_old"]), evidence(old)) == []
    undated = page(COUNT_URL, COUNTED, published_on=None)
    assert not evidence(undated).is_old(undated["source_id"])


DIFFERENT = page(
    "https://other.example/", "Inspectors found 95 berths with shore power in 2026.", published_on="2026-06-20"
)


def test_a_conflict_must_cite_both_sides() -> None:
    known = evidence(COUNT, DIFFERENT)
    problems = check_report(report(source(COUNT), flags=["single_source"]), known)
    assert [(problem.code, DIFFERENT["source_id"] in problem.detail) for problem in problems] == [
        ("hidden_conflict", True)
    ]
    both = report(source(COUNT), source(DIFFERENT), confidence="medium")
    assert codes(check_report(both, known)) == {"missing_flag", "too_confident"}
    assert check_report(report(source(COUNT), source(DIFFERENT), flags=["conflict"]), known) == []


def test_a_newer_page_supersedes_one_that_is_a_year_older() -> None:
    older = page("https://other.example/", "There were 95 berths with shore power.", published_on="2024-06-20")
    newer = page(COUNT_URL, "There are 120 berths with shore power.", published_on="2026-05-02")
    assert evidence(newer, older).contradicting("q1", {newer["source_id"]: [newer["text"]]}) == []


@pytest.mark.parametrize(
    ("left", "right", "expected"),
    [
        ("120 berths with shore power in 2026.", "95 berths with shore power in 2026.", True),
        ("120 berths with shore power in 2026.", "95 berths with shore power in 2025.", False),
        ("120 berths with shore power in 2026.", "Shore power costs 3 euros in 2026.", False),
        ("120 berths with shore power.", "The mayor opened 95 berths for yachts of guests.", False),
        ("A share of 12 per cent of ships used shore power.", "A share of 15 % of ships used shore power.", True),
        ("1,200 public chargers stand in the town.", "1200 public chargers stand in the town.", False),
    ],
)
def test_figures_contradict_on_one_subject_unit_and_year_only(left: str, right: str, expected: bool) -> None:
    assert contradict(left, right) is contradict(right, left) is expected


def test_a_sentence_without_a_year_is_of_the_year_it_was_written_in() -> None:
    left, right = "There were 95 berths with shore power.", "There were 120 berths with shore power."
    assert contradict(left, right)
    assert not contradict(left, right, years=("2025", "2026"))
    assert {figure.year for figure in figures("In 2024 and 2025 there were 3 ports.")} == {""}


def test_sentences_agree_by_a_shared_figure_on_one_subject() -> None:
    assert agree(COUNTED, REGISTERED)
    assert not agree(COUNTED, "Ships paid a price of 0.31 euros.")


def test_what_the_critique_calls_unsupported_is_never_kept_as_it_is() -> None:
    kept = report(source(COUNT), confidence="medium", flags=["single_source"])
    issue = Issue(kind="unsupported", finding="f1", statement=kept.findings[0].statement, detail="no quote says so")
    critique = Critique(issues=[issue])
    assert codes(check_report(kept, evidence(COUNT), critique)) == {"criticised"}
    marked = report(source(COUNT), flags=["single_source"])
    reworded = report(source(COUNT), statement="In 2026: fewer.", confidence="medium", flags=["single_source"])
    for fixed in (marked, reworded):
        assert check_report(fixed, evidence(COUNT), critique) == []


def test_open_issues_are_those_that_still_concern_the_report() -> None:
    kept = report(source(COUNT))
    about = {"finding": "f1", "statement": kept.findings[0].statement, "detail": "d"}
    issues = [
        Issue(kind="old_sources", **about),
        Issue(kind="unsupported", **{**about, "statement": "as it was"}),
        Issue(kind="gap", finding="q2", detail="nothing on it"),
    ]
    assert [each["kind"] for each in open_issues(Critique(issues=issues), kept)] == ["old_sources", "gap"]


def test_a_report_has_one_hash_however_it_is_written() -> None:
    one = report(source(COUNT))
    again = Report.model_validate_json(one.model_dump_json())
    assert report_sha256(one) == report_sha256(again)
    assert report_sha256(one) != report_sha256(one.model_copy(update={"title": "Other"}))


def test_files_that_are_no_notes_are_left_out() -> None:
    assert read_notes({"/notes/q1/x.json": text_file("{}"), "/draft.json": text_file("{}")}) == []


@pytest.mark.parametrize(("text", "hedged"), [("It may open in 2027.", True), ("It opened in 2026.", False)])
def test_doubt_is_seen_in_a_sentence(text: str, hedged: bool) -> None:
    assert is_hedged(text) is hedged
    assert not is_hedged(without_hedges(text))


def test_lines_that_go_on_in_lower_case_are_one_sentence() -> None:
    assert sentences("A title\nHouseholds get 30 per cent back,\nup to 12 crowns. Then more.\n| a | b |") == [
        "A title",
        "Households get 30 per cent back, up to 12 crowns.",
        "Then more.",
        "| a | b |",
    ]
