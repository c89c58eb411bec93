"""An agent inside an agent: a subgraph as a node, and one called in a function; all tools are async only."""

from langchain_core.messages import HumanMessage
from langchain_core.tools import StructuredTool
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode, tools_condition

from tests.catalog.scripted import ScriptedModel
from tests.strangers.scripts import two_orders_then_refund

WORLD: list[str] = []


async def _lookup_order(order_id: str) -> str:
    """Looks an order up."""
    WORLD.append(order_id)
    return f'{{"order_id": "{order_id}", "status": "lost"}}'


async def _issue_refund(order_id: str) -> str:
    """Pays money back."""
    WORLD.append(f"refund {order_id}")
    return f"refunded {order_id}"


TOOLS = [
    StructuredTool.from_function(coroutine=_lookup_order, name="lookup_order"),
    StructuredTool.from_function(coroutine=_issue_refund, name="issue_refund"),
]


def desk():
    model = ScriptedModel(script=two_orders_then_refund).bind_tools(TOOLS)
    builder = StateGraph(MessagesState)
    builder.add_node("agent", lambda state: {"messages": [model.invoke(state["messages"])]})
    builder.add_node("tools", ToolNode(TOOLS))
    builder.add_edge(START, "agent")
    builder.add_conditional_edges("agent", tools_condition)
    builder.add_edge("tools", "agent")
    return builder


async def make():
    called = desk().compile()

    async def second_opinion(state: MessagesState) -> dict:
        result = await called.ainvoke({"messages": [HumanMessage("check it again")]})
        return {"messages": [result["messages"][-1]]}

    builder = StateGraph(MessagesState)
    builder.add_node("desk", desk().compile())
    builder.add_node("second_opinion", second_opinion)
    builder.add_edge(START, "desk")
    builder.add_edge("desk", "second_opinion")
    builder.add_edge("second_opinion", END)
    return builder.compile()
