"""Statement lines and what they show of the income. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Final

from graphs.loan_underwriting.income.state import Credit, Statement
from graphs.loan_underwriting.policy import IncomeRules, IncomeStatus

_CREDIT: Final = re.compile(r"^(\d{4}-\d{2}-\d{2})\s+CR\s+(\d{1,9}\.\d{2})\s+(.+?)\s*$")
_NOTHING: Final = Decimal("0.00")


def credits_of(statements: Sequence[Statement]) -> dict[str, list[Credit]]:
    """Returns the credits of statements, by month; lines that are no credit say nothing about income."""
    found: dict[str, list[Credit]] = {}
    for statement in statements:
        matches = [_CREDIT.match(line) for line in statement["lines"]]
        found[statement["month"]] = [
            Credit(day=match[1], amount=match[2], payer=match[3]) for match in matches if match is not None
        ]
    return found


def monthly_pay(credits: Mapping[str, Sequence[Credit]], payroll_names: Sequence[str]) -> dict[str, Decimal]:
    """Returns what an employer paid in each month."""
    names = [_plain(name) for name in payroll_names if name.strip()]
    return {
        month: sum((Decimal(credit["amount"]) for credit in entries if _is_from(credit["payer"], names)), _NOTHING)
        for month, entries in credits.items()
    }


def judge(pay: Mapping[str, Decimal], declared: Decimal, rules: IncomeRules) -> tuple[IncomeStatus, Decimal]:
    """Returns whether the statements bear out an income, and the lowest month that they show.

    Too few statements leave it unverified, whatever they show. A month may be below what was declared by the policy's
    tolerance; more is a mismatch, and so is a month without pay.
    """
    lowest = min(pay.values(), default=_NOTHING)
    if len(pay) < rules.n_statements:
        return "unverified", lowest
    return ("verified" if lowest >= declared * (1 - rules.tolerance) else "mismatch"), lowest


def _is_from(payer: str, names: Sequence[str]) -> bool:
    return any(_plain(payer).startswith(name) for name in names)


def _plain(text: str) -> str:
    return " ".join(text.casefold().split())
