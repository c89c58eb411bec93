"""The travel workflow against a running back office, as tests drive it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import httpx
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.store.base import BaseStore
from langgraph.types import Command

from agentctl.sandbox.registry import ToolRegistry
from fixtures.backoffice import BackOffice, running
from fixtures.backoffice.travel import IDENTITY, put_fares, put_payment_method, put_rooms
from fixtures.incidents.production import tool_options
from graphs.common.effects import http_client
from graphs.common.services import Retries
from graphs.travel_booking.door import say
from graphs.travel_booking.graph import TravelGraph, build_graph
from graphs.travel_booking.limits import SupplierLimits
from graphs.travel_booking.model import make_model
from graphs.travel_booking.tools import production_tools

NOW = datetime(2026, 11, 30, 12, tzinfo=UTC)
OUT, BACK = "2026-12-10", "2026-12-13"
TRIP = f"A trip from Lisbon to Oslo, leaving {OUT}, back {BACK}."
CARD = "pm_visa"


@dataclass(frozen=True)
class Agency:
    """A back office with suppliers, and what builds the workflow over it."""

    backoffice: BackOffice
    folder: Path
    http: httpx.Client

    @property
    def database_url(self) -> str:
        return str(self.folder / "application.sqlite")

    def fares(self, airline: str, *offers: Mapping[str, Any], out: str = OUT, back: str = BACK, **options: Any) -> None:
        """Stores what an airline offers from Lisbon to Oslo."""
        put_fares(self.backoffice, airline, ("Lisbon", "Oslo"), (out, back), offers, **options)

    def rooms(self, *offers: Mapping[str, Any], check_in: str = OUT, check_out: str = BACK, **options: Any) -> None:
        """Stores which rooms Oslo has."""
        put_rooms(self.backoffice, "Oslo", (check_in, check_out), offers, **options)

    def tools(self, **options: Any) -> ToolRegistry:
        """The production registry; its retries do not wait."""
        usual = {
            **tool_options(self.http, identity=IDENTITY, database_url=self.database_url),
            "retries": Retries(sleep=lambda _: None),
            "limits": SupplierLimits(per_minute=6000),
        }
        return production_tools(self.backoffice.url, **{**usual, **options})

    def graph(
        self,
        saver: BaseCheckpointSaver[Any],
        *,
        tools: ToolRegistry | None = None,
        memory: BaseStore | None = None,
        clock: Callable[[], datetime] = lambda: NOW,
        **options: Any,
    ) -> TravelGraph:
        """The workflow over the production tools, with a checkpointer."""
        model = options.pop("model", None) or make_model(env={})
        graph = build_graph(tools or self.tools(), model=model, memory=memory, clock=clock, **options)
        graph.checkpointer = saver
        return graph

    def effects(self, kind: str) -> list[dict[str, Any]]:
        """The effects of a kind, oldest first."""
        return self.backoffice.effects(kind)

    def holds(self) -> dict[str, str]:
        """The status of every hold at its supplier, by offer; of several on one offer, the latest."""
        return {hold["offer_id"]: hold["status"] for hold in self.backoffice.records("holds")}


@contextmanager
def agency_world(folder: Path) -> Iterator[Agency]:
    """Runs a back office with one fare, one room and one payment method."""
    with running(folder / "backoffice.sqlite") as backoffice, http_client(backoffice.url, identity=IDENTITY) as http:
        agency = Agency(backoffice, folder, http)
        put_payment_method(backoffice, CARD)
        agency.fares("aurora", fare("au-1"))
        agency.rooms(room("grand"))
        yield agency


def fare(offer_id: str, total: str = "200.00", **more: Any) -> dict[str, Any]:
    """A fare that arrives at 14:00 on the day of departure unless said otherwise."""
    times = {"departs_at": "09:00", "arrives_on": OUT, "arrives_at": "14:00"}
    return {"offer_id": offer_id, **times, "stops": 0, "total": total, **more}


def room(offer_id: str, total: str = "300.00", **more: Any) -> dict[str, Any]:
    """A room of a hotel with four stars in the centre unless said otherwise."""
    facts = {"hotel": offer_id.title(), "stars": 4, "area": "Centre", "chain": "", "description": "A quiet house."}
    return {"offer_id": offer_id, **facts, "total": total, **more}


def traveller(thread: str, *, user_id: str = "u-1", tenant: str = "acme", **more: Any) -> RunnableConfig:
    """The config of a traveller's run."""
    return {
        "configurable": {
            "thread_id": thread,
            "user_id": user_id,
            "tenant": tenant,
            "today": NOW.date().isoformat(),
            "payment_method": CARD,
            **more,
        }
    }


def resume(graph: TravelGraph, config: RunnableConfig, value: object) -> dict[str, Any]:
    """Answers an interrupt with the stock API and returns the state."""
    result: dict[str, Any] = graph.invoke(Command(resume=value), config, durability="sync")
    return result


def asked(graph: TravelGraph, config: RunnableConfig) -> dict[str, Any]:
    """What the thread asks."""
    (question,) = graph.get_state(config).interrupts
    return dict(question.value)


def approve(graph: TravelGraph, config: RunnableConfig, **more: Any) -> dict[str, Any]:
    """Approves the quote that the thread shows."""
    return resume(graph, config, {"approved": True, "quote_version": asked(graph, config)["quote_version"], **more})


def quoted(agency: Agency, saver: BaseCheckpointSaver[Any], thread: str = "t", text: str = TRIP) -> TravelGraph:
    """A thread that waits for the approval of its first quote."""
    graph = agency.graph(saver)
    say(graph, traveller(thread), text)
    return graph


def calls_of(messages: Sequence[Any], name: str) -> list[Mapping[str, Any]]:
    """The tool calls of that name in a thread's messages."""
    return [call for message in messages for call in getattr(message, "tool_calls", ()) if call["name"] == name]
