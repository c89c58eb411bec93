"""The functional API: tools called in tasks."""

from langchain_core.messages import ToolMessage
from langchain_core.tools import tool
from langgraph.func import entrypoint, task
from langgraph.graph.message import add_messages

from .model import Model
from .world import look_up, pay_back


@tool
def lookup_order(order_id: str) -> dict:
    """Looks an order up."""
    return look_up(order_id)


@tool
def issue_refund(order_id: str) -> str:
    """Pays money back."""
    return pay_back(order_id)


TOOLS = {made.name: made for made in (lookup_order, issue_refund)}
model = Model().bind_tools(list(TOOLS.values()))


@task
def act(call: dict) -> ToolMessage:
    return TOOLS[call["name"]].invoke(call)


@entrypoint()
def graph(state: dict) -> dict:
    messages = list(state["messages"])
    while True:
        said = model.invoke(messages)
        messages = add_messages(messages, [said])
        if not said.tool_calls:
            return {"messages": messages}
        messages = add_messages(messages, [waiting.result() for waiting in [act(each) for each in said.tool_calls]])
