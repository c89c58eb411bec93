"""What the critique answers: issues, finding by finding, and which of them a report may not keep as they are."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Literal

from langchain_core.messages import AIMessage, BaseMessage, ToolMessage
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from graphs.research_report.report import Report

Kind = Literal["unsupported", "overstated", "hidden_conflict", "duplicate_sources", "old_sources", "gap"]
MUST_FIX: tuple[Kind, ...] = ("unsupported", "overstated", "hidden_conflict")


class Issue(BaseModel):
    """One issue."""

    model_config = ConfigDict(extra="forbid")

    kind: Kind
    finding: str = Field(description="The finding's id, or the sub-question's for a gap.")
    statement: str = Field(default="", description="The finding's statement as it was criticised.")
    detail: str


class Critique(BaseModel):
    """The critique's answer."""

    model_config = ConfigDict(extra="forbid")

    issues: list[Issue]

    @property
    def must_fix(self) -> list[Issue]:
        """The issues that no report may keep as they are: fixed, or marked uncertain."""
        return [issue for issue in self.issues if issue.kind in MUST_FIX]


def critique_in(messages: Sequence[BaseMessage]) -> Critique | None:
    """Returns the latest critique of a conversation, None where there is none that can be read."""
    asked = {
        call["id"]
        for message in messages
        if isinstance(message, AIMessage)
        for call in message.tool_calls
        if call["name"] == "task" and call["args"].get("subagent_type") == "critique"
    }
    for message in reversed(messages):
        if isinstance(message, ToolMessage) and message.tool_call_id in asked:
            try:
                return Critique.model_validate_json(message.text)
            except ValidationError:
                continue
    return None


def open_issues(critique: Critique | None, report: Report) -> list[dict[str, str]]:
    """Returns what the critique said that still concerns a report: its reviewer sees it."""
    statements = {finding.id: finding for finding in report.findings}
    return [
        json.loads(issue.model_dump_json())
        for issue in (critique.issues if critique else ())
        if issue.kind == "gap"
        or ((kept := statements.get(issue.finding)) is not None and kept.statement == issue.statement)
    ]
