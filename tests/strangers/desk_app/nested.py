"""A subgraph in a subgraph, with tools that are asynchronous only."""

from langchain_core.tools import tool
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode, tools_condition

from .model import Model
from .world import look_up, pay_back


@tool
async def lookup_order(order_id: str) -> dict:
    """Looks an order up."""
    return look_up(order_id)


@tool
async def issue_refund(order_id: str) -> str:
    """Pays money back."""
    return pay_back(order_id)


TOOLS = [lookup_order, issue_refund]


def desk():
    model = Model().bind_tools(TOOLS)

    async def agent(state: MessagesState) -> dict:
        return {"messages": [await model.ainvoke(state["messages"])]}

    builder = StateGraph(MessagesState)
    builder.add_node("agent", agent)
    builder.add_node("tools", ToolNode(TOOLS))
    builder.add_edge(START, "agent")
    builder.add_conditional_edges("agent", tools_condition)
    builder.add_edge("tools", "agent")
    return builder.compile()


def around(inner, name):
    return StateGraph(MessagesState).add_node(name, inner).add_edge(START, name).compile()


async def make():
    return around(around(desk(), "desk"), "office")
