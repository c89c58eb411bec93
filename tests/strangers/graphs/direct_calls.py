"""The tutorial loop: a node looks its tools up by name and calls them itself."""

from langchain_core.messages import ToolMessage
from langchain_core.tools import tool
from langgraph.graph import END, START, MessagesState, StateGraph

from tests.catalog.scripted import ScriptedModel
from tests.strangers.scripts import two_orders_then_refund

WORLD: list[str] = []


@tool
def lookup_order(order_id: str) -> str:
    """Looks an order up."""
    WORLD.append(order_id)
    return f'{{"order_id": "{order_id}", "status": "lost"}}'


@tool
def issue_refund(order_id: str) -> str:
    """Pays money back."""
    WORLD.append(f"refund {order_id}")
    return f"refunded {order_id}"


TOOLS = {made.name: made for made in (lookup_order, issue_refund)}


def make():
    model = ScriptedModel(script=two_orders_then_refund).bind_tools(list(TOOLS.values()))

    def agent(state: MessagesState) -> dict:
        return {"messages": [model.invoke(state["messages"])]}

    def act(state: MessagesState) -> dict:
        results = []
        for call in state["messages"][-1].tool_calls:
            said = TOOLS[call["name"]].invoke(call["args"])
            results.append(ToolMessage(str(said), tool_call_id=call["id"], name=call["name"]))
        return {"messages": results}

    builder = StateGraph(MessagesState)
    builder.add_node("agent", agent)
    builder.add_node("act", act)
    builder.add_edge(START, "agent")
    builder.add_conditional_edges("agent", lambda state: "act" if state["messages"][-1].tool_calls else END)
    builder.add_edge("act", "agent")
    return builder.compile()
