"""The way in: messages and answers of travellers are cleaned, owned and timed before anything of them is stored."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from datetime import UTC, datetime
from typing import Any, Literal

from langchain_core.messages import HumanMessage
from langchain_core.runnables import RunnableConfig

from graphs.common.answers import AnswerClaims, answer
from graphs.common.owners import caller_of, check_owner
from graphs.travel_booking.graph import TravelGraph
from graphs.travel_booking.redaction import redacted

Strategy = Literal["interrupt", "enqueue", "reject"]

_SEARCHING = frozenset({"intake", "flight_agent", "search_airline", "hotel_agent", "search_hotels", "payments"})
_ASKING = frozenset({"approval", "ask_traveller"})
_PAYING = frozenset({"recheck", "capture"})


class TripBusy(RuntimeError):
    """A message came for a trip that stopped at a step which must end first."""


def multitask_strategy(running: Collection[str]) -> Strategy:
    """Returns what becomes of a message that arrives during a run.

    Searching may be stopped for it: nothing was held yet that the thread does not know. A hold, a confirmation or a
    refund is waited for. Around the charge it is refused, so that the traveller sees the outcome before they go on.

    Args:
        running: The nodes that run now, or would next.
    """
    if any(node in _PAYING for node in running):
        return "reject"
    return "interrupt" if all(node in _SEARCHING | _ASKING for node in running) else "enqueue"


def say(
    graph: TravelGraph,
    config: RunnableConfig,
    text: str,
    *,
    clock: Callable[[], datetime] = lambda: datetime.now(UTC),
) -> dict[str, Any]:
    """Sends a traveller's message to a thread that no run is on, and returns the state.

    Args:
        graph: The graph, with its checkpointer.
        config: Names the thread, and the authenticated caller.
        text: What the traveller wrote; numbers that must not be stored are taken out here.
        clock: Gives the day of the message, which is kept with the run so that a replay reads it alike.

    Raises:
        NotTheOwner: the caller has no business on this thread.
        TripBusy: the thread stopped while something was held, paid for or booked; it must be run on first.
    """
    configurable = {"today": clock().date().isoformat(), **config.get("configurable", {})}
    state = graph.get_state(config)
    check_owner(state.values.get("owner"), caller_of(configurable))
    if not state.interrupts and state.next and multitask_strategy(state.next) != "interrupt":
        raise TripBusy(f"the trip is at {', '.join(state.next)}: run it on before it takes a message")
    result: dict[str, Any] = graph.invoke(
        {"messages": [HumanMessage(redacted(text))]}, {**config, "configurable": configurable}, durability="sync"
    )
    return result


def reply(
    graph: TravelGraph, config: RunnableConfig, value: object, *, claims: AnswerClaims, asked: str | None = None
) -> Any:
    """Answers a quote or a question; see `graphs.common.answers.answer`. Its texts are cleaned first."""
    return answer(graph, config, _cleaned(value), claims=claims, asked=asked)


def _cleaned(value: object) -> object:
    if isinstance(value, str):
        return redacted(value)
    if isinstance(value, Mapping):
        return {name: _cleaned(each) for name, each in value.items()}
    return [_cleaned(each) for each in value] if isinstance(value, list) else value
