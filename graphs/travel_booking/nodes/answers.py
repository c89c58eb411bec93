"""Answers to questions: read by a schema, or asked again with the reason."""

from __future__ import annotations

from typing import TypeVar

from pydantic import BaseModel, ValidationError

Shape = TypeVar("Shape", bound=BaseModel)


class BadAnswer(ValueError):
    """The answer cannot be used; the message says why, for whoever is asked again."""


def read_answer(shape: type[Shape], raw: object) -> Shape:
    """Reads an answer.

    Raises:
        BadAnswer: it does not fit the schema; the first field that does not is named, its value is not.
    """
    try:
        return shape.model_validate(raw)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        path = ".".join(str(part) for part in first["loc"]) or "the answer"
        raise BadAnswer(f"{path}: {first['msg']}") from error
