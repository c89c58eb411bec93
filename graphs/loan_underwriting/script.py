"""The scripted model: it reads documents by the prompt's rules, and writes summaries from the facts it is given."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Final

from langchain_core.messages import AIMessage, SystemMessage

from agentctl.testing import Turn
from graphs.loan_underwriting.prompts import document_in

SLIP_RATE: Final = 0.4
"""Share of readings at temperature 1 in which the model swaps two digits of the income."""

_SURE, _UNSURE, _ILLEGIBLE = 0.97, 0.72, 0.40
_LINE: Final = re.compile(r"^\s*([A-Za-z][A-Za-z ,()-]*?)\s*:\s*(\S.*?)\s*$", re.MULTILINE)
_AMOUNT: Final = re.compile(r"(?<![\d.,])(\d{1,3}(?:[.,' ]\d{3})+|\d+)([.,]\d{2})?(?![\d.,])")
_CURRENCY: Final = re.compile(r"\b(EUR|CHF|GBP|USD|SEK)\b")
_LABELS: Final = {
    "name": "full_name",
    "employee": "full_name",
    "applicant": "full_name",
    "date of birth": "birth_date",
    "born": "birth_date",
    "document number": "id_last4",
    "identity document": "id_last4",
    "employer number": "employer_id",
    "employer": "employer_name",
    "net pay": "monthly_income",
    "net pay year to date": "monthly_income",
    "monthly net income": "monthly_income",
}
_MONTHLY_RULE: Final = re.compile(r"never a year-to-date total", re.IGNORECASE)
_YEAR_TO_DATE: Final = "year to date"


@dataclass(frozen=True, slots=True)
class _Entry:
    label: str
    field: str
    value: str


def loan_script(turn: Turn) -> AIMessage:
    """Answers for whichever part of the workflow asks: the tools that are bound tell which."""
    return _reading(turn) if turn.tools == ("DocumentReading",) else _summary(turn)


def _reading(turn: Turn) -> AIMessage:
    text = document_in(turn.messages[-1])
    entries = list(_entries(text))
    is_poor = re.search(r"^scan quality: poor$", text, re.IGNORECASE | re.MULTILINE) is not None
    fields = [_field(turn, entry, is_poor) for entry in _chosen(turn, entries)]
    fields += _currency(entries, is_poor)
    reading = {"fields": fields, "inconsistencies": _inconsistencies(entries)}
    return AIMessage("", tool_calls=[turn.call("DocumentReading", reading)])


def _entries(text: str) -> Iterator[_Entry]:
    """Yields the lines that state a field, in order; the first of a label counts."""
    seen = set[str]()
    for match in _LINE.finditer(text):
        label = " ".join(match[1].lower().split())
        if label in _LABELS and label not in seen:
            seen.add(label)
            yield _Entry(label, _LABELS[label], match[2])


def _chosen(turn: Turn, entries: list[_Entry]) -> list[_Entry]:
    """Returns one line for each field. A rule that the prompt lacks is not followed: the last figure is taken then."""
    follows_rule = _MONTHLY_RULE.search(_prompt(turn)) is not None
    usable = [entry for entry in entries if not (follows_rule and _YEAR_TO_DATE in entry.label)]
    return list({entry.field: entry for entry in usable}.values())


def _field(turn: Turn, entry: _Entry, is_poor: bool) -> dict[str, Any]:
    value = entry.value
    confidence = _ILLEGIBLE if "?" in value else _UNSURE if is_poor else _SURE
    if entry.field == "monthly_income":
        value = _amount(value) or value
        if turn.slips(SLIP_RATE):
            value = _swapped(value)
    elif entry.field == "id_last4":
        value = re.sub(r"[^0-9A-Za-z?]", "", value)[-4:].upper()
    return {"field": entry.field, "value": value, "confidence": confidence}


def _currency(entries: list[_Entry], is_poor: bool) -> list[dict[str, Any]]:
    stated = [
        match for entry in entries if entry.field == "monthly_income" and (match := _CURRENCY.search(entry.value))
    ]
    confidence = _UNSURE if is_poor else _SURE
    return [{"field": "currency", "value": match[1], "confidence": confidence} for match in stated[:1]]


def _inconsistencies(entries: list[_Entry]) -> list[str]:
    """Returns contradictions inside the document: a month's pay above the year's."""
    amounts = {entry.label: _amount(entry.value) for entry in entries if entry.field == "monthly_income"}
    month, year = amounts.get("net pay"), amounts.get("net pay year to date")
    is_contradiction = month is not None and year is not None and Decimal(month) > Decimal(year)
    return ["net pay is above net pay year to date"] if is_contradiction else []


def _amount(text: str) -> str | None:
    """Returns an amount with a decimal point and no separators: 4,200.00 and 4.200,00 are the same."""
    match = _AMOUNT.search(text)
    if match is None:
        return None
    return f"{re.sub(r'[^0-9]', '', match[1])}.{(match[2] or '.00')[1:]}"


def _swapped(amount: str) -> str:
    return amount[1] + amount[0] + amount[2:] if len(amount) > 4 else amount


def _summary(turn: Turn) -> AIMessage:
    facts = json.loads(turn.messages[-1].text)
    reasons = " ".join(facts["reasons"])
    unclear = f" To look at: {', '.join(facts['mismatches'])}." if facts["mismatches"] else ""
    return AIMessage(
        f"{facts['amount']} over {facts['term_months']} months, score {facts['score']}. {reasons}{unclear}".strip()
    )


def _prompt(turn: Turn) -> str:
    return "\n".join(message.text for message in turn.messages if isinstance(message, SystemMessage))
