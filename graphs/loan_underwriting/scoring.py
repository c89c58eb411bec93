"""The risk score: deterministic, from the policy alone. No model has a part in it. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from typing import Final, Literal

from graphs.loan_underwriting.policy import Band, Policy
from graphs.loan_underwriting.state import Application, BureauResult, IncomeResult

Indicated = Literal["approve", "decline", ""]
Route = Literal["finalize", "review"]

_FLAG_REASONS: Final[Mapping[str, str]] = {
    "conflict": "DOCUMENTS_CONFLICT",
    "low_confidence": "DOCUMENTS_UNCLEAR",
    "inconsistent": "DOCUMENT_INCONSISTENT",
}
_INCOME_REASONS: Final[Mapping[str, str]] = {"mismatch": "INCOME_MISMATCH", "unverified": "INCOME_UNVERIFIED"}


@dataclass(frozen=True, slots=True)
class Facts:
    """What is scored.

    Attributes:
        application: What is applied for.
        birth_date: The applicant's.
        declared_income: By month, as the documents state it.
        flags: Doubts about documents, `kind:subject`.
        bureau: The bureau's answer.
        income: What the statements show.
        on: The day of scoring.
    """

    application: Application
    birth_date: date
    declared_income: Decimal
    flags: Sequence[str]
    bureau: BureauResult
    income: IncomeResult
    on: date


@dataclass(frozen=True, slots=True)
class Risk:
    """The outcome.

    Attributes:
        score: Points.
        reason_codes: Why, in the policy's words; never empty.
        hard_stops: Rules that decline whatever the score.
        indicated: What score and hard stops say by themselves; '' for a borderline score.
        route: Whether a person decides.
    """

    score: int
    reason_codes: tuple[str, ...]
    hard_stops: tuple[str, ...]
    indicated: Indicated
    route: Route


def score(facts: Facts, policy: Policy) -> Risk:
    """Scores a case.

    A hard stop declines. A borderline score, an income that the statements do not bear out, a thin file or a doubt
    about a document goes to a person; anything else is decided by the score.
    """
    debt_to_income = _debt_to_income(facts, policy)
    band = _band(debt_to_income, policy)
    is_thin = not facts.bureau["found"] or facts.bureau["n_accounts"] < policy.bureau.thin_below_accounts
    start = facts.bureau["score"] if facts.bureau["found"] else policy.score.thin_file_start
    points = start + band.points + policy.score.income[facts.income["status"]]
    stops = _hard_stops(facts, debt_to_income, policy)
    indicated = "decline" if stops else _indicated(points, policy)
    doubts = _doubts(facts, is_thin)
    route: Route = "finalize" if stops or (indicated and not doubts) else "review"
    codes = [*stops, *doubts, *([band.reason] if band.reason else []), *_score_reasons(points, indicated, policy)]
    return Risk(points, tuple(codes) or ("MEETS_POLICY",), tuple(stops), indicated, route)


def instalment(application: Application, policy: Policy) -> Decimal:
    """Returns the monthly instalment of a loan at the policy's flat rate."""
    months = Decimal(application["term_months"])
    total = Decimal(application["amount"]) * (1 + policy.loan.yearly_rate * months / 12)
    return total / months


def _debt_to_income(facts: Facts, policy: Policy) -> Decimal:
    """Returns obligations and the new instalment as a share of income: the lower of declared and verified."""
    verified = Decimal(facts.income["monthly"])
    income = min(facts.declared_income, verified) if facts.income["status"] == "verified" else facts.declared_income
    return (Decimal(facts.bureau["monthly_obligations"]) + instalment(facts.application, policy)) / income


def _band(debt_to_income: Decimal, policy: Policy) -> Band:
    bands = policy.score.debt_to_income
    return next((band for band in bands if debt_to_income <= band.up_to), bands[-1])


def _hard_stops(facts: Facts, debt_to_income: Decimal, policy: Policy) -> list[str]:
    rules = policy.hard_stops
    stops = {
        "UNDER_AGE": _years(facts.birth_date, facts.on) < rules.min_age_years,
        "OPEN_DEFAULT": facts.bureau["open_defaults"] > rules.max_open_defaults,
        "INCOME_TOO_LOW": facts.declared_income < rules.min_monthly_income,
        "DEBT_TO_INCOME_LIMIT": debt_to_income > rules.max_debt_to_income,
        "AMOUNT_ABOVE_LIMIT": Decimal(facts.application["amount"]) > policy.loan.max_amount,
    }
    return [code for code, holds in stops.items() if holds]


def _doubts(facts: Facts, is_thin: bool) -> list[str]:
    """Returns why a person has to look, each reason once."""
    found = [_FLAG_REASONS[flag.partition(":")[0]] for flag in facts.flags]
    found += [_INCOME_REASONS[facts.income["status"]]] if facts.income["status"] in _INCOME_REASONS else []
    return list(dict.fromkeys([*found, *(["THIN_FILE"] if is_thin else [])]))


def _indicated(points: int, policy: Policy) -> Indicated:
    if points >= policy.bands.approve_from:
        return "approve"
    return "decline" if points < policy.bands.decline_below else ""


def _score_reasons(points: int, indicated: Indicated, policy: Policy) -> list[str]:
    if points >= policy.bands.approve_from:
        return []
    return ["SCORE_LOW"] if points < policy.bands.decline_below else ["SCORE_BORDERLINE"]


def _years(born: date, on: date) -> int:
    return on.year - born.year - ((on.month, on.day) < (born.month, born.day))
