"""What a support thread remembers, and the settings that a run gets from its configuration."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, TypedDict

from langchain_core.messages import AnyMessage
from langgraph.graph.message import add_messages

from graphs.common.owners import Owner
from graphs.support_refunds.policy import CURRENT_POLICY
from graphs.support_refunds.prompts import CURRENT_REFUNDS_PROMPT

GRAPH_VERSION = 2


class Approval(TypedDict, total=False):
    """What was decided on one refund call: `approve`, `reject`, or `refuse` where the call contradicts the order."""

    decision: str
    by: str
    reason: str


class SupportState(TypedDict, total=False):
    """State of a thread. Only `messages` has a reducer; every other key has one writer.

    Attributes:
        messages: The conversation.
        owner: Whose thread it is (triage, once).
        graph_version: The version of the graph that wrote last (triage).
        policy_version: The policy the case is judged by; stays what it was when the thread began (triage).
        ticket_id: The ticket of this conversation (triage, once).
        asked_on: The day of the customer's latest message, ISO (triage).
        preferences: What the memory store held on this customer (triage).
        active_agent: The agent whose turn it is (the agents; triage names the first).
        approvals: Decisions by tool call id (approve_refund).
        approval_problem: What was wrong with the latest answer to an approval, '' when nothing was (approve_refund).
    """

    messages: Annotated[list[AnyMessage], add_messages]
    owner: Owner
    graph_version: int
    policy_version: str
    ticket_id: str
    asked_on: str
    preferences: dict[str, str]
    active_agent: str
    approvals: dict[str, Approval]
    approval_problem: str


@dataclass(frozen=True, slots=True)
class Settings:
    """How a run is set up: scalars of `configurable`, which LangGraph keeps in checkpoint metadata.

    Attributes:
        prompt: Version of the refunds agent's prompt.
        temperature: The model's sampling temperature; None leaves it to the model.
        validate_results: Whether tool results are checked at the boundary; off reproduces the days before that fix.
        policy_version: The policy for new threads.
        ticket_id: The ticket for new threads; by default the thread's id.
        today: ISO date to use in place of the clock's.
    """

    prompt: str = CURRENT_REFUNDS_PROMPT
    temperature: float | None = None
    validate_results: bool = True
    policy_version: str = CURRENT_POLICY
    ticket_id: str | None = None
    today: str | None = None

    def over(self, configurable: Mapping[str, Any]) -> Settings:
        """Returns these settings with those that a run's `configurable` names put over them."""
        ticket_id = configurable.get("ticket_id", self.ticket_id or configurable.get("thread_id"))
        today = configurable.get("today", self.today)
        temperature = configurable.get("temperature", self.temperature)
        return Settings(
            prompt=str(configurable.get("prompt", self.prompt)),
            temperature=None if temperature is None else float(temperature),
            validate_results=_flag(configurable.get("validate_results", self.validate_results)),
            policy_version=str(configurable.get("policy_version", self.policy_version)),
            ticket_id=None if ticket_id is None else str(ticket_id),
            today=None if today is None else str(today),
        )


def _flag(value: object) -> bool:
    return value.strip().lower() not in ("false", "0", "no", "") if isinstance(value, str) else bool(value)
