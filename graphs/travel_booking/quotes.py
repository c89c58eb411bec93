"""Quotes: what a trip costs, what differs from the quote before, and when the first of its holds ends."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from graphs.travel_booking import money
from graphs.travel_booking.payment import paid_net
from graphs.travel_booking.state import Change, Hold, Line, Quote, TravelState
from graphs.travel_booking.trips import unmet


def lines_of(fare: Hold, room: Hold) -> list[Line]:
    """Returns the lines for what is held or booked."""
    return [
        Line(kind="flight", reference=fare["hold_id"], text=fare_text(fare), total=fare["total"]),
        Line(kind="hotel", reference=room["hold_id"], text=room_text(room), total=room["total"]),
    ]


def fare_text(fare: Hold) -> str:
    """Describes a fare in one line."""
    facts = fare["facts"]
    stops = {0: "nonstop", 1: "1 stop"}.get(facts["stops"], f"{facts['stops']} stops")
    out = f"{facts['depart_on']} {facts['departs_at']}, arriving {facts['arrives_on']} {facts['arrives_at']}"
    route = f"{facts['origin']} to {facts['destination']} with {fare['supplier']}"
    return f"{route}, {out}, {stops}, back {facts['return_on']}"


def room_text(room: Hold) -> str:
    """Describes a room in one line."""
    facts = room["facts"]
    nights = f"{facts['check_in']} to {facts['check_out']}"
    return f"{room['supplier']} ({facts['stars']} stars, {facts['area']}), {nights}"


def draft(state: TravelState, fare: Hold, room: Hold, *, because: str) -> Quote:
    """Returns the quote of a fare and a room, before it has a version and a time."""
    lines, previous = lines_of(fare, room), state.get("quote")
    cost = money.total(line["total"] for line in lines)
    paid = paid_net(state.get("payment"))
    ends = sorted(hold["expires_at"] for hold in (fare, room) if hold["status"] == "held")
    quote = Quote(
        lines=lines,
        total=money.text(cost),
        currency=fare["currency"],
        paid=money.text(paid),
        due=money.text(cost - paid),
        expires_at=ends[0] if ends else "",
        because=because,
        unmet=unmet(state["trip_constraints"], fare["facts"], room["facts"], cost),
    )
    return {**quote, "changes": changes_between(previous, quote)}


def changes_between(before: Mapping[str, Any] | None, after: Mapping[str, Any]) -> list[Change]:
    """Says what differs between two quotes: the total, and each line that is not the same; nothing without a first."""
    if not before:
        return []
    old, new = _shown(before), _shown(after)
    names = [*new, *(name for name in old if name not in new)]
    pairs = [(name, old.get(name, "none"), new.get(name, "none")) for name in names]
    return [Change(what=name, before=left, after=right) for name, left, right in pairs if left != right]


def _shown(quote: Mapping[str, Any]) -> dict[str, str]:
    lines = {line["kind"]: f"{line['text']}: {line['total']}" for line in quote.get("lines", [])}
    return {"total": f"{quote['total']} {quote['currency']}", **lines}
