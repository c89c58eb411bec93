"""Re-checking holds at their suppliers: still in force, and at which price."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from langchain_core.messages import AnyMessage
from langchain_core.runnables import RunnableConfig

from graphs.travel_booking.nodes.kit import Kit
from graphs.travel_booking.results import HoldState, InvalidResult, read_as
from graphs.travel_booking.state import Hold, TravelState


@dataclass(frozen=True, slots=True)
class Checked:
    """What a supplier says of a hold.

    Attributes:
        hold: The hold with the supplier's price, or as lapsed; None where there is none.
        lapsed: Whether it is no longer in force.
        changed: Whether its price is another.
        messages: The call.
    """

    hold: Hold | None
    lapsed: bool
    changed: bool
    messages: list[AnyMessage]


def check_holds(kit: Kit, state: TravelState, id: str, config: RunnableConfig) -> tuple[Checked, Checked]:
    """Asks about the fare and the room; one that is booked, or not there, needs no asking.

    Args:
        kit: The nodes' kit.
        state: The thread's.
        id: What the calls' ids begin with.
        config: The node's.
    """
    fare = _check(kit, "fare", state.get("flight_hold"), id, config)
    return fare, _check(kit, "room", state.get("hotel_hold"), id, config)


def _check(kit: Kit, kind: Literal["fare", "room"], hold: Hold | None, id: str, config: RunnableConfig) -> Checked:
    if hold is None or hold["status"] != "held":
        return Checked(hold, False, False, [])
    args = {"kind": kind, "hold_id": hold["hold_id"], "total": hold["total"], "currency": hold["currency"]}
    called = kit.call("check_hold", args, id=f"{id}:{hold['hold_id']}", config=config)
    answer = _read(called.content) if not called.failed else None
    # A hold that became a booking was paid for: a run that repeats the step finds that under the same keys.
    if answer is None or answer.status not in ("held", "booked"):
        lapsed: Hold = {**hold, "status": "lapsed"}
        return Checked(lapsed, True, False, called.messages)
    current: Hold = {**hold, "total": answer.total, "expires_at": answer.expires_at}
    return Checked(current, False, answer.total != hold["total"], called.messages)


def _read(content: Any) -> HoldState | None:
    try:
        return read_as(HoldState, content)
    except InvalidResult:
        return None
