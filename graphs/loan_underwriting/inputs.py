"""What comes from outside at the intake: the application, and answers to a request for documents."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from graphs.common.owners import Caller, Owner
from graphs.loan_underwriting.asking import BadAnswer, check_caller, first_problem
from graphs.loan_underwriting.catalog import MONEY, REFERENCE
from graphs.loan_underwriting.fields import validated_entry
from graphs.loan_underwriting.state import Document, DocumentKind, FieldError

OPERATIONS_ROLE = "operations"


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
        given = _Input.model_validate({"application": application, "documents": documents})
    except ValidationError as error:
        raise ValueError(first_problem(error)) from error
    ids = [document.document_id for document in given.documents]
    if len(set(ids)) < len(ids):
        raise ValueError("documents: a reference is given twice")


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
    seen = {entry["document_id"] for entry in known}
    for entry in documents:
        if entry["document_id"] in seen:
            raise BadAnswer(f"documents: {entry['document_id']} is there already")
        seen.add(entry["document_id"])
    if not documents and not entered:
        raise BadAnswer("neither a document nor a field was given")
    try:
        values = validated_entry({str(name): str(value) for name, value in entered.items()})
    except ValueError as error:
        raise BadAnswer(f"fields.{error}") from error
    return Supplied(documents=documents, fields=values)


def _read(raw: object) -> list[Document]:
    try:
        supplied = [_Document.model_validate(entry) for entry in (raw if isinstance(raw, list) else [raw])]
    except ValidationError as error:
        raise BadAnswer(f"documents: {first_problem(error)}") from error
    return [Document(document_id=entry.document_id, kind=entry.kind) for entry in supplied]
