"""What every node works with, and the steps that several of them take."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, SystemMessage
from langchain_core.runnables import RunnableConfig
from langgraph.config import get_stream_writer
from langgraph.types import Command
from pydantic import BaseModel, ValidationError

from agentctl.sandbox.registry import ToolRegistry
from graphs.common.calls import Called, call_tool
from graphs.common.owners import Caller, caller_of, check_owner
from graphs.common.versions import policy_of
from graphs.travel_booking.policy import Policy
from graphs.travel_booking.state import Handoff, HandoffKind, HoldRef, Question, Settings, TravelState, Tried
from graphs.travel_booking.trips import wishes_of


@dataclass(frozen=True, slots=True)
class Kit:
    """What the nodes need. Nothing reaches outside but through the tools and the memory store.

    Attributes:
        model: The chat model of intake and of both agents.
        tools: The tool registry.
        policies: Every version of the policy.
        defaults: Settings that a run's configuration may override.
        clock: Returns the present time; it dates what is written and never decides a route.
    """

    model: BaseChatModel
    tools: ToolRegistry
    policies: Mapping[str, Policy]
    defaults: Settings
    clock: Callable[[], datetime]

    def settings(self, config: RunnableConfig) -> Settings:
        """Returns the run's settings."""
        return self.defaults.over(config.get("configurable", {}))

    def caller(self, config: RunnableConfig) -> Caller:
        """Returns who calls."""
        return caller_of(config.get("configurable", {}))

    def check(self, state: TravelState, config: RunnableConfig) -> None:
        """Refuses a caller who has no business on the thread.

        Raises:
            NotTheOwner: they have none.
        """
        check_owner(state.get("owner"), self.caller(config))

    def policy(self, state: TravelState) -> Policy:
        """Returns the policy that the trip is handled by."""
        return policy_of(self.policies, state.get("policy_version") or self.defaults.policy_version)

    def now(self) -> str:
        """Returns the present time, ISO."""
        return self.clock().isoformat(timespec="seconds")

    def call(self, name: str, args: Mapping[str, Any], *, id: str, config: RunnableConfig) -> Called:
        """Calls a tool; see `call_tool`."""
        return call_tool(self.tools, name, args, id=id, config=config)

    def choose(
        self, prompt: str, briefing: str, choices: tuple[type[BaseModel], ...], config: RunnableConfig
    ) -> BaseModel | None:
        """Asks the model to choose.

        Args:
            prompt: The system prompt.
            briefing: What it decides from: typed facts as JSON, never a supplier's text.
            choices: What it may choose; it calls one of them.
            config: The node's.

        Returns:
            The choice, None where it chose nothing that can be read.
        """
        sampling = self.sampling(config)
        bound = self.model.bind_tools(choices, tool_choice="any")
        answer = bound.invoke([SystemMessage(prompt), HumanMessage(briefing)], config, **sampling)
        return read_choice(answer, choices)

    def release(self, old: HoldRef | None, config: RunnableConfig) -> list[AnyMessage]:
        """Gives a hold back and returns the call's messages, none where there is nothing to give back."""
        if not old:
            return []
        return self.call("release_hold", dict(old), id=f"release_hold:{old['hold_id']}", config=config).messages

    def cancel(self, kind: Literal["fare", "room"], booking_id: str, config: RunnableConfig) -> list[AnyMessage]:
        """Cancels a booking and returns the call's messages, none where there is nothing to cancel."""
        if not booking_id:
            return []
        args = {"kind": kind, "booking_id": booking_id}
        return self.call("cancel_booking", args, id=f"cancel_booking:{booking_id}", config=config).messages

    def sampling(self, config: RunnableConfig) -> dict[str, Any]:
        """Returns the model's sampling options."""
        temperature = self.settings(config).temperature
        return {} if temperature is None else {"temperature": temperature}


def read_choice(answer: AIMessage, choices: tuple[type[BaseModel], ...]) -> BaseModel | None:
    """Reads the first call of a model's answer that is one of the choices and fits it, None where none does."""
    named = {choice.__name__: choice for choice in choices}
    for call in answer.tool_calls:
        if call["name"] in named:
            try:
                return named[call["name"]].model_validate(call["args"])
            except ValidationError:
                continue
    return None


def handoff(
    source: str, target: str, kind: HandoffKind, reason: str, *, tried: Tried | None = None, offer_id: str = ""
) -> Handoff:
    """Returns the record of a hand-off."""
    record = Handoff(source=source, target=target, kind=kind, reason=reason)
    if tried:
        record["tried"] = tried
    if offer_id:
        record["offer_id"] = offer_id
    return record


def ask(source: str, reason: str, *, tried: Tried | None = None, **update: Any) -> Command[Any]:
    """Returns the step to the traveller, who is asked what to do about `reason`; `update` is written with it."""
    return Command(
        goto="ask_traveller",
        update={
            **update,
            "question": Question(reason=reason, problem=""),
            "handoffs": [handoff(source, "ask_traveller", "hand_off", reason, tried=tried)],
        },
    )


def tried_now(state: TravelState, depart_on: str, return_on: str) -> Tried:
    """Returns the record of dates that did not work out for the present wishes."""
    return Tried(depart_on=depart_on, return_on=return_on, wishes=wishes_of(state["trip_constraints"]))


def progress(text: str) -> None:
    """Tells whoever streams `custom` how far the trip is; a text names no person."""
    get_stream_writer()({"progress": text})
