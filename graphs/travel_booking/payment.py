"""What was paid for a trip: sums over its charges and refunds."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal

from graphs.travel_booking import money
from graphs.travel_booking.state import Payment


def paid_net(payment: Payment | None) -> Decimal:
    """Returns what was charged less what went back."""
    if not payment:
        return Decimal("0.00")
    charged = money.total(capture["amount"] for capture in payment.get("captures", []))
    return charged - money.total(refund["amount"] for refund in payment.get("refunds", []))


def is_settled(payment: Payment | None, quote_version: int) -> bool:
    """Tells whether the money for a quote has moved."""
    return (
        bool(payment)
        and payment is not None
        and (payment["status"], payment["quote_version"])
        == (
            "settled",
            quote_version,
        )
    )


def shares(payment: Payment, owed: Decimal) -> Iterator[tuple[str, Decimal]]:
    """Yields which charge pays how much of a refund back, the newest charge first."""
    for capture in reversed(payment.get("captures", [])):
        refunds = (each["amount"] for each in payment.get("refunds", []) if each["payment_id"] == capture["payment_id"])
        share = min(owed, money.amount(capture["amount"]) - money.total(refunds))
        if share > 0:
            yield capture["payment_id"], share
            owed -= share
