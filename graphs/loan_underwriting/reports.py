"""What those who run the desk list: reviews that are overdue, and decisions against what the score says."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final, Literal

import httpx

from graphs.common.outbound import OutboundLog
from graphs.loan_underwriting.graph import LoanGraph

_SYSTEM: Final = "system:"
_REVIEWS: Final = frozenset({"review", "second_review"})


@dataclass(frozen=True, slots=True)
class OverdueReview:
    """A case that waits for a person for too long.

    Attributes:
        thread: The case.
        waits_at: `review` or `second_review`.
        due_at: Until when it should have been reviewed.
        assigned_to: Who should have.
    """

    thread: str
    waits_at: str
    due_at: datetime
    assigned_to: str


@dataclass(frozen=True, slots=True)
class OverrideRate:
    """How often people decided against the score.

    Attributes:
        name: The reviewer or segment.
        n_reviewed: Cases that people decided.
        n_overridden: Those decided against the score.
    """

    name: str
    n_reviewed: int
    n_overridden: int

    @property
    def rate(self) -> float:
        """Share of the overridden, from 0 to 1."""
        return self.n_overridden / self.n_reviewed


def overdue_reviews(graph: LoanGraph, log: OutboundLog, now: datetime) -> list[OverdueReview]:
    """Returns the cases whose review is overdue, longest overdue first.

    Args:
        graph: The graph, with its checkpointer.
        log: The outbound requests: who was ever asked for a review.
        now: The present time, UTC.
    """
    found = []
    for thread in log.threads("notify_underwriters"):
        state = graph.get_state({"configurable": {"thread_id": thread}})
        waits_at = sorted(_REVIEWS.intersection(state.next))
        due_at = state.values.get("review_due_at")
        if waits_at and due_at and datetime.fromisoformat(due_at) < now:
            assigned_to = str(state.values.get("assignment", {}).get("reviewer_id", ""))
            found.append(OverdueReview(thread, waits_at[0], datetime.fromisoformat(due_at), assigned_to))
    return sorted(found, key=lambda each: (each.due_at, each.thread))


def decision_records(http: httpx.Client) -> list[Mapping[str, Any]]:
    """Returns every decision record of the back office, oldest first."""
    response = http.get("/decisions")
    response.raise_for_status()
    return list(response.json()["items"])


def overrides(records: Iterable[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Returns the records of decisions against the score, each with its score, route, reasons and reviewer."""
    return [record for record in records if record["override"]]


def override_rates(records: Iterable[Mapping[str, Any]], by: Literal["reviewer", "segment"]) -> list[OverrideRate]:
    """Returns how often people decided against the score, by who reviewed first or by segment, highest rate first."""
    counts: dict[str, list[bool]] = {}
    for record in records:
        if not str(record["reviewer"]).startswith(_SYSTEM):
            counts.setdefault(str(record[by]), []).append(bool(record["override"]))
    rates = [OverrideRate(name, len(found), sum(found)) for name, found in counts.items()]
    return sorted(rates, key=lambda each: (-each.rate, each.name))
