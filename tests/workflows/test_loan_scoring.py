"""The score: deterministic, from a versioned policy; hard stops decline, doubts go to a person."""

from __future__ import annotations

from dataclasses import replace
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from graphs.common.versions import UnknownPolicy, policy_of
from graphs.loan_underwriting import scoring
from graphs.loan_underwriting.policy import CURRENT_POLICY, load_policies
from graphs.loan_underwriting.scoring import Facts
from graphs.loan_underwriting.state import Application, BureauResult, IncomeResult

POLICIES = load_policies()
GOOD = Facts(
    application=Application(applicant_id="ap-1", amount="12000.00", currency="EUR", term_months=48, segment="consumer"),
    birth_date=date(1989, 3, 14),
    declared_income=Decimal("4200.00"),
    flags=(),
    bureau=BureauResult(
        version=1,
        reference="in_1",
        found=True,
        score=680,
        open_defaults=0,
        n_accounts=5,
        monthly_obligations="350.00",
        as_of="2026-11-30",
    ),
    income=IncomeResult(status="verified", monthly="4200.00", n_months=3, reference="s1", employer_from="register"),
    on=date(2026, 11, 30),
)


def _facts(**changes: Any) -> Facts:
    """Good facts, but for these; `bureau`, `income` and `application` are changed by field."""
    nested = {
        name: {**getattr(GOOD, name), **changes.pop(name)}
        for name in ("bureau", "income", "application")
        if name in changes
    }
    return replace(GOOD, **nested, **changes)


def _scored(version: str = "2026-10", **changes: Any) -> scoring.Risk:
    return scoring.score(_facts(**changes), POLICIES[version])


def test_a_good_application_is_approved_by_the_score_alone() -> None:
    risk = _scored()
    assert (risk.indicated, risk.route, risk.reason_codes, risk.hard_stops) == (
        "approve",
        "finalize",
        ("MEETS_POLICY",),
        (),
    )
    assert risk.score == 680 + 40 + 30


@pytest.mark.parametrize(
    ("changes", "stop"),
    [
        ({"birth_date": date(2008, 12, 1)}, "UNDER_AGE"),
        ({"bureau": {"open_defaults": 1}}, "OPEN_DEFAULT"),
        ({"declared_income": Decimal("999.99"), "income": {"status": "unverified"}}, "INCOME_TOO_LOW"),
        ({"bureau": {"monthly_obligations": "1900.00"}}, "DEBT_TO_INCOME_LIMIT"),
        ({"application": {"amount": "100000.01", "term_months": 360}}, "AMOUNT_ABOVE_LIMIT"),
    ],
)
def test_a_hard_stop_declines_whatever_the_score_and_whatever_is_doubtful(changes: dict[str, Any], stop: str) -> None:
    risk = _scored(**changes, flags=("conflict:full_name",))
    assert (risk.indicated, risk.route) == ("decline", "finalize")
    assert stop in risk.hard_stops
    assert risk.reason_codes[0] in risk.hard_stops


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"flags": ("conflict:monthly_income",)}, "DOCUMENTS_CONFLICT"),
        ({"flags": ("low_confidence:full_name",)}, "DOCUMENTS_UNCLEAR"),
        ({"flags": ("inconsistent:doc-1",)}, "DOCUMENT_INCONSISTENT"),
        ({"income": {"status": "mismatch"}}, "INCOME_MISMATCH"),
        ({"income": {"status": "unverified"}}, "INCOME_UNVERIFIED"),
        ({"bureau": {"n_accounts": 1}}, "THIN_FILE"),
        ({"bureau": {"found": False, "score": 0}}, "THIN_FILE"),
        ({"bureau": {"score": 530}}, "SCORE_BORDERLINE"),
    ],
)
def test_a_doubt_or_a_borderline_score_goes_to_a_person(changes: dict[str, Any], reason: str) -> None:
    risk = _scored(**changes)
    assert risk.route == "review"
    assert reason in risk.reason_codes
    assert risk.hard_stops == ()


def test_a_low_score_without_doubts_is_declined() -> None:
    risk = _scored(bureau={"score": 460})
    assert (risk.indicated, risk.route, risk.reason_codes) == ("decline", "finalize", ("SCORE_LOW",))


@pytest.mark.parametrize(("score", "indicated"), [(569, ""), (570, "approve"), (470, ""), (469, "decline")])
def test_the_bands_begin_where_the_policy_says(score: int, indicated: str) -> None:
    assert _scored(bureau={"score": score}).indicated == indicated


def test_the_lower_of_declared_and_verified_income_carries_the_instalment() -> None:
    lower = _scored(income={"monthly": "3800.00"}, bureau={"monthly_obligations": "500.00"})
    higher = _scored(income={"monthly": "4600.00"}, bureau={"monthly_obligations": "500.00"})
    assert lower.score < higher.score


def test_a_verified_income_that_is_not_verified_counts_for_nothing() -> None:
    risk = _scored(income={"status": "mismatch", "monthly": "0.00"})
    assert risk.score == 680 + 40 - 20


def test_the_instalment_is_the_amount_with_flat_interest_over_the_term() -> None:
    policy = POLICIES["2026-10"]
    assert scoring.instalment(GOOD.application, policy).quantize(Decimal("0.01")) == Decimal("322.00")


def test_the_same_facts_give_the_same_score_every_time() -> None:
    assert {str(_scored(flags=("conflict:full_name", "low_confidence:currency"))) for _ in range(5)} == {
        str(_scored(flags=("conflict:full_name", "low_confidence:currency")))
    }


def test_another_version_of_the_policy_scores_by_its_own_thresholds() -> None:
    borderline = {"bureau": {"score": 560}}
    assert _scored("2026-10", **borderline).route == "review"
    assert _scored("2026-04", **borderline).indicated == "approve"


def test_there_are_versions_of_the_policy_and_every_reason_has_a_text() -> None:
    assert len(POLICIES) >= 2
    assert CURRENT_POLICY in POLICIES
    codes = {
        *scoring._FLAG_REASONS.values(),
        *scoring._INCOME_REASONS.values(),
        *("MEETS_POLICY", "SCORE_LOW", "SCORE_BORDERLINE", "THIN_FILE", "UNDER_AGE", "OPEN_DEFAULT", "INCOME_TOO_LOW"),
        *("DEBT_TO_INCOME_LIMIT", "AMOUNT_ABOVE_LIMIT"),
        *(band.reason for policy in POLICIES.values() for band in policy.score.debt_to_income if band.reason),
    }
    for version, policy in POLICIES.items():
        assert policy.version == version
        assert codes <= policy.reasons.keys()
        assert all(policy.reasons.values())


def test_a_version_that_there_is_not_is_named_with_those_there_are() -> None:
    with pytest.raises(UnknownPolicy, match="there is no policy 2025-01; there are 2026-04, 2026-10"):
        policy_of(load_policies(), "2025-01")


def test_a_policy_that_lacks_a_threshold_is_refused_when_it_is_read(tmp_path: Path) -> None:
    text = (Path(scoring.__file__).parent / "policy" / "2026-10.yaml").read_text(encoding="utf-8")
    (tmp_path / "2026-11.yaml").write_text(text.replace("  max_age_days: 30\n", ""), encoding="utf-8")
    with pytest.raises(ValidationError, match=r"bureau\.max_age_days"):
        load_policies(tmp_path)
