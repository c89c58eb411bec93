"""Conversations read from rows, beside the slow truth: every state of the lineage, loaded by the graph."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Annotated, Any, TypedDict

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, RemoveMessage, ToolMessage
from langgraph.channels import DeltaChannel
from langgraph.checkpoint.postgres import PostgresSaver
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.graph.message import REMOVE_ALL_MESSAGES, _messages_delta_reducer

from agentctl.records.messages import Message
from agentctl.records.rows import Lineage
from agentctl.records.threads import Conversation
from agentctl.stores.base import Reader
from agentctl.stores.open import open_reader
from agentctl.stores.reading.conversation import pair_answers, read_conversation
from agentctl.stores.reading.lineage import read_lineage
from tests.catalog import CATALOG, config_of, run_case, sqlite_case

WITH_MESSAGES = [
    "agent",
    "agent two turns",
    "agent corrected",
    "agent asking",
    "agent approved",
    "deep agent",
    "delta",
    "delta fork",
    "delta interrupted",
    "exit delta",
]


def first_held(graph: Any, thread: str, lineage: Lineage) -> list[str]:
    """Ids of the checkpoints that first held the messages of the tip, by loading every state."""
    states = [
        graph.get_state(config_of(thread, checkpoint_id=row.id)).values.get("messages", []) for row in lineage.rows
    ]
    held = []
    for place, message in enumerate(states[-1]):
        nth = Counter(m.text for m in states[-1][: place + 1] if m.id is None)[message.text]
        has = [
            any(m.id == message.id for m in state)
            if message.id is not None
            else Counter(m.text for m in state if m.id is None)[message.text] >= nth
            for state in states
        ]
        held.append(lineage.rows[has.index(True)].id)
    return held


def check(reader: Reader, graph: Any, thread: str, tip: str | None = None) -> Conversation:
    lineage = read_lineage(reader, thread, tip=tip)
    conversation = read_conversation(reader, lineage)
    messages = graph.get_state(config_of(thread, checkpoint_id=lineage.tip.id)).values.get("messages", [])

    assert [(t.message.id, t.message.text) for t in conversation.turns] == [(m.id, str(m.text)) for m in messages]
    assert [turn.checkpoint for turn in conversation.turns] == first_held(graph, thread, lineage)
    return conversation


@pytest.mark.parametrize("name", WITH_MESSAGES)
def test_each_message_has_the_checkpoint_that_first_held_it_on_every_branch(name: str, tmp_path: Path) -> None:
    case = CATALOG[name]
    with sqlite_case(tmp_path, case) as (path, graph):
        reader = open_reader(str(path))
        for row in reader.rows(case.thread):
            check(reader, graph, case.thread, tip=row.id)


def test_conversations_on_postgres_equal_those_of_the_loaded_graph(fresh_postgres_url: str) -> None:
    with PostgresSaver.from_conn_string(fresh_postgres_url) as saver:
        saver.setup()
        reader = open_reader(fresh_postgres_url)
        for name in WITH_MESSAGES:
            case = CATALOG[name]
            graph = run_case(case, saver)
            for tip in {row.id for row in reader.rows(case.thread)} - {r.parent for r in reader.rows(case.thread)}:
                check(reader, graph, case.thread, tip)
        reader.close()


class Delta(TypedDict, total=False):
    messages: Annotated[list[AnyMessage], DeltaChannel(_messages_delta_reducer, snapshot_frequency=3)]


STEPS = st.lists(
    st.sampled_from(["say", "say again", "trim", "clear", "edit", "fork", "replay", "exit", "pairs"]),
    min_size=1,
    max_size=6,
)


@example(steps=["clear", "exit"], schema=MessagesState)
@settings(
    max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)
@given(steps=STEPS, schema=st.sampled_from([MessagesState, Delta]))
def test_messages_without_ids_removals_forks_and_replays_are_placed_right(
    steps: list[str], schema: Any, tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = tmp_path_factory.mktemp("random") / "threads.sqlite"
    with SqliteSaver.from_conn_string(str(path)) as saver:
        graph = talking_graph(schema, saver)
        for number, step in enumerate(["say", *steps]):
            drive(graph, step, number)
        reader = open_reader(str(path))
        for row in reader.rows("t"):
            check(reader, graph, "t", tip=row.id)


def talking_graph(schema: Any, saver: SqliteSaver) -> Any:
    def reply(state: Any) -> Any:
        text = state["messages"][-1].text
        if text == "trim":
            return {"messages": [RemoveMessage(state["messages"][0].id), AIMessage("trimmed")]}
        if text == "clear":
            return {"messages": [RemoveMessage(REMOVE_ALL_MESSAGES), AIMessage("cleared")]}
        if text == "edit":
            return {"messages": [HumanMessage("edited", id=state["messages"][-1].id), AIMessage("done")]}
        return {"messages": [AIMessage("ok")]}

    builder = StateGraph(schema)
    builder.add_node("reply", reply)
    builder.add_node("after", lambda state: {"messages": [("assistant", "bye")]})
    builder.add_edge(START, "reply").add_edge("reply", "after")
    return builder.compile(checkpointer=saver)


def drive(graph: Any, step: str, number: int) -> None:
    config = config_of("t")
    history = list(graph.get_state_history(config))
    match step:
        case "fork":
            target = history[len(history) // 2].config
            graph.update_state(target, {"messages": [HumanMessage("by hand")]}, as_node="reply")
            graph.invoke(None, config, durability="sync")
        case "replay":
            graph.invoke(None, history[len(history) // 2].config, durability="sync")
        case "exit":
            graph.invoke({"messages": [HumanMessage("say")]}, config, durability="exit")
        case "pairs":
            graph.invoke({"messages": [("user", "say"), {"role": "user", "content": "say"}]}, config, durability="sync")
        case _:
            text = step if step != "say again" else "say"
            # LangGraph gives ids while another thread stores the write: one that is edited by its id has it before.
            id = f"edited-{number}" if text == "edit" else None
            graph.invoke({"messages": [HumanMessage(text, id=id)]}, config, durability="sync")


def test_states_are_not_decoded_where_writes_tell(tmp_path: Path) -> None:
    case = CATALOG["agent two turns"]
    with sqlite_case(tmp_path, case) as (path, _):
        counting = CountingReader(open_reader(str(path)))
        lineage = read_lineage(counting, case.thread)
        read_conversation(counting, lineage)

    assert counting.n_states == 1
    assert len(lineage.rows) > 5


class CountingReader:
    """Counts the states that are read."""

    def __init__(self, reader: Reader) -> None:
        self._reader = reader
        self.n_states = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._reader, name)

    def stored(self, *args: Any, **kwargs: Any) -> Any:
        for found in self._reader.stored(*args, **kwargs):
            self.n_states += 1
            yield found


def test_calls_stand_beside_their_answers_although_ids_repeat_across_turns(tmp_path: Path) -> None:
    case = CATALOG["agent two turns"]
    with sqlite_case(tmp_path, case) as (path, graph):
        conversation = check(open_reader(str(path)), graph, case.thread)

    asked = [turn for turn in conversation.turns if turn.message.tool_calls]
    assert [[call.id for call in turn.message.tool_calls] for turn in asked] == [["c1", "c2"], ["c1", "c2"]]
    answers = [answer for turn in asked for answer in turn.answers]
    assert all(answer is not None for answer in answers)
    assert len({answer.id for answer in answers if answer is not None}) == 4
    assert [answer.name for answer in answers if answer] == ["lookup_order", "get_policy"] * 2


def test_an_open_call_is_marked(tmp_path: Path) -> None:
    case = CATALOG["agent asking"]
    with sqlite_case(tmp_path, case) as (path, graph):
        conversation = check(open_reader(str(path)), graph, case.thread)

    assert conversation.turns[-1].answers == (None, None)


def test_last_and_grep_keep_the_numbers(tmp_path: Path) -> None:
    case = CATALOG["agent two turns"]
    with sqlite_case(tmp_path, case) as (path, _):
        reader = open_reader(str(path))
        lineage = read_lineage(reader, case.thread)
        whole = read_conversation(reader, lineage)
        last = read_conversation(reader, lineage, last=2)
        found = read_conversation(reader, lineage, grep="DELIVERED")
        by_argument = read_conversation(reader, lineage, grep='"order_id": "a1"')

    assert whole.channel == "messages"
    assert last.turns == whole.turns[-2:]
    assert last.n_total == found.n_total == len(whole.turns)
    assert found.turns == tuple(turn for turn in whole.turns if "delivered" in turn.message.text)
    assert {turn.message.role for turn in by_argument.turns} == {"ai", "tool"}
    assert not read_conversation(reader, lineage, last=0).turns


def test_a_thread_without_messages_is_an_empty_conversation(tmp_path: Path) -> None:
    case = CATALOG["linear"]
    with sqlite_case(tmp_path, case) as (path, _):
        reader = open_reader(str(path))
        conversation = read_conversation(reader, read_lineage(reader, case.thread))

    assert (conversation.channel, conversation.turns, conversation.n_total) == ("", (), 0)


def test_another_channel_that_holds_messages_is_found_and_named(tmp_path: Path) -> None:
    class Chat(TypedDict):
        dialogue: list[AnyMessage]

    with SqliteSaver.from_conn_string(str(tmp_path / "threads.sqlite")) as saver:
        builder = StateGraph(Chat)
        builder.add_node("reply", lambda state: {"dialogue": [*state["dialogue"], AIMessage("ok")]})
        builder.add_edge(START, "reply")
        graph = builder.compile(checkpointer=saver)
        graph.invoke({"dialogue": [HumanMessage("hi")]}, config_of("t"), durability="sync")
        reader = open_reader(str(tmp_path / "threads.sqlite"))
        lineage = read_lineage(reader, "t")
        conversation = read_conversation(reader, lineage)

    assert conversation.channel == "dialogue"
    assert [turn.message.text for turn in conversation.turns] == ["hi", "ok"]
    assert [turn.checkpoint for turn in conversation.turns] == [lineage.rows[1].id, lineage.rows[2].id]


def ai(*ids: str, names: tuple[str, ...] = ("f", "g")) -> Message:
    calls = [{"name": name, "id": id, "args": {}} for name, id in zip(names, ids, strict=False)]
    return converted(AIMessage("", tool_calls=calls))


def tool(id: str, name: str | None = None) -> Message:
    return converted(ToolMessage("r", tool_call_id=id, name=name))


def converted(message: AnyMessage) -> Message:
    from agentctl.codec.messages import message_of

    found = message_of(message.model_dump())
    assert found is not None
    return found


def test_empty_ids_pair_by_name_then_by_order() -> None:
    assert pair_answers([ai("", ""), tool("", "g"), tool("", "f")]) == {(0, 0): 2, (0, 1): 1}
    assert pair_answers([ai("", ""), tool(""), tool("")]) == {(0, 0): 1, (0, 1): 2}


def test_an_answer_belongs_to_the_nearest_open_call_with_its_id() -> None:
    assert pair_answers([ai("c1"), ai("c1"), tool("c1")]) == {(1, 0): 2}
    assert pair_answers([ai("c1"), tool("c1"), ai("c1")]) == {(0, 0): 1}


def test_a_second_answer_and_an_orphan_pair_with_nothing() -> None:
    assert pair_answers([ai("c1"), tool("c1"), tool("c1"), tool("x")]) == {(0, 0): 1}
