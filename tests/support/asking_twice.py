"""A graph that asks twice at once, once of it in a subgraph, and talks afterwards."""

from __future__ import annotations

import operator
from typing import Annotated, Any, TypedDict

from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
from langchain_core.messages import AIMessage
from langgraph.config import get_stream_writer
from langgraph.graph import START, StateGraph
from langgraph.types import interrupt

KEY = "sk-abcdefghijklmnopqrstuvwx"


class State(TypedDict, total=False):
    log: Annotated[list[Any], operator.add]
    note: str


def _ask(what: str) -> Any:
    def ask(state: State) -> State:
        return {"log": [interrupt({"question": f"{what}?"})]}

    return ask


async def _talk(state: State) -> State:
    get_stream_writer()({"key": KEY, "text": "\x1b[31mclean\x1b[0m"})
    await GenericFakeChatModel(messages=iter([AIMessage("one two\nthree")])).ainvoke("hi")
    return {"log": ["talked"], "note": "a note that is a good deal longer than the terminal is wide"}


def graph() -> Any:
    """The graph."""
    inner = StateGraph(State).add_node("ask", _ask("income")).add_edge(START, "ask").compile()
    builder = StateGraph(State).add_node("first", _ask("first")).add_node("income", inner).add_node("talk", _talk)
    builder.add_edge(START, "first").add_edge(START, "income").add_edge(["first", "income"], "talk")
    return builder.compile()
