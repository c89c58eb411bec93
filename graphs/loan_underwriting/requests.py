"""What comes from outside at the intake: the application, and answers to a request for documents."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from graphs.common.owners import CUSTOMER, Caller, Owner
from graphs.loan_underwriting.catalog import MONEY, REFERENCE
from graphs.loan_underwriting.fields import validated_entry
from graphs.loan_underwriting.state import Document, DocumentKind, FieldError

OPERATIONS_ROLE = "operations"


class BadAnswer(ValueError):
    """The answer cannot be used; the message says why, for whoever is asked again."""


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid")


class _Application(_Strict):
    applicant_id: str = Field(pattern=REFERENCE)
    amount: str = Field(pattern=MONEY)
    currency: str = Field(pattern=r"^[A-Z]{3}$")
    term_months: int = Field(ge=1, le=360)
    segment: str = Field(min_length=1, max_length=40)


class _Document(_Strict):
    document_id: str = Field(pattern=REFERENCE)
    kind: DocumentKind


class _Input(_Strict):
    application: _Application
    documents: list[_Document] = Field(min_length=1, max_length=40)


@dataclass(frozen=True, slots=True)
class Supplied:
    """An answer: further documents, or fields that operations entered by hand, or both."""

    documents: list[Document]
    fields: Mapping[str, str]

    def told(self) -> str:
        """Returns what was supplied, without any value."""
        return ", ".join([*(document["document_id"] for document in self.documents), *self.fields])


def check_application(application: object, documents: object) -> None:
    """Checks what a case begins with.

    Raises:
        ValueError: it is malformed; the message names the field.
    """
    try:
        _Input.model_validate({"application": application, "documents": documents})
    except ValidationError as error:
        raise ValueError(first_problem(error)) from error


def question(errors: Sequence[FieldError], problem: str) -> dict[str, Any]:
    """Returns what is asked. `problem` is what was wrong with the previous answer, '' the first time."""
    return {
        "kind": "request_documents",
        "missing": [dict(error) for error in errors],
        "answers": ["documents: [{document_id, kind}]", "fields: {FIELD: VALUE} (operations only)"],
        "problem": problem,
    }


def read_answer(raw: object, *, caller: Caller, owner: Owner | None, known: Sequence[Document]) -> Supplied:
    """Reads an answer to a request for documents.

    Args:
        raw: What was answered.
        caller: Who answers, by their authenticated context.
        owner: Whose case it is.
        known: The documents that are there already.

    Raises:
        BadAnswer: it is malformed, says nothing new, or comes from someone who may not say it.
    """
    check_caller(caller, owner)
    if not isinstance(raw, Mapping):
        raise BadAnswer("the answer is an object with documents, fields, or both")
    documents = _read(raw.get("documents", []))
    entered = raw.get("fields", {})
    if set(raw) - {"documents", "fields"} or not isinstance(entered, Mapping):
        raise BadAnswer("the answer is an object with documents, fields, or both")
    if entered and caller.role != OPERATIONS_ROLE:
        raise BadAnswer(f"{caller.actor} as {caller.role} may not enter fields")
    repeated = {entry["document_id"] for entry in documents} & {entry["document_id"] for entry in known}
    if repeated:
        raise BadAnswer(f"documents: {min(repeated)} is there already")
    if not documents and not entered:
        raise BadAnswer("neither a document nor a field was given")
    try:
        values = validated_entry({str(name): str(value) for name, value in entered.items()})
    except ValueError as error:
        raise BadAnswer(f"fields.{error}") from error
    return Supplied(documents=documents, fields=values)


def check_caller(caller: Caller, owner: Owner | None) -> None:
    """Checks that a caller may speak on a case at all.

    Raises:
        BadAnswer: it belongs to another tenant or user, or a customer speaks for someone else.
    """
    is_foreign = owner is not None and dict(caller.owner) != dict(owner)
    if is_foreign or (caller.role == CUSTOMER and caller.actor != caller.owner["user_id"]):
        raise BadAnswer(f"{caller.actor} may not act for another tenant or user")


def _read(raw: object) -> list[Document]:
    try:
        supplied = [_Document.model_validate(entry) for entry in (raw if isinstance(raw, list) else [raw])]
    except ValidationError as error:
        raise BadAnswer(f"documents: {first_problem(error)}") from error
    return [Document(document_id=entry.document_id, kind=entry.kind) for entry in supplied]


def first_problem(error: ValidationError) -> str:
    """Returns the first thing that a schema found wrong, with its field."""
    first = error.errors(include_url=False)[0]
    return f"{'.'.join(str(part) for part in first['loc']) or 'the answer'}: {first['msg']}"
