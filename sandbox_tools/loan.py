"""The loan workflow's sandbox: every tool with an effect is a stub, and nobody is asked.

A document, a statement or an employer that the recording does not hold is not invented: such a call is blocked until a
person gives an answer, or lets it read live. An inquiry that was not recorded finds no file, which a person has to
look at: the sandbox never makes anyone creditworthy.
"""

from __future__ import annotations

import json
from typing import Any

from agentctl.sandbox.registry import ToolRegistry
from graphs.common.effects import json_text
from graphs.loan_underwriting.catalog import registry_of
from sandbox_tools.answers import NoAnswer, reference


class LoanSandbox:
    """Answers without a back office: pure functions of their arguments, so that every run gets the same."""

    def read_document(self, document_id: str) -> str:
        """Has no answer.

        Raises:
            NoAnswer: always.
        """
        raise NoAnswer(f"no recorded document {document_id}")

    def fetch_statement(self, statement_id: str) -> str:
        """Has no answer.

        Raises:
            NoAnswer: always.
        """
        raise NoAnswer(f"no recorded statement {statement_id}")

    def lookup_employer(self, employer_id: str) -> str:
        """Has no answer.

        Raises:
            NoAnswer: always.
        """
        raise NoAnswer(f"no recorded employer {employer_id}")

    def pull_bureau(self, applicant_id: str, purpose: str, version: int, tool_call_id: str) -> str:
        """Finds no file, and leaves no inquiry."""
        request = {"applicant_id": applicant_id, "purpose": purpose, "version": version}
        no_file = {"found": False, "score": 0, "open_defaults": 0, "n_accounts": 0, "monthly_obligations": "0.00"}
        return json_text({"inquiry_id": _reference("in", request), **request, **no_file})

    def notify_underwriters(self, tool_call_id: str, **request: Any) -> str:
        """Assigns every case to nobody real, and tells nobody."""
        answer = {"review_notice_id": _reference("re", request), **request, "status": "queued"}
        return json_text({**answer, "assigned_to": "underwriter-sandbox"})

    def write_decision_record(self, tool_call_id: str, **request: Any) -> str:
        """Takes every record, and keeps none."""
        return json_text({"decision_record_id": _reference("de", request), **request})

    def book_loan(self, tool_call_id: str, **request: Any) -> str:
        """Accepts every booking, and books none."""
        return json_text({"loan_booking_id": _reference("lo", request), **request, "status": "booked"})


def registry() -> ToolRegistry:
    """Builds the sandbox registry: the names, argument schemas and effects of production, nothing behind them."""
    sandbox = LoanSandbox()
    return registry_of(
        {
            "read_document": sandbox.read_document,
            "fetch_statement": sandbox.fetch_statement,
            "lookup_employer": sandbox.lookup_employer,
            "pull_bureau": sandbox.pull_bureau,
            "notify_underwriters": sandbox.notify_underwriters,
            "write_decision_record": sandbox.write_decision_record,
            "book_loan": sandbox.book_loan,
        },
        unanswered=("read_document", "fetch_statement", "lookup_employer"),
    )


def _reference(kind: str, request: dict[str, Any]) -> str:
    return reference(kind, json.dumps(request, sort_keys=True))
