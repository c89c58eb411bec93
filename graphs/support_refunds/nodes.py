"""The nodes: triage, the two agents, and the approval of refunds."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import Any, Literal

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, SystemMessage
from langchain_core.messages.tool import ToolCall
from langchain_core.runnables import RunnableConfig
from langgraph.graph import END
from langgraph.runtime import Runtime
from langgraph.types import Command, interrupt
from pydantic import BaseModel, Field

from agentctl.sandbox.registry import ToolRegistry
from graphs.common.owners import caller_of, check_owner
from graphs.common.versions import policy_of
from graphs.support_refunds import prompts
from graphs.support_refunds.approval import Answer, BadAnswer, Edit, Reject, contradiction, question, read_answer
from graphs.support_refunds.catalog import AGENT_TOOLS
from graphs.support_refunds.facts import order_in
from graphs.support_refunds.memory import read_preferences
from graphs.support_refunds.policy import Policy
from graphs.support_refunds.state import GRAPH_VERSION, Approval, Settings, SupportState

AgentName = Literal["orders_agent", "refunds_agent"]


class Route(BaseModel):
    """Which agent answers the customer."""

    agent: AgentName = Field(description="The agent to route to.")


@dataclass(frozen=True, slots=True)
class Nodes:
    """The nodes over what they need. Nothing here reaches outside but through the tools and the memory store.

    Attributes:
        model: The chat model of triage and of both agents.
        tools: The tool registry.
        policies: Every version of the policy.
        defaults: Settings that a run's configuration may override.
        clock: Returns the present time; asked once per customer message.
    """

    model: BaseChatModel
    tools: ToolRegistry
    policies: Mapping[str, Policy]
    defaults: Settings
    clock: Callable[[], datetime]

    def triage(self, state: SupportState, config: RunnableConfig, runtime: Runtime[None]) -> Command[AgentName]:
        """Routes the customer's message, and reads what is remembered about them."""
        settings = self._settings(config)
        owner = check_owner(state.get("owner"), caller_of(config.get("configurable", {})))
        today = settings.today or self.clock().date().isoformat()
        agent = self._route(state, settings)
        runtime.stream_writer({"progress": f"routed to {agent}"})
        return Command(
            goto=agent,
            update={
                "owner": owner,
                "graph_version": GRAPH_VERSION,
                "policy_version": state.get("policy_version") or settings.policy_version,
                "ticket_id": _ticket(state, settings),
                "asked_on": today,
                "preferences": read_preferences(runtime.store, owner),
                "active_agent": agent,
            },
        )

    def orders_agent(self, state: SupportState, config: RunnableConfig) -> dict[str, Any]:
        """Answers questions about orders."""
        settings = self._settings(config)
        prompt = prompts.orders_prompt(ticket_id=_ticket(state, settings), today=self._today(state, settings))
        return self._ask("orders_agent", prompt, state, config)

    def refunds_agent(self, state: SupportState, config: RunnableConfig) -> dict[str, Any]:
        """Decides refunds."""
        settings = self._settings(config)
        prompt = prompts.refunds_prompt(
            settings.prompt,
            ticket_id=_ticket(state, settings),
            today=self._today(state, settings),
            preferences=state.get("preferences", {}),
        )
        return self._ask("refunds_agent", prompt, state, config)

    def approve_refund(self, state: SupportState, config: RunnableConfig) -> dict[str, Any]:
        """Decides the first undecided refund call: by the policy where it says so, by asking a person otherwise.

        One question per super-step. A bad answer is stored as the problem and asked again in a step of its own, so that
        every answer is judged by the identity of the run that gave it.
        """
        message = _last_message(state)
        call = undecided_refunds(state)[0]
        order = order_in(state["messages"], call["args"]["order_id"])
        problem = contradiction(call["args"], order)
        if order is None or problem:
            return self._decided(state, call, Approval(decision="refuse", by="the workflow", reason=problem))
        policy = self._policy(state)
        if policy.is_automatic(str(order.get("status")), Decimal(call["args"]["amount"])):
            return self._decided(state, call, Approval(decision="approve", by=f"policy {policy.version}", reason=""))
        raw = interrupt(question(str(call["id"]), call["args"], order, state.get("approval_problem", "")))
        caller = caller_of(config.get("configurable", {}))
        try:
            answer = read_answer(
                raw, args=call["args"], order=order, caller=caller, owner=state.get("owner"), policy=policy
            )
        except BadAnswer as bad:
            return {"approval_problem": str(bad)}
        return {
            **self._decided(state, call, _approval(answer, by=caller.actor)),
            **({"messages": [_with_amount(message, call, answer.amount)]} if isinstance(answer, Edit) else {}),
        }

    def _decided(self, state: SupportState, call: ToolCall, approval: Approval) -> dict[str, Any]:
        return {"approvals": {**state.get("approvals", {}), str(call["id"]): approval}, "approval_problem": ""}

    def _route(self, state: SupportState, settings: Settings) -> AgentName:
        """Asks the model; an answer that names no agent goes to the one that cannot pay."""
        router = self.model.bind_tools([Route], tool_choice="Route")
        answer = router.invoke([SystemMessage(prompts.triage_prompt()), *state["messages"]])
        named = answer.tool_calls[0]["args"].get("agent") if answer.tool_calls else None
        return "refunds_agent" if named == "refunds_agent" else "orders_agent"

    def _ask(self, agent: AgentName, prompt: str, state: SupportState, config: RunnableConfig) -> dict[str, Any]:
        check_owner(state.get("owner"), caller_of(config.get("configurable", {})))
        settings = self._settings(config)
        bound = self.model.bind_tools(self.tools.only(*AGENT_TOOLS[agent]))
        sampling = {} if settings.temperature is None else {"temperature": settings.temperature}
        answer = bound.invoke([SystemMessage(prompt), *state["messages"]], config, **sampling)
        return {"messages": [answer], "active_agent": agent}

    def _settings(self, config: RunnableConfig) -> Settings:
        return self.defaults.over(config.get("configurable", {}))

    def _policy(self, state: SupportState) -> Policy:
        return policy_of(self.policies, state.get("policy_version") or self.defaults.policy_version)

    def _today(self, state: SupportState, settings: Settings) -> str:
        return state.get("asked_on") or settings.today or self.clock().date().isoformat()


def after_orders_agent(state: SupportState) -> str:
    """Routes the orders agent's message: calls to the tools, which refuse foreign ones; a reply to the end."""
    return "tools" if _last_message(state).tool_calls else END


def after_refunds_agent(state: SupportState) -> str:
    """Routes the refunds agent's message: refunds to their approval, other calls to the tools, a reply to the end."""
    if not _last_message(state).tool_calls:
        return END
    return "approve_refund" if undecided_refunds(state) else "tools"


def after_approval(state: SupportState) -> str:
    """Asks again, or about the next refund, until each is decided."""
    return "approve_refund" if undecided_refunds(state) else "tools"


def after_tools(state: SupportState) -> str:
    """Returns to the agent that called."""
    return state.get("active_agent") or "orders_agent"


def undecided_refunds(state: SupportState) -> list[ToolCall]:
    """Returns the refund calls of the last message that nobody has decided."""
    approvals = state.get("approvals", {})
    calls = _last_message(state).tool_calls
    return [call for call in calls if call["name"] == "issue_refund" and call["id"] not in approvals]


def _ticket(state: SupportState, settings: Settings) -> str:
    return state.get("ticket_id") or settings.ticket_id or ""


def _last_message(state: SupportState) -> AIMessage:
    found = _last_ai(state["messages"])
    if found is None:
        raise ValueError("the conversation has no message of the agent")
    return found


def _last_ai(messages: Sequence[BaseMessage]) -> AIMessage | None:
    return next((message for message in reversed(messages) if isinstance(message, AIMessage)), None)


def _approval(answer: Answer, *, by: str) -> Approval:
    if isinstance(answer, Reject):
        return Approval(decision="reject", by=by, reason=answer.reason)
    return Approval(decision="approve", by=by, reason=answer.reason if isinstance(answer, Edit) else "")


def _with_amount(message: AIMessage, call: ToolCall, amount: str) -> AIMessage:
    calls = [
        {**other, "args": {**other["args"], "amount": amount}} if other["id"] == call["id"] else other
        for other in message.tool_calls
    ]
    return message.model_copy(update={"tool_calls": calls})
