"""Small agents that public reports speak of: tools that fail, hand-offs, a person who decides.

The graphs are attributes, so that commands load them as `--graph FILE:NAME`; tests run them on a saver of their own.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, TypedDict

from deepagents import create_deep_agent
from langchain.agents import create_agent
from langchain.agents.middleware import HumanInTheLoopMiddleware
from langchain_core.messages import AIMessage, AnyMessage, BaseMessage, ToolMessage
from langchain_core.tools import BaseTool, InjectedToolCallId, tool
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.graph.message import add_messages
from langgraph.prebuilt import InjectedState, ToolNode
from langgraph.types import Command

from tests.catalog.scripted import ScriptedModel
from tests.support.tools import agent, call, calling

FILE = Path(__file__)
"""What `--graph FILE:NAME` takes."""

PAID: list[str] = []
"""Every order that was really paid back."""


@tool
def lookup(order: str) -> str:
    """Looks an order up."""
    return f"{order} was delivered"


@tool
def pay(order: str, amount: int = 120) -> str:
    """Pays money back."""
    PAID.append(order)
    return f"paid {amount}"


def script(messages: list[AnyMessage]) -> AIMessage:
    """Asks two tools where a question is asked, and talks otherwise."""
    if messages[-1].text != "where is A1?":
        return AIMessage("done")
    turn = len(messages)
    return calling(call("lookup", f"look-{turn}", order="A1"), call("pay", f"pay-{turn}", order="A1"))


def scripted(messages: list[BaseMessage], bound: list[str]) -> AIMessage:
    """The same for a chat model."""
    return script(messages).model_copy(update={"id": f"ai-{len(messages)}"})  # type: ignore[arg-type]


def with_tool_node(tools: list[BaseTool], saver: Any = None, **compiled: Any) -> Any:
    """A model and one ToolNode that takes all calls of a message at once."""
    return agent(tools, script, checkpointer=saver, **compiled)


def with_sends(tools: list[BaseTool], saver: Any = None) -> Any:
    """`create_agent`, which sends each call to a task of its own."""
    return create_agent(ScriptedModel(script=scripted), tools=tools, checkpointer=saver)


def approving(saver: Any = None) -> Any:
    """`create_agent` whose payments a person decides on."""
    middleware = [HumanInTheLoopMiddleware(interrupt_on={"pay": True})]
    return create_agent(ScriptedModel(script=scripted), tools=[lookup, pay], middleware=middleware, checkpointer=saver)


def approving_deeply(saver: Any = None) -> Any:
    """A deep agent whose payments a person decides on."""
    model = ScriptedModel(script=scripted)
    return create_deep_agent(model=model, tools=[lookup, pay], interrupt_on={"pay": True}, checkpointer=saver)


class Team(MessagesState):
    """Messages that the agents of a team share."""

    active: str


def handing_to(name: str) -> BaseTool:
    """A hand-off as langgraph-swarm makes it: the transfer's own call is answered, and its siblings are not."""

    @tool(f"transfer_to_{name}")
    def transfer(
        state: Annotated[dict[str, Any], InjectedState], tool_call_id: Annotated[str, InjectedToolCallId]
    ) -> Command[Any]:
        """Hands over."""
        done = ToolMessage("handed over", name=f"transfer_to_{name}", tool_call_id=tool_call_id)
        update = {"messages": [*state["messages"], done], "active": name}
        return Command(goto=name, graph=Command.PARENT, update=update)

    return transfer


def team(calls: list[Any], saver: Any = None) -> Any:
    """An agent that makes these calls, and two that it hands over to."""
    asks = ScriptedModel(script=lambda messages, bound: AIMessage("", id="ai-asks", tool_calls=calls))
    says = ScriptedModel(script=lambda messages, bound: AIMessage("I am here.", id=f"ai-{len(messages)}"))
    graph = StateGraph(Team)
    graph.add_node(
        "alice", create_agent(asks, [handing_to("bob"), handing_to("carol"), lookup]), destinations=("bob", "carol")
    )
    for name in ("bob", "carol"):
        graph.add_node(name, create_agent(says, []))
    graph.add_edge(START, "alice")
    return graph.compile(checkpointer=saver)


class Chat(TypedDict, total=False):
    chat: Annotated[list[AnyMessage], add_messages]


def chatting(saver: Any = None, **compiled: Any) -> Any:
    """An agent whose conversation is in a channel of another name."""
    graph = StateGraph(Chat)
    graph.add_node("agent", lambda state: {"chat": [script(state["chat"])]})
    graph.add_node("tools", ToolNode([lookup, pay], messages_key="chat"))
    graph.add_edge(START, "agent").add_edge("tools", "agent")
    graph.add_conditional_edges("agent", lambda state: "tools" if state["chat"][-1].tool_calls else END)
    return graph.compile(checkpointer=saver, **compiled)


node_agent = with_tool_node([lookup, pay])
send_agent = with_sends([lookup, pay])
approving_agent = approving()
deep_agent = approving_deeply()
alice_bob_carol = team([])
chat_agent = chatting()
