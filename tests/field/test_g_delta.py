"""Reports G: DeltaChannel threads, as deep agents make them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, closing
from copy import deepcopy
from pathlib import Path
from typing import Annotated, Any, TypedDict

import pytest
from deepagents import create_deep_agent
from langchain_core.messages import AIMessage, AnyMessage, BaseMessage, HumanMessage
from langgraph.channels import DeltaChannel
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.graph.message import _messages_delta_reducer
from langgraph.types import interrupt

from agentctl.codec.messages import messages_in
from agentctl.stores.fingerprint import fingerprint
from agentctl.stores.open import open_reader
from agentctl.stores.reading.state import read_values
from agentctl.testing import run_cli
from tests.catalog import config_of
from tests.catalog.scripted import ScriptedModel
from tests.support.damage import Rows, postgres_rows, sqlite_rows
from tests.support.postgres import new_database

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


class Delta(TypedDict, total=False):
    messages: Annotated[list[AnyMessage], DeltaChannel(_messages_delta_reducer, snapshot_frequency=4)]


@pytest.fixture(scope="module", params=["sqlite", "postgres"])
def rows(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Rows]:
    """A store of either kind."""
    with ExitStack() as stack:
        if request.param == "sqlite":
            yield stack.enter_context(sqlite_rows(tmp_path_factory.mktemp("delta")))
        else:
            url = stack.enter_context(new_database(request.getfixturevalue("postgres_url")))
            yield stack.enter_context(postgres_rows(url))


def _chat(rows: Rows | None, schema: Any = Delta, node: Any = None) -> Any:
    """A graph that answers each message."""

    def reply(state: Any) -> Any:
        return {"messages": [AIMessage(f"out-{state['messages'][-1].text.removeprefix('in-')}")]}

    graph = StateGraph(schema).add_node("chat", node or reply).add_edge(START, "chat")
    return graph.compile(checkpointer=rows.saver if rows is not None else None)


def _say(graph: Any, thread: str, number: int, at: Any = None) -> None:
    given = {"messages": [HumanMessage(f"in-{number}")]}
    graph.invoke(given, at or config_of(thread), durability="sync")


def _texts(rows: Rows, thread: str, id: str, ns: str = "") -> list[str]:
    """What agentctl reads at a checkpoint."""
    with closing(open_reader(rows.url)) as reader:
        values = read_values(reader, thread, ns, id, channels=["messages"]).values
    return [message.text for message in messages_in(values.get("messages", []))]


def _same_as_stock(rows: Rows, graph: Any, thread: str) -> dict[str, list[str]]:
    """Compares every checkpoint with what stock LangGraph reads there; returns what both read."""
    stock = {id: [text for _, text in told] for id, told in _stock_texts(graph, config_of(thread))}
    assert {id: _texts(rows, thread, id) for id in stock} == stock
    return stock


def test_g1_a_fork_does_not_read_what_the_branch_it_left_wrote(rows: Rows) -> None:
    graph = _chat(rows)
    for number in (1, 2):
        _say(graph, "forked", number)
    base = [one.config for one in graph.get_state_history(config_of("forked")) if not one.next][-1]
    live = graph.invoke({"messages": [HumanMessage("in-3")]}, base, durability="sync")
    assert [message.text for message in live["messages"]] == ["in-1", "out-1", "in-3", "out-3"]

    read = _same_as_stock(rows, graph, "forked")

    assert next(iter(read.values())) == ["in-1", "out-1", "in-3", "out-3"]
    shown = run_cli("show", "forked", "--store", rows.url, "--messages", "--json", environ={}).json["items"]
    assert [item["message"]["text"] for item in shown] == ["in-1", "out-1", "in-3", "out-3"]


def test_g2_g5_an_update_of_an_old_checkpoint_leaves_the_branch_that_it_left_as_it_was(rows: Rows) -> None:
    graph = _chat(rows)
    for number in (1, 2):
        _say(graph, "updated", number)
    history = list(graph.get_state_history(config_of("updated")))
    head, first = history[0].config["configurable"]["checkpoint_id"], history[-1]
    before = _texts(rows, "updated", head)

    for name in ("left", "right"):
        graph.update_state(first.config, {"messages": [HumanMessage(name, id=name)]}, as_node="chat")

    tips = [id for id, told in _same_as_stock(rows, graph, "updated").items() if told and told[-1] in ("left", "right")]
    assert [_texts(rows, "updated", tip) for tip in tips] == [["right"], ["left"]]
    assert _texts(rows, "updated", head) == before == ["in-1", "out-1", "in-2", "out-2"]
    branch = run_cli("show", f"updated@{head}", "--store", rows.url, "--messages", "--json", environ={}).json
    assert [item["message"]["text"] for item in branch["items"]] == before


def test_g3_delta_messages_of_a_subgraph_are_read_in_its_namespace(rows: Rows) -> None:
    inner = _chat(None, node=lambda state: {"messages": [AIMessage(f"asked {interrupt('go?')}")]})
    outer = StateGraph(Delta).add_node("inner", inner).add_edge(START, "inner").compile(checkpointer=rows.saver)
    _say(outer, "nested", 1)

    (ns,) = [
        one for (one,) in rows.sql("SELECT DISTINCT checkpoint_ns FROM checkpoints WHERE thread_id = 'nested'") if one
    ]
    stock = outer.get_state(config_of("nested"), subgraphs=True).tasks[0].state
    shown = run_cli("show", "nested", "--ns", ns, "--store", rows.url, "--messages", "--json", environ={})

    assert [message.text for message in stock.values["messages"]] == ["in-1"]
    assert [item["message"]["text"] for item in shown.json["items"]] == ["in-1"]


def test_g4_a_thread_whose_channel_became_a_delta_channel_loses_nothing(rows: Rows) -> None:
    _say(_chat(rows, MessagesState), "turned", 1)
    graph = _chat(rows)
    for number in (2, 3):
        _say(graph, "turned", number)

    read = _same_as_stock(rows, graph, "turned")

    told = ["in-1", "out-1", "in-2", "out-2", "in-3", "out-3"]
    assert next(iter(read.values())) == told
    assert run_cli("doctor", "turned", "--store", rows.url, environ={}).code == 0


def test_g6_reading_a_delta_thread_writes_nothing(rows: Rows) -> None:
    graph = _chat(rows)
    for number in (1, 2, 3):
        _say(graph, "read", number)
    before = _stored(rows)

    for words in (
        ("history", "read"),
        ("show", "read", "--messages"),
        ("doctor", "read"),
        ("size", "read"),
        ("threads",),
    ):
        assert run_cli(*words, "--store", rows.url, environ={}).code == 0

    assert _stored(rows) == before


def _stored(rows: Rows) -> dict[str, Any]:
    """What a store holds; the file in which SQLite notes who reads beside a writer is none of it."""
    return {name: found for name, found in fingerprint(rows.url).items() if not name.endswith("-shm")}
