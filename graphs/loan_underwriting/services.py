"""Answers of services as nodes use them: refused and malformed ones stop the run, with what was wrong."""

from __future__ import annotations

from typing import TypeVar

from pydantic import BaseModel, ValidationError

from graphs.common.calls import Called
from graphs.loan_underwriting.asking import first_problem

_Model = TypeVar("_Model", bound=BaseModel)


class ServiceAnswerRefused(RuntimeError):
    """A service refused, or answered with what cannot be right: trying again would not help."""


def answered(tool: str, called: Called, schema: type[_Model]) -> _Model:
    """Returns a tool's answer, checked.

    Raises:
        ServiceAnswerRefused: the tool answered with an error, or its answer does not fit.
    """
    if called.failed:
        raise ServiceAnswerRefused(f"{tool}: {called.content}")
    try:
        return schema.model_validate(called.content)
    except ValidationError as error:
        raise ServiceAnswerRefused(f"{tool} gave an answer that cannot be right: {first_problem(error)}") from error
