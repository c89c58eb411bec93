"""The refund policy: versioned files, and what reads them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

from graphs.common.versions import read_policies

CURRENT_POLICY = "2026-10"
_FOLDER = Path(__file__).parent


@dataclass(frozen=True, slots=True)
class Policy:
    """One version of the policy.

    Attributes:
        version: Its name, `YYYY-MM`.
        topics: What customers are owed, by reason: covers, window_days (None means no limit), text.
        automatic_statuses: Order statuses in which a refund needs no person.
        automatic_up_to: The highest such refund, in the order's currency.
        approver_roles: Who may approve the others.
    """

    version: str
    topics: Mapping[str, Mapping[str, object]]
    automatic_statuses: frozenset[str]
    automatic_up_to: Decimal
    approver_roles: frozenset[str]

    def answer(self, topic: str) -> dict[str, object] | None:
        """Returns what the policy says on a topic, as the policy service answers it; None for an unknown topic."""
        entry = self.topics.get(topic)
        return None if entry is None else {"policy_version": self.version, "topic": topic, **entry}

    def is_automatic(self, status: str, amount: Decimal) -> bool:
        """Tells whether a refund of an order in this status may go out without a person."""
        return status in self.automatic_statuses and amount <= self.automatic_up_to


def load_policies(folder: Path = _FOLDER) -> dict[str, Policy]:
    """Reads every version of the policy, by version."""
    return read_policies(folder, _policy)


def _policy(document: Mapping[str, Any]) -> Policy:
    approval = document["approval"]
    return Policy(
        version=document["version"],
        topics=document["topics"],
        automatic_statuses=frozenset(approval["automatic"]["statuses"]),
        automatic_up_to=Decimal(approval["automatic"]["up_to"]),
        approver_roles=frozenset(approval["roles"]),
    )
