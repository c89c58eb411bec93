"""Who owns a thread and who may act on it: read from the caller's authenticated context, never from a message."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypedDict

ANONYMOUS = "anonymous"
CUSTOMER = "customer"


class Owner(TypedDict):
    """The owner of a thread, as kept in its state."""

    tenant: str
    user_id: str


class NotTheOwner(PermissionError):
    """The caller may not act on this thread."""


@dataclass(frozen=True, slots=True)
class Caller:
    """The authenticated caller of a run.

    Attributes:
        actor: Who calls: the customer's id, or a member of staff.
        role: `customer`, or a role of staff.
        owner: Whose thread the caller says it acts on.
    """

    actor: str
    role: str
    owner: Owner


def caller_of(configurable: Mapping[str, object]) -> Caller:
    """Reads the caller from a run's `configurable`: user_id, tenant, and for staff also actor and actor_role."""
    # A server without authentication names its caller ''.
    owner = Owner(
        tenant=str(configurable.get("tenant") or ANONYMOUS), user_id=str(configurable.get("user_id") or ANONYMOUS)
    )
    return Caller(
        actor=str(configurable.get("actor") or owner["user_id"]),
        role=str(configurable.get("actor_role") or CUSTOMER),
        owner=owner,
    )


def check_owner(owner: Owner | None, caller: Caller) -> Owner:
    """Returns the owner of the thread: the stored one, or the caller's where the thread is new.

    Raises:
        NotTheOwner: the thread belongs to another tenant or user, or a customer acts for someone else.
    """
    if owner is not None and dict(owner) != dict(caller.owner):
        raise NotTheOwner("this thread belongs to another tenant or user")
    if caller.role == CUSTOMER and caller.actor != caller.owner["user_id"]:
        raise NotTheOwner("a customer may act on their own threads only")
    return owner or caller.owner
