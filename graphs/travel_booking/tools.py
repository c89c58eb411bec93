"""The production tools: suppliers and payments over HTTP, effects exactly once, nothing real elsewhere."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping
from http import HTTPStatus
from typing import Any

import httpx
from langchain_core.runnables import RunnableConfig
from langchain_core.tools import ToolException
from langgraph.config import get_store

from agentctl.sandbox.registry import ToolRegistry
from graphs.common.effects import EffectClient, access_from_environment, http_client, json_text
from graphs.common.outbound import OutboundLog
from graphs.common.owners import caller_of
from graphs.common.services import CircuitBreaker, Retries, ServiceRefused, ServiceUnavailable
from graphs.travel_booking.application import QuoteBook, application_database
from graphs.travel_booking.catalog import registry_of
from graphs.travel_booking.limits import RateExceeded, SupplierLimits
from graphs.travel_booking.memory import travellers_namespace
from graphs.travel_booking.operations.outbox import Event, Outbox
from graphs.travel_booking.policy import CURRENT_POLICY, load_policies
from graphs.travel_booking.results import NO_CURRENCY, Fares, HoldState, InvalidResult, Rooms, read_as

DEBUG_IDENTITY = "travel-agent@debug"
_SERVICES = (
    "hotels",
    "holds",
    "fareholds",
    "roomholds",
    "releases",
    "captures",
    "paymentrefunds",
    "flightbookings",
    "hotelbookings",
    "cancellations",
)


class ProductionTools:
    """The tools over the back office.

    Args:
        http: Client with base address, timeout and identity header.
        database_url: The application's database.
        env: Where AGENTCTL_ENV is read, at each call.
        retries: For transient errors.
        breaker: Makes the circuit breaker of one service; each airline is a service of its own.
        limits: How often each supplier may be asked.
        log: The outbound requests; by default those of the database.
    """

    def __init__(
        self,
        http: httpx.Client,
        database_url: str,
        env: Mapping[str, str],
        retries: Retries,
        breaker: Callable[[], CircuitBreaker],
        limits: SupplierLimits,
        log: OutboundLog | None = None,
    ) -> None:
        database = application_database(database_url)
        log = log or OutboundLog(database)
        self._client = EffectClient(_SERVICES, http, log, env, retries, breaker)
        self._airlines = {
            airline: EffectClient(("flights",), http, log, env, retries, breaker)
            for policy in load_policies().values()
            for airline in policy.airlines
        }
        self._limits = limits
        self._quotes = QuoteBook(database)
        self._outbox = Outbox(database)

    def registry(self) -> ToolRegistry:
        """Returns them as the workflow takes them."""
        return registry_of(
            {
                "search_flights": self.search_flights,
                "search_hotels": self.search_hotels,
                "check_hold": self.check_hold,
                "hold_fare": self.hold_fare,
                "hold_room": self.hold_room,
                "release_hold": self.release_hold,
                "register_quote": self.register_quote,
                "capture_payment": self.capture_payment,
                "refund_payment": self.refund_payment,
                "confirm_flight": self.confirm_flight,
                "confirm_hotel": self.confirm_hotel,
                "cancel_booking": self.cancel_booking,
                "publish_booking": self.publish_booking,
                "remember_preference": self.remember_preference,
            }
        )

    def search_flights(
        self, airline: str, origin: str, destination: str, depart_on: str, return_on: str, travellers: int
    ) -> str:
        """Asks an airline; one that is down or asked too often has no answer, and holds no other up."""
        client = self._airlines.get(airline)
        if client is None:
            raise ToolException(f"{airline} is no airline that we sell")
        self._turn(airline)
        route = {"origin": origin, "destination": destination, "depart_on": depart_on, "return_on": return_on}
        key = "/".join([*route.values(), str(travellers), airline])
        try:
            return _kept(Fares, _found(client, "flights", key, {"airline": airline, **route}))
        except ServiceUnavailable as down:
            raise ToolException(str(down)) from down

    def search_hotels(self, city: str, check_in: str, check_out: str, guests: int) -> str:
        """Looks for rooms."""
        self._turn("hotels")
        stay = {"city": city, "check_in": check_in, "check_out": check_out}
        return _kept(Rooms, _found(self._client, "hotels", f"{check_in}/{check_out}/{guests}/{city}", stay))

    def check_hold(self, kind: str, hold_id: str, total: str, currency: str) -> str:
        """Asks about a hold."""
        return _kept(HoldState, self._client.read("holds", hold_id))

    def hold_fare(
        self,
        offer_id: str,
        airline: str,
        travellers: int,
        total: str,
        currency: str,
        tool_call_id: str,
        config: RunnableConfig,
    ) -> str:
        """Holds a fare."""
        body = {
            "offer_id": offer_id,
            "airline": airline,
            "travellers": travellers,
            "total": total,
            "currency": currency,
        }
        return _kept(
            HoldState, self._cause("fareholds", "hold_fare", body, config, tool_call_id), hold_id="fare_hold_id"
        )

    def hold_room(
        self,
        offer_id: str,
        hotel: str,
        check_in: str,
        check_out: str,
        guests: int,
        total: str,
        currency: str,
        tool_call_id: str,
        config: RunnableConfig,
    ) -> str:
        """Holds a room."""
        body = {
            "offer_id": offer_id,
            "hotel": hotel,
            "check_in": check_in,
            "check_out": check_out,
            "guests": guests,
            "total": total,
            "currency": currency,
        }
        return _kept(
            HoldState, self._cause("roomholds", "hold_room", body, config, tool_call_id), hold_id="room_hold_id"
        )

    def release_hold(self, kind: str, hold_id: str, tool_call_id: str, config: RunnableConfig) -> str:
        """Gives a hold back."""
        body = {"kind": kind, "hold_id": hold_id}
        return _fields(self._cause("releases", "release_hold", body, config, tool_call_id), "hold_id", "status")

    def register_quote(
        self,
        previous_version: int,
        lines: list[dict[str, str]],
        total: str,
        currency: str,
        paid: str,
        because: str,
        tool_call_id: str,
        config: RunnableConfig,
    ) -> str:
        """Gives a quote its version."""
        self._client.refuse_outside_production("register_quote")
        content = {
            "previous_version": previous_version,
            "lines": lines,
            "total": total,
            "currency": currency,
            "paid": paid,
            "because": because,
        }
        return json_text({"quote_version": self._quotes.register(_thread(config), content)})

    def capture_payment(
        self,
        quote_version: int,
        amount: str,
        currency: str,
        payment_method: str,
        step_up: str,
        tool_call_id: str,
        config: RunnableConfig,
    ) -> str:
        """Charges."""
        body = {
            "quote_version": quote_version,
            "amount": amount,
            "currency": currency,
            "payment_method": payment_method,
            "step_up": step_up,
        }
        record = self._cause("captures", "capture_payment", body, config, tool_call_id)
        return _fields(record, "payment_id", "status", "amount", "currency", payment_id="capture_id")

    def refund_payment(
        self, payment_id: str, amount: str, currency: str, reason: str, tool_call_id: str, config: RunnableConfig
    ) -> str:
        """Pays back."""
        body = {"payment_id": payment_id, "amount": amount, "currency": currency, "reason": reason}
        record = self._cause("paymentrefunds", "refund_payment", body, config, tool_call_id)
        return _fields(record, "refund_id", "status", "amount", "currency", refund_id="payment_refund_id")

    def confirm_flight(self, hold_id: str, traveller: str, tool_call_id: str, config: RunnableConfig) -> str:
        """Books a flight."""
        body = {"hold_id": hold_id, "traveller": traveller}
        record = self._cause("flightbookings", "confirm_flight", body, config, tool_call_id)
        return _fields(record, "booking_id", "status", booking_id="flight_booking_id")

    def confirm_hotel(self, hold_id: str, traveller: str, tool_call_id: str, config: RunnableConfig) -> str:
        """Books a room."""
        body = {"hold_id": hold_id, "traveller": traveller}
        record = self._cause("hotelbookings", "confirm_hotel", body, config, tool_call_id)
        return _fields(record, "booking_id", "status", booking_id="hotel_booking_id")

    def cancel_booking(self, kind: str, booking_id: str, tool_call_id: str, config: RunnableConfig) -> str:
        """Cancels a booking."""
        body = {"kind": kind, "booking_id": booking_id}
        return _fields(
            self._cause("cancellations", "cancel_booking", body, config, tool_call_id), "booking_id", "status"
        )

    def publish_booking(
        self,
        event: str,
        quote_version: int,
        flight_booking: str,
        hotel_booking: str,
        total: str,
        currency: str,
        tool_call_id: str,
        config: RunnableConfig,
    ) -> str:
        """Writes the booking and its event; the relay sends it. The event's id stays the same however often it runs."""
        self._client.refuse_outside_production("publish_booking")
        thread = _thread(config)
        content = {
            "event": event,
            "quote_version": quote_version,
            "flight_booking": flight_booking,
            "hotel_booking": hotel_booking,
            "total": total,
            "currency": currency,
        }
        self._outbox.record(Event(f"{thread}:{tool_call_id}", thread, content))
        return json_text({"event": event, "quote_version": quote_version, "status": "recorded"})

    def remember_preference(self, name: str, value: str, tool_call_id: str, config: RunnableConfig) -> str:
        """Writes to the memory store; the key is the preference, so a repeat changes nothing."""
        self._client.refuse_outside_production("remember_preference")
        store = get_store()
        if store is None:
            raise ToolException("there is no memory store: nothing was remembered")
        store.put(travellers_namespace(caller_of(config["configurable"]).owner), name, {"value": value})
        return json_text({"remembered": name, "value": value})

    def _cause(
        self, service: str, operation: str, body: Mapping[str, Any], config: RunnableConfig, call_id: str
    ) -> str:
        return self._client.cause(service, operation, body, config=config, call_id=call_id)

    def _turn(self, supplier: str) -> None:
        try:
            self._limits.wait(supplier)
        except RateExceeded as exceeded:
            raise ToolException(str(exceeded)) from exceeded


def production_tools(
    base_url: str,
    *,
    identity: str,
    database_url: str,
    env: Mapping[str, str] = os.environ,
    http: httpx.Client | None = None,
    timeout_s: float = 5.0,
    retries: Retries | None = None,
    breaker: Callable[[], CircuitBreaker] = CircuitBreaker,
    limits: SupplierLimits | None = None,
    log: OutboundLog | None = None,
) -> ToolRegistry:
    """Builds the production registry.

    Args:
        base_url: The back office.
        identity: The service identity that calls are made under.
        database_url: The application's database: `sqlite:///file` or `postgresql://...`.
        env: Tools with an effect refuse unless its AGENTCTL_ENV is `production`.
        http: A client to use, made by `http_client`; by default one that keeps no connection open.
        timeout_s: Per request, for the default client.
        retries: For transient errors.
        breaker: Makes the circuit breaker of one service.
        limits: How often each supplier may be asked; by default as the present policy says.
        log: The outbound requests; by default those of the database.
    """
    client = http or http_client(base_url, identity=identity, timeout_s=timeout_s, keep_alive=False)
    return ProductionTools(
        client, database_url, env, retries or Retries(), breaker, limits or _agreed(), log
    ).registry()


def registry_from_environment(env: Mapping[str, str] = os.environ) -> ToolRegistry:
    """Builds the production registry from TRAVEL_BACKOFFICE_URL, TRAVEL_SERVICE_IDENTITY and TRAVEL_DATABASE_URL.

    Outside production the address alone is needed: reads may run, under an identity that may do nothing else.

    Raises:
        KeyError: a variable is missing.
    """
    access = access_from_environment("TRAVEL", env, debug_identity=DEBUG_IDENTITY)
    return production_tools(
        env["TRAVEL_BACKOFFICE_URL"], identity=access.identity, database_url=access.database_url, env=env
    )


def _agreed() -> SupplierLimits:
    policy = load_policies()[CURRENT_POLICY]
    return SupplierLimits(policy.calls_per_minute, policy.burst)


def _thread(config: RunnableConfig) -> str:
    return str(config["configurable"]["thread_id"])


def _found(client: EffectClient, service: str, key: str, asked: Mapping[str, str]) -> str:
    """Reads a search; where there is no such route or city, it found nothing."""
    try:
        return client.read(service, key)
    except ToolException as refused:
        if not isinstance(refused.__cause__, ServiceRefused) or refused.__cause__.status != HTTPStatus.NOT_FOUND:
            raise
    return json_text({**asked, "currency": NO_CURRENCY, "offers": []})


def _kept(shape: type[Fares] | type[Rooms] | type[HoldState], record: str, **sources: str) -> str:
    """Keeps what the schema knows: whatever else a supplier sends reaches neither state nor model."""
    found = json.loads(record)
    try:
        return json_text(read_as(shape, {**found, **{name: found[old] for name, old in sources.items()}}).model_dump())
    except InvalidResult as invalid:
        raise ToolException(f"the answer cannot be right: {invalid}") from invalid


def _fields(record: str, *names: str, **sources: str) -> str:
    """Keeps the named fields of a receiver's record; `sources` names the ones that the receiver calls otherwise."""
    found = json.loads(record)
    return json_text({name: found.get(sources.get(name, name), "") for name in names})
