"""Field log G: DeltaChannel threads, as deep agents make them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
from deepagents import create_deep_agent
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage
from langgraph.checkpoint.sqlite import SqliteSaver

from agentctl.codec.messages import messages_in
from agentctl.stores.open import open_reader
from agentctl.stores.reading.state import read_values
from agentctl.testing import run_cli
from tests.catalog.scripted import ScriptedModel

_GIVEN = {
    "pair": [("user", "hello")],
    "text": "hello",
    "dict": [{"role": "user", "content": "hello"}],
    "message": [HumanMessage("hello")],
}


def _answer(messages: list[BaseMessage], bound: list[str]) -> AIMessage:
    return AIMessage(f"you said {messages[-1].text}")


def _stock_texts(graph: Any, config: Any) -> Iterator[tuple[str, list[tuple[str, str]]]]:
    for state in graph.get_state_history(config):
        messages = state.values.get("messages", [])
        yield state.config["configurable"]["checkpoint_id"], [(one.type, one.text) for one in messages]


@pytest.mark.parametrize("form", _GIVEN)
def test_g3_a_deep_agents_messages_are_rebuilt_however_its_input_was_written(tmp_path: Path, form: str) -> None:
    database = tmp_path / "prod.sqlite"
    config: Any = {"configurable": {"thread_id": "t"}}
    with SqliteSaver.from_conn_string(str(database)) as saver:
        graph = create_deep_agent(model=ScriptedModel(script=_answer), checkpointer=saver)
        for _ in range(2):
            graph.invoke({"messages": deepcopy(_GIVEN[form])}, config, durability="sync")
        stock = list(_stock_texts(graph, config))

    with closing(open_reader(str(database))) as reader:
        for id, expected in stock:
            values = read_values(reader, "t", "", id, channels=["messages"]).values
            assert [(one.role, one.text) for one in messages_in(values.get("messages", []))] == expected
    shown = run_cli("show", "t", "--store", database, "--messages", "--json", environ={}).json
    assert [item["message"]["text"] for item in shown["items"]] == ["hello", "you said hello"] * 2
