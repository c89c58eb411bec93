"""What all questions of the workflow share: who may speak on a case, and how a bad answer is told."""

from __future__ import annotations

from pydantic import ValidationError

from graphs.common.owners import CUSTOMER, Caller, Owner


class BadAnswer(ValueError):
    """The answer cannot be used; the message says why, for whoever is asked again."""


def check_caller(caller: Caller, owner: Owner | None) -> None:
    """Checks that a caller may speak on a case at all.

    Raises:
        BadAnswer: it belongs to another tenant or user, or a customer speaks for someone else.
    """
    is_foreign = owner is not None and dict(caller.owner) != dict(owner)
    if is_foreign or (caller.role == CUSTOMER and caller.actor != caller.owner["user_id"]):
        raise BadAnswer(f"{caller.actor} may not act for another tenant or user")


def first_problem(error: ValidationError) -> str:
    """Returns the first thing that a schema found wrong, with its field."""
    first = error.errors(include_url=False)[0]
    return f"{'.'.join(str(part) for part in first['loc']) or 'the answer'}: {first['msg']}"
