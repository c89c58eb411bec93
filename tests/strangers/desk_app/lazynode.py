"""A node that builds its ToolNode anew each time it runs; one of its tools also leads to another node."""

from typing import Annotated, NotRequired

from langchain_core.messages import ToolMessage
from langchain_core.tools import InjectedToolCallId, tool
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode
from langgraph.types import Command

from .model import Model
from .world import look_up, pay_back


class State(MessagesState):
    status: NotRequired[str]
    noted: NotRequired[str]


def tools_of(customer: str) -> list:
    @tool
    def lookup_order(order_id: str, tool_call_id: Annotated[str, InjectedToolCallId]) -> Command:
        """Looks an order up."""
        status = look_up(order_id)["status"]
        said = ToolMessage(f"it is {status}", name="lookup_order", tool_call_id=tool_call_id)
        return Command(update={"status": status, "messages": [said]}, goto="note")

    @tool
    def issue_refund(order_id: str) -> str:
        """Pays money back."""
        return pay_back(order_id)

    return [lookup_order, issue_refund]


def agent(state: State) -> dict:
    return {"messages": [Model().bind_tools(tools_of("ada")).invoke(state["messages"])]}


def act(state: State):
    return ToolNode(tools_of("ada")).invoke(state)


def note(state: State) -> dict:
    return {"noted": f"it was {state['status']}"}


builder = StateGraph(State)
builder.add_node("agent", agent)
builder.add_node("act", act, destinations=("note",))
builder.add_node("note", note)
builder.add_edge(START, "agent")
builder.add_conditional_edges("agent", lambda state: "act" if state["messages"][-1].tool_calls else END)
builder.add_edge("act", "agent")
