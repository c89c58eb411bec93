"""A node that builds its tools anew each time it runs, and calls them itself."""

from langchain_core.tools import tool
from langgraph.graph import END, START, MessagesState, StateGraph

from .model import Model
from .world import look_up, pay_back


def tools_of(customer: str) -> dict:
    @tool
    def lookup_order(order_id: str) -> dict:
        """Looks an order up."""
        return look_up(order_id)

    @tool
    def issue_refund(order_id: str) -> str:
        """Pays money back."""
        return pay_back(order_id)

    return {made.name: made for made in (lookup_order, issue_refund)}


def agent(state: MessagesState) -> dict:
    model = Model().bind_tools(list(tools_of("ada").values()))
    return {"messages": [model.invoke(state["messages"])]}


def act(state: MessagesState) -> dict:
    tools = tools_of("ada")
    return {"messages": [tools[each["name"]].invoke(each) for each in state["messages"][-1].tool_calls]}


builder = StateGraph(MessagesState)
builder.add_node("agent", agent)
builder.add_node("act", act)
builder.add_edge(START, "agent")
builder.add_conditional_edges("agent", lambda state: "act" if state["messages"][-1].tool_calls else END)
builder.add_edge("act", "agent")
