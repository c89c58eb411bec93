"""Two agents: tools that return a Command, to write a channel of their own and to hand over to the other agent."""

from typing import Annotated, NotRequired

from langchain.agents import AgentState, create_agent
from langchain_core.messages import ToolMessage
from langchain_core.tools import InjectedToolCallId, tool
from langgraph.graph import START, StateGraph
from langgraph.prebuilt import InjectedState
from langgraph.types import Command

from .model import Model
from .world import look_up, pay_back


class State(AgentState):
    status: NotRequired[str]


@tool
def lookup_order(order_id: str, tool_call_id: Annotated[str, InjectedToolCallId]) -> Command:
    """Looks an order up."""
    status = look_up(order_id)["status"]
    said = ToolMessage(f"it is {status}", name="lookup_order", tool_call_id=tool_call_id)
    return Command(update={"status": status, "messages": [said]})


@tool
def transfer_to_refunds(
    state: Annotated[dict, InjectedState], tool_call_id: Annotated[str, InjectedToolCallId]
) -> Command:
    """Hands the customer over."""
    said = ToolMessage("handed over", name="transfer_to_refunds", tool_call_id=tool_call_id)
    return Command(goto="refunds", graph=Command.PARENT, update={"messages": [*state["messages"], said]})


@tool
async def issue_refund(order_id: str) -> str:
    """Pays money back."""
    return pay_back(order_id)


def make():
    builder = StateGraph(State)
    front = create_agent(Model(), tools=[lookup_order, transfer_to_refunds], state_schema=State, name="front")
    refunds = create_agent(Model(), tools=[issue_refund], state_schema=State, name="refunds")
    builder.add_node("front", front, destinations=("refunds",))
    builder.add_node("refunds", refunds)
    builder.add_edge(START, "front")
    return builder.compile()
