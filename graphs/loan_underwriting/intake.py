"""The intake: plan the documents, read each, merge what was read, and ask for what is missing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from langchain_core.language_models import BaseChatModel
from langchain_core.runnables import RunnableConfig
from langgraph.runtime import Runtime
from langgraph.types import Send, interrupt

from graphs.common.owners import caller_of, check_owner
from graphs.loan_underwriting import extraction, fields, inputs
from graphs.loan_underwriting.asking import BadAnswer
from graphs.loan_underwriting.kit import Kit, audit
from graphs.loan_underwriting.state import GRAPH_VERSION, Document, DocumentToRead, LoanState

MAX_ROUNDS: Final = 3
"""Readings of a document in all: the first and two retries."""


class AttemptExists(RuntimeError):
    """The thread holds an attempt already: another one is a thread of its own, or two decisions would be mixed."""


@dataclass(frozen=True, slots=True)
class Intake:
    """The nodes over what they need.

    Attributes:
        kit: Tools, policies, settings, time.
        model: Reads documents.
    """

    kit: Kit
    model: BaseChatModel

    def plan_documents(self, state: LoanState, config: RunnableConfig, runtime: Runtime[None]) -> dict[str, Any]:
        """Checks the application and whose it is.

        Raises:
            NotTheOwner: the case belongs to another tenant or user.
            AttemptExists: the thread was used before.
            ValueError: the application or a reference is malformed; the field is named.
        """
        owner = check_owner(state.get("owner"), caller_of(config.get("configurable", {})))
        if state.get("graph_version") is not None:
            raise AttemptExists("this thread holds an attempt already: a new one gets a new suffix")
        inputs.check_application(state.get("application"), state.get("documents"))
        to_read = len(readable(state["documents"]))
        runtime.stream_writer({"progress": f"{to_read} documents to read"})
        now = self.kit.now(config)
        return {
            "owner": owner,
            "graph_version": GRAPH_VERSION,
            "audit_events": [audit("planned", now, f"{to_read} documents")],
        }

    def extract_document(self, item: DocumentToRead, config: RunnableConfig, runtime: Runtime[None]) -> dict[str, Any]:
        """Reads one document: its text by reference, then the model's candidates."""
        found, messages = extraction.read(item, kit=self.kit, model=self.model, config=config)
        runtime.stream_writer({"progress": f"{item['kind']} read"})
        return {"extractions": [found], "calls": messages}

    def merge_extraction(self, state: LoanState, config: RunnableConfig, runtime: Runtime[None]) -> dict[str, Any]:
        """Merges all readings, and validates what came of them."""
        policy = self.kit.policy(state, config)
        merged = fields.merge(state.get("extractions", []), state.get("manual_fields", {}), policy.extraction)
        attempt = max((entry["attempt"] for entry in state.get("extractions", [])), default=0)
        outcome = f"{len(merged.errors)} fields missing" if merged.errors else "documents verified"
        runtime.stream_writer({"progress": outcome})
        return {
            "extracted_fields": merged.fields,
            "flags": merged.flags,
            "validation_errors": merged.errors,
            "extraction_round": attempt,
            "audit_events": [audit("merged", self.kit.now(config), outcome)],
        }

    def request_documents(self, state: LoanState, config: RunnableConfig) -> dict[str, Any]:
        """Asks for further documents, or for fields entered by hand; a bad answer is asked again with the reason."""
        raw = interrupt(inputs.question(state.get("validation_errors", []), state.get("documents_problem", "")))
        caller = caller_of(config.get("configurable", {}))
        try:
            answer = inputs.read_answer(raw, caller=caller, owner=state.get("owner"), known=state["documents"])
        except BadAnswer as bad:
            return {"documents_problem": str(bad)}
        now = self.kit.now(config)
        return {
            "documents_problem": "",
            "documents": [*state["documents"], *answer.documents],
            "manual_fields": {**state.get("manual_fields", {}), **answer.fields},
            "audit_events": [audit("documents supplied", now, f"by {caller.actor}: {answer.told()}")],
        }


def to_extract(state: LoanState) -> list[Send] | str:
    """Sends every document that nobody has read to a reading of its own."""
    read = {entry["document_id"] for entry in state.get("extractions", [])}
    unread = [document for document in readable(state["documents"]) if document["document_id"] not in read]
    return [_send(document, 1, []) for document in unread] or "merge_extraction"


def after_merge(state: LoanState) -> Sequence[Send | str]:
    """Goes on to both checks, or reads the documents concerned again, twice at most, or asks."""
    errors = state.get("validation_errors", [])
    if not errors:
        return ["pull_bureau", "verify_income"]
    again = _to_read_again(state)
    return again or ["request_documents"]


def after_request(state: LoanState) -> list[Send] | str:
    """Asks again after a bad answer, reads new documents, or merges what was entered by hand."""
    return "request_documents" if state.get("documents_problem") else to_extract(state)


def readable(documents: Sequence[Document]) -> list[Document]:
    """Returns the documents that are read for fields; statements belong to the income check."""
    return [document for document in documents if document["kind"] != "bank_statement"]


def _to_read_again(state: LoanState) -> list[Send]:
    """Returns a further reading of each document that could state a missing field and has readings left."""
    errors = state.get("validation_errors", [])
    n_read: dict[str, int] = {}
    for entry in state.get("extractions", []):
        n_read[entry["document_id"]] = max(n_read.get(entry["document_id"], 0), entry["attempt"])
    sends = []
    for document in readable(state["documents"]):
        n_before = n_read.get(document["document_id"], 0)
        problems = [
            f"{error['field']}: {error['problem']}"
            for error in errors
            if document["kind"] in fields.providers(error["field"])
        ]
        if problems and n_before < MAX_ROUNDS:
            sends.append(_send(document, n_before + 1, problems))
    return sends


def _send(document: Document, attempt: int, problems: list[str]) -> Send:
    item = DocumentToRead(
        document_id=document["document_id"], kind=document["kind"], attempt=attempt, problems=problems
    )
    return Send("extract_document", item)
