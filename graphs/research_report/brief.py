"""The analyst's brief: what is asked, how far it goes, for whom, by when; and what a refresh starts from."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from graphs.research_report.report import Report

ARTIFACT = r"^[a-z0-9][a-z0-9-]{0,79}$"
_HEADING = "Research brief"
_MAX_SLUG = 48


class BadBrief(ValueError):
    """The input is no brief; the message names the field."""


class Previous(BaseModel):
    """The published report that a refresh starts from: its outline and sources are searched again."""

    model_config = ConfigDict(extra="forbid")

    artifact: str = Field(pattern=ARTIFACT)
    version: int = Field(ge=1)
    report: Report


class Brief(BaseModel):
    """What a run is asked for."""

    model_config = ConfigDict(extra="forbid")

    question: str = Field(min_length=8, max_length=500)
    scope: list[str] = Field(default_factory=list, max_length=12, description="Aspects to cover.")
    audience: str = Field(default="general readers", max_length=120)
    deadline_s: float | None = Field(default=None, gt=0, description="Wall-clock budget of a run.")
    previous: Previous | None = None

    @property
    def artifact(self) -> str:
        """What the report is published as: the same question gives the same, so that a refresh is its next version."""
        return self.previous.artifact if self.previous else artifact_of(self.question)


def read_brief(values: Mapping[str, Any]) -> Brief:
    """Reads a brief from the graph's input.

    Raises:
        BadBrief: a field is missing or wrong.
    """
    given = {name: values[name] for name in Brief.model_fields if values.get(name) is not None}
    try:
        return Brief.model_validate(given)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        path = ".".join(str(part) for part in first["loc"]) or "the input"
        raise BadBrief(f"{path}: {first['msg']}") from error


def artifact_of(question: str) -> str:
    """Names the artifact of a question: readable, and its own."""
    slug = re.sub(r"[^a-z0-9]+", "-", question.casefold()).strip("-")[:_MAX_SLUG].rstrip("-")
    return f"{slug or 'report'}-{hashlib.sha256(question.encode()).hexdigest()[:8]}"


def brief_text(brief: Brief, preferences: Mapping[str, Any]) -> str:
    """Writes the brief as the lead agent reads it: a heading and JSON."""
    document = {**brief.model_dump(mode="json", exclude_none=True), "artifact": brief.artifact}
    return f"{_HEADING}\n{json.dumps({**document, 'preferences': dict(preferences)}, indent=1, ensure_ascii=False)}"


def brief_in(text: str) -> dict[str, Any] | None:
    """Reads the document of a brief's message, None where the message is no brief."""
    heading, _, document = text.partition("\n")
    return json.loads(document) if heading == _HEADING else None
