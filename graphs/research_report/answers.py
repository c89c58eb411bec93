"""Reviewing a report: what the reviewer is shown, and what may be answered."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from graphs.common.owners import Caller, Owner
from graphs.research_report.critique import Critique, open_issues
from graphs.research_report.report import Report, report_sha256


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid")


class Approve(_Part):
    """The report is published as it is."""

    type: Literal["approve"]


class EditedAction(_Part):
    """The call with the report as the reviewer wants it."""

    name: Literal["publish_report"]
    args: dict[str, Any]


class Edit(_Part):
    """The report is published as the reviewer edited it."""

    type: Literal["edit"]
    edited_action: EditedAction


class Reject(_Part):
    """The report is not published; the agent goes on with the feedback."""

    type: Literal["reject"]
    message: str = Field(min_length=1, max_length=2000)


Answer = Approve | Edit | Reject


class _Answers(_Part):
    decisions: list[Annotated[Answer, Field(discriminator="type")]] = Field(min_length=1, max_length=1)


_ANSWERS: TypeAdapter[_Answers] = TypeAdapter(_Answers)


class BadAnswer(ValueError):
    """The answer cannot be used; the message says why, for whoever is asked again."""


def question(
    args: Mapping[str, Any], report: Report, critique: Critique | None, *, allowed: Sequence[str], problem: str
) -> dict[str, Any]:
    """Returns what the reviewer is shown, in the shape of the human-in-the-loop middleware.

    Args:
        args: The call's arguments, with the report.
        report: The report.
        critique: The latest critique.
        allowed: Decisions that may be made.
        problem: What was wrong with the previous answer, '' the first time.
    """
    uncertain = [finding.id for finding in report.findings if finding.confidence == "uncertain"]
    return {
        "action_requests": [
            {"name": "publish_report", "args": dict(args), "description": _description(report, uncertain)}
        ],
        "review_configs": [{"action_name": "publish_report", "allowed_decisions": list(allowed)}],
        "report_sha256": report_sha256(report),
        "quotes": {source.id: source.quotes for source in report.sources},
        "open_issues": open_issues(critique, report),
        "uncertain": uncertain,
        "problem": problem,
    }


def read_answer(
    raw: object, *, caller: Caller, owner: Owner | None, roles: Collection[str], allowed: Collection[str]
) -> Answer:
    """Reads an answer to a review, `{"decisions": [{"type": "approve"}]}` for example.

    Args:
        raw: What was answered.
        caller: Who answers, by their authenticated context.
        owner: Whose thread it is.
        roles: Which roles may answer.
        allowed: Decisions that may be made.

    Raises:
        BadAnswer: it is malformed, or from someone who may not review.
    """
    if caller.role not in roles:
        raise BadAnswer(f"{caller.actor} as {caller.role} may not review reports")
    if owner is not None and caller.owner != owner:
        raise BadAnswer(f"{caller.actor} may not act for another tenant or user")
    try:
        answer = _ANSWERS.validate_python(raw).decisions[0]
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        path = ".".join(str(part) for part in first["loc"]) or "the answer"
        raise BadAnswer(f"{path}: {first['msg']}") from error
    if answer.type not in allowed:
        raise BadAnswer(f"{answer.type} is not one of {', '.join(allowed)}")
    return answer


def _description(report: Report, uncertain: Sequence[str]) -> str:
    doubts = f"; uncertain: {', '.join(uncertain)}" if uncertain else ""
    return f"Publish {report.title!r}: {len(report.findings)} findings, {len(report.sources)} sources{doubts}"
