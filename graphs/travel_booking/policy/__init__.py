"""The booking policy: versioned files, and what reads them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

from graphs.common.versions import read_policies

CURRENT_POLICY = "2026-11"
_FOLDER = Path(__file__).parent


@dataclass(frozen=True, slots=True)
class Policy:
    """One version of the policy.

    Attributes:
        version: Its name, `YYYY-MM`.
        airlines: Whom fares are asked of, best partners first.
        max_fan_out: Most airlines asked at a time.
        max_searches: Most searches for rooms in one visit of the hotel agent, where results cannot be used.
        calls_per_minute: How often one supplier may be asked.
        burst: Calls to one supplier that may come at once.
        max_hand_backs: Hand-backs after which the traveller is asked.
        step_up_above: Amounts above which an approval needs a step-up proof, by currency.
        remind_within: How long before a hold ends its traveller is reminded.
    """

    version: str
    airlines: tuple[str, ...]
    max_fan_out: int
    max_searches: int
    calls_per_minute: float
    burst: int
    max_hand_backs: int
    step_up_above: Mapping[str, Decimal]
    remind_within: timedelta

    def needs_step_up(self, amount: Decimal, currency: str) -> bool:
        """Tells whether paying this amount needs a step-up proof; in a currency that is not listed it always does."""
        limit = self.step_up_above.get(currency)
        return amount > 0 and (limit is None or amount > limit)


def load_policies(folder: Path = _FOLDER) -> dict[str, Policy]:
    """Reads every version of the policy, by version."""
    return read_policies(folder, _policy)


def _policy(document: Mapping[str, Any]) -> Policy:
    search, approval = document["search"], document["approval"]
    return Policy(
        version=document["version"],
        airlines=tuple(search["airlines"]),
        max_fan_out=search["max_fan_out"],
        max_searches=search["max_searches"],
        calls_per_minute=search["calls_per_minute"],
        burst=search["burst"],
        max_hand_backs=document["handoffs"]["max_hand_backs"],
        step_up_above={currency: Decimal(amount) for currency, amount in approval["step_up_above"].items()},
        remind_within=timedelta(hours=approval["remind_within_hours"]),
    )
