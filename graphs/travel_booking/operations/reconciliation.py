"""Reconciliation: what the payment provider has moved against what the threads know of it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Literal

from graphs.travel_booking.money import amount
from graphs.travel_booking.state import Payment

FindingKind = Literal[
    "unknown_thread", "thread_does_not_know", "provider_does_not_know", "amounts_differ", "unfinished"
]
Movement = Literal["capture", "refund"]


@dataclass(frozen=True, slots=True)
class Transaction:
    """Money that the provider moved.

    Attributes:
        id: The provider's number.
        movement: Which way.
        thread: The thread that asked, by the idempotency key.
        amount: How much.
    """

    id: str
    movement: Movement
    thread: str
    amount: Decimal


@dataclass(frozen=True, slots=True)
class Finding:
    """What does not match.

    Attributes:
        kind: `thread_does_not_know`: the money moved and the run died before its checkpoint; running it on settles it.
            `unfinished`: a marker without a transaction; running it on asks the provider. The others need a person.
        thread: The thread.
        transaction: The provider's number, '' where there is none.
    """

    kind: FindingKind
    thread: str
    transaction: str


def transactions_of(captures: Iterable[Mapping[str, Any]], refunds: Iterable[Mapping[str, Any]]) -> list[Transaction]:
    """Reads the provider's records; the reference is the idempotency key, `THREAD:OPERATION:...`."""
    return [
        *(_transaction(each, "capture", each["capture_id"]) for each in captures),
        *(_transaction(each, "refund", each["payment_refund_id"]) for each in refunds),
    ]


def reconcile(transactions: Iterable[Transaction], payments: Mapping[str, Payment | None]) -> list[Finding]:
    """Matches transactions against threads.

    Args:
        transactions: Every transaction of the period.
        payments: The `payment` of every thread of the period, None for one that has none.

    Returns:
        What does not match, by thread.
    """
    moved = {each.id: each for each in transactions}
    known = {number: (thread, how_much) for thread, payment in payments.items() for number, how_much in _known(payment)}
    found = [_unmatched(each, payments) for number, each in moved.items() if number not in known]
    for number, (thread, how_much) in known.items():
        if number not in moved:
            found.append(Finding("provider_does_not_know", thread, number))
        elif moved[number].amount != how_much or moved[number].thread != thread:
            found.append(Finding("amounts_differ", thread, number))
    charged = {each.thread for each in found if each.kind == "thread_does_not_know"}
    for thread, payment in payments.items():
        if payment and payment["status"] == "pending" and thread not in charged:
            found.append(Finding("unfinished", thread, ""))
    return sorted(found, key=lambda each: (each.thread, each.kind, each.transaction))


def _unmatched(transaction: Transaction, payments: Mapping[str, Payment | None]) -> Finding:
    kind: FindingKind = "thread_does_not_know" if transaction.thread in payments else "unknown_thread"
    return Finding(kind, transaction.thread, transaction.id)


def _known(payment: Payment | None) -> Iterable[tuple[str, Decimal]]:
    if payment:
        yield from ((each["payment_id"], amount(each["amount"])) for each in payment.get("captures", []))
        yield from ((each["refund_id"], amount(each["amount"])) for each in payment.get("refunds", []))


def _transaction(record: Mapping[str, Any], movement: Movement, number: str) -> Transaction:
    thread = str(record["reference"]).partition(f":{movement}")[0]
    return Transaction(number, movement, thread, amount(record["amount"]))
