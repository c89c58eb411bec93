"""The fields of an application as documents state them: their schema, and how readings become values. Pure."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from decimal import Decimal, InvalidOperation
from typing import Annotated, Final

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from graphs.loan_underwriting.policy import ExtractionRules
from graphs.loan_underwriting.state import DocumentKind, Extraction, FieldError

OPERATIONS: Final = "operations"
"""The source of a field that a person entered."""

_AUTHORITY: Final[Mapping[str, tuple[DocumentKind, ...]]] = {
    "full_name": ("identity", "payslip", "application_form"),
    "birth_date": ("identity", "application_form"),
    "id_last4": ("identity", "application_form"),
    "employer_id": ("payslip", "application_form"),
    "employer_name": ("payslip", "application_form"),
    "monthly_income": ("payslip", "application_form"),
    "currency": ("payslip", "application_form"),
}
FIELDS: Final = tuple(_AUTHORITY)
_DATE: Final = TypeAdapter(date)


class Fields(BaseModel):
    """What a case needs to know about its applicant."""

    model_config = ConfigDict(extra="forbid")

    full_name: str = Field(min_length=2, max_length=120)
    birth_date: date
    id_last4: str = Field(pattern=r"^[0-9A-Z]{4}$")
    employer_id: str = Field(pattern=r"^[A-Z]\d{3,8}$")
    employer_name: str = Field(default="", max_length=120)
    monthly_income: Annotated[Decimal, Field(gt=0, lt=1_000_000, decimal_places=2)]
    currency: str = Field(pattern=r"^[A-Z]{3}$")


REQUIRED: Final = tuple(name for name, field in Fields.model_fields.items() if field.is_required())


@dataclass(frozen=True, slots=True)
class Merged:
    """What all readings together gave.

    Attributes:
        fields: A value that passed the schema for each field, None where there is none.
        flags: `conflict:FIELD`, `low_confidence:FIELD`, `inconsistent:DOCUMENT`.
        errors: Fields that are required and have no usable value.
    """

    fields: dict[str, str | None]
    flags: list[str]
    errors: list[FieldError]


@dataclass(frozen=True, slots=True)
class _Reading:
    kind: DocumentKind
    value: str
    confidence: float


def merge(extractions: Sequence[Extraction], manual: Mapping[str, str], rules: ExtractionRules) -> Merged:
    """Merges readings: the latest of each document counts, the document with more authority wins, doubts are flagged.

    Args:
        extractions: Every reading.
        manual: Fields that operations entered; they stand above all documents.
        rules: When a value is believed.
    """
    latest = {entry["document_id"]: entry for entry in sorted(extractions, key=lambda entry: entry["attempt"])}
    chosen: dict[str, str] = {}
    flags: list[str] = []
    problems: dict[str, str] = {}
    for name in FIELDS:
        if name in manual:
            chosen[name] = manual[name]
            continue
        readings = _readings(name, latest.values())
        usable = [reading for reading in readings if reading.confidence >= rules.reject_confidence]
        if not usable:
            problems[name] = _why_missing(readings, latest.values())
            continue
        chosen[name], doubts = _resolve(name, usable, rules)
        flags += doubts
    flags += [f"inconsistent:{entry['document_id']}" for entry in latest.values() if entry["inconsistencies"]]
    fields, invalid = _validated(chosen)
    problems |= invalid
    errors = [FieldError(field=name, problem=problems[name]) for name in FIELDS if name in problems]
    return Merged(fields, sorted(flags), [error for error in errors if _matters(error, invalid)])


def validated_entry(entered: Mapping[str, str]) -> dict[str, str]:
    """Returns fields that were entered by hand as the schema writes them.

    Raises:
        ValueError: an unknown field, or a value that the schema refuses; the message names it.
    """
    unknown = [name for name in entered if name not in FIELDS]
    if unknown:
        raise ValueError(f"{unknown[0]}: there is no such field")
    fields, invalid = _validated(entered)
    for name, problem in invalid.items():
        raise ValueError(f"{name}: {problem}")
    return {name: value for name, value in fields.items() if value is not None}


def providers(name: str) -> tuple[DocumentKind, ...]:
    """Returns the kinds of document that can state a field."""
    return _AUTHORITY[name]


def _matters(error: FieldError, invalid: Mapping[str, str]) -> bool:
    return error["field"] in REQUIRED or error["field"] in invalid


def _readings(name: str, extractions: Iterable[Extraction]) -> list[_Reading]:
    found = [
        _Reading(entry["kind"], entry["fields"][name]["value"].strip(), entry["fields"][name]["confidence"])
        for entry in extractions
        if name in entry["fields"] and entry["kind"] in _AUTHORITY[name]
    ]
    return sorted(found, key=lambda reading: (_AUTHORITY[name].index(reading.kind), -reading.confidence))


def _resolve(name: str, readings: Sequence[_Reading], rules: ExtractionRules) -> tuple[str, list[str]]:
    """Returns the value of a field and what a person has to know about it."""
    first = readings[0]
    doubts = [] if first.confidence >= rules.accept_confidence else [f"low_confidence:{name}"]
    if all(_same(name, first.value, other.value, rules) for other in readings[1:]):
        return first.value, doubts
    return first.value, [*doubts, f"conflict:{name}"]


def _same(name: str, left: str, right: str, rules: ExtractionRules) -> bool:
    if name != "monthly_income":
        return _plain(left) == _plain(right)
    try:
        low, high = sorted((Decimal(left), Decimal(right)))
    except InvalidOperation:
        return left == right
    return high - low <= low * rules.income_tolerance


def _plain(text: str) -> str:
    """Returns a text as two documents may both write it: without accents, case and spacing."""
    decomposed = unicodedata.normalize("NFKD", text)
    return " ".join("".join(char for char in decomposed if not unicodedata.combining(char)).casefold().split())


def _why_missing(readings: Sequence[_Reading], extractions: Iterable[Extraction]) -> str:
    if readings:
        best = max(reading.confidence for reading in readings)
        return f"only read with confidence {best:.2f}"
    unreadable = [entry["document_id"] for entry in extractions if entry["problem"]]
    return f"not found; unreadable: {', '.join(unreadable)}" if unreadable else "not found in any document"


def _validated(chosen: Mapping[str, str]) -> tuple[dict[str, str | None], dict[str, str]]:
    """Returns values as the schema writes them, and what is wrong with the others, by field."""
    invalid: dict[str, str] = {}
    try:
        Fields.model_validate(dict(chosen))
    except ValidationError as error:
        found = error.errors(include_url=False)
        invalid = {str(each["loc"][0]): each["msg"] for each in found if each["type"] != "missing"}
    kept = {name: value for name, value in chosen.items() if name not in invalid}
    return {name: _written(name, kept[name]) if name in kept else None for name in FIELDS}, invalid


def _written(name: str, value: str) -> str:
    if name == "monthly_income":
        return f"{Decimal(value):.2f}"
    return _DATE.validate_python(value).isoformat() if name == "birth_date" else value
