"""The lending policy: versioned files with every threshold, checked when they are read."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict

from graphs.common.versions import read_policies

CURRENT_POLICY = "2026-10"
_FOLDER = Path(__file__).parent

IncomeStatus = Literal["verified", "mismatch", "unverified"]


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class ExtractionRules(_Part):
    """When what was read from documents is believed.

    Attributes:
        accept_confidence: From here on a value is taken as it is.
        reject_confidence: Below this it is no value; between the two it is one that is flagged.
        income_tolerance: By what share of the lower one two documents may differ on the income.
    """

    accept_confidence: float
    reject_confidence: float
    income_tolerance: Decimal


class IncomeRules(_Part):
    """How income is verified: how many monthly statements, and how far they may be below what was declared."""

    n_statements: int
    tolerance: Decimal


class BureauRules(_Part):
    """How old a bureau file may be when a decision is final, how often it may be asked for, what counts as thin."""

    max_age_days: int
    max_pulls: int
    thin_below_accounts: int


class LoanRules(_Part):
    """What the loans are: flat yearly rate, and the highest amount."""

    yearly_rate: Decimal
    max_amount: Decimal


class Band(_Part):
    """Points up to a share of debt to income, and the reason that goes with them."""

    up_to: Decimal
    points: int
    reason: str = ""


class ScoreRules(_Part):
    """Points. The last band also holds above itself."""

    thin_file_start: int
    debt_to_income: tuple[Band, ...]
    income: Mapping[IncomeStatus, int]


class HardStops(_Part):
    """What always declines."""

    min_age_years: int
    max_open_defaults: int
    min_monthly_income: Decimal
    max_debt_to_income: Decimal


class Bands(_Part):
    """From which score on an application is accepted, and below which it is declined."""

    approve_from: int
    decline_below: int


class ReviewRules(_Part):
    """Who reviews: the highest amount by role, the amount above which two people decide, and in how many hours."""

    due_hours: int
    roles: Mapping[str, Decimal]
    second_above: Decimal

    def limit(self, role: str) -> Decimal | None:
        """Returns the highest amount that a role may decide on, None for a role that may not review."""
        return self.roles.get(role)


class Policy(_Part):
    """One version of the policy, `YYYY-MM`, with the text of every reason code."""

    version: str
    valid_from: date
    extraction: ExtractionRules
    income: IncomeRules
    bureau: BureauRules
    loan: LoanRules
    score: ScoreRules
    hard_stops: HardStops
    bands: Bands
    review: ReviewRules
    reasons: Mapping[str, str]


def load_policies(folder: Path = _FOLDER) -> dict[str, Policy]:
    """Reads every version of the policy, by version.

    Raises:
        pydantic.ValidationError: a file lacks a threshold, or holds an unknown one.
    """
    return read_policies(folder, Policy.model_validate)
