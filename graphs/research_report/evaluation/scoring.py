"""What a report is measured by: citations that support, facts covered, unsupported claims, doubts told, the cost."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from graphs.research_report.evaluation.cases import Case
from graphs.research_report.evidence import Evidence
from graphs.research_report.figures import figures
from graphs.research_report.report import Finding, Report
from graphs.research_report.text import contains, normalised, words

_SUPPORT = 0.5

Grader = Callable[[Finding, Sequence[str]], bool]


@dataclass(frozen=True, slots=True)
class Usage:
    """What a run cost: calls of models, of tools, and tokens."""

    n_model_calls: int = 0
    n_tool_calls: int = 0
    input_tokens: int = 0
    output_tokens: int = 0


@dataclass(frozen=True, slots=True)
class Score:
    """One case's score.

    Attributes:
        case: Its id.
        trap: What makes it hard.
        is_valid: Whether there was a report that fits the schema.
        n_findings: Findings.
        n_supported: Findings that are not certain, or whose quotes are on their pages and say what they state.
        n_facts: Facts that were asked for.
        n_covered: Facts that the findings hold.
        wrong: Words that they hold and must not.
        missing: Doubts that the report should have told: open questions, flags, confidence.
        usage: What it cost.
    """

    case: str
    trap: str
    is_valid: bool
    n_findings: int = 0
    n_supported: int = 0
    n_facts: int = 0
    n_covered: int = 0
    wrong: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()
    usage: Usage = field(default_factory=Usage)

    @property
    def n_unsupported(self) -> int:
        """Claims that their quotes do not support."""
        return self.n_findings - self.n_supported

    @property
    def is_good(self) -> bool:
        """Whether the trap was avoided and nothing is missing."""
        complete = self.n_covered == self.n_facts and not self.wrong and not self.missing
        return self.is_valid and complete and not self.n_unsupported


def supports(finding: Finding, quotes: Sequence[str]) -> bool:
    """Grades by rule: the quotes have every figure of the statement and half of its words.

    A model may grade in its place; people should look at some of its grades.
    """
    told = {(each.value, each.unit) for quote in quotes for each in figures(quote)}
    claimed = {(each.value, each.unit) for each in figures(finding.statement)}
    mine, theirs = words(finding.statement), {word for quote in quotes for word in words(quote)}
    return claimed <= told and bool(mine) and len(mine & theirs) / len(mine) >= _SUPPORT


def score(case: Case, report: Report | None, evidence: Evidence, usage: Usage, *, grader: Grader = supports) -> Score:
    """Scores one run.

    Args:
        case: What was asked.
        report: What came of it, None where that was no report.
        evidence: What was read.
        usage: What it cost.
        grader: Tells whether quotes support a finding.
    """
    if report is None:
        return Score(case.id, case.trap, is_valid=False, n_facts=len(case.facts), usage=usage)
    told = normalised(" ".join(finding.statement for finding in report.findings))
    return Score(
        case=case.id,
        trap=case.trap,
        is_valid=True,
        n_findings=len(report.findings),
        n_supported=sum(_is_supported(finding, report, evidence, grader) for finding in report.findings),
        n_facts=len(case.facts),
        n_covered=sum(contains(told, fact) for fact in case.facts),
        wrong=tuple(word for word in case.wrong if contains(told, word)),
        missing=tuple(_missing(case, report)),
        usage=usage,
    )


def totals(scores: Sequence[Score]) -> dict[str, float]:
    """Sums scores up: rates are fractions, costs are per run."""
    n_findings, n_facts = sum(each.n_findings for each in scores), sum(each.n_facts for each in scores)
    n = len(scores) or 1
    return {
        "citation_support": sum(each.n_supported for each in scores) / n_findings if n_findings else 1.0,
        "key_facts": sum(each.n_covered for each in scores) / n_facts if n_facts else 1.0,
        "unsupported_claims": float(sum(each.n_unsupported for each in scores)),
        "schema_valid": sum(each.is_valid for each in scores) / n,
        "good": sum(each.is_good for each in scores) / n,
        "model_calls": sum(each.usage.n_model_calls for each in scores) / n,
        "tool_calls": sum(each.usage.n_tool_calls for each in scores) / n,
        "input_tokens": sum(each.usage.input_tokens for each in scores) / n,
        "output_tokens": sum(each.usage.output_tokens for each in scores) / n,
    }


def _is_supported(finding: Finding, report: Report, evidence: Evidence, grader: Grader) -> bool:
    sources = [source for source in report.sources if source.id in finding.sources]
    quotes = [
        quote
        for source in sources
        for quote in source.quotes
        if source.id in evidence.pages and contains(evidence.pages[source.id].text, quote)
    ]
    return grader(finding, quotes) if quotes else finding.confidence == "uncertain"


def _missing(case: Case, report: Report) -> list[str]:
    flags = {flag for finding in report.findings for flag in finding.flags}
    questions = " ".join(report.open_questions)
    return [
        *(f"open: {words}" for words in case.open if not contains(questions, words)),
        *(f"flag: {flag}" for flag in case.flags if flag not in flags),
        *(
            f"confidence: {case.confidence}"
            for finding in report.findings
            if case.confidence and finding.confidence != case.confidence
        ),
    ]
