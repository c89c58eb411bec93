"""Events of a run, of every mode, with subgraphs and subagents: what LangGraph streams, and who said it."""

from __future__ import annotations

import asyncio
import operator
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any, TypedDict

import pytest
from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
from langchain_core.messages import AIMessage
from langgraph.config import get_stream_writer
from langgraph.graph import START, StateGraph
from langgraph.types import Command, interrupt

from agentctl.errors import UsageError
from agentctl.experiments.runs.running import Ended, Limits, RunJob, run_all
from agentctl.experiments.runs.savers import open_saver
from agentctl.experiments.runs.streaming import Streamed, parse_modes
from agentctl.records.streams import STREAM_MODES, StreamEvent, StreamMode
from tests.strangers.graphs import deep_agent

NOW = datetime(2026, 11, 30, 12, tzinfo=UTC)
KEY = "sk-abcdefghijklmnopqrstuvwx"


class State(TypedDict, total=False):
    log: Annotated[list[Any], operator.add]


def streamed(
    path: Path, graph: Any, *modes: StreamMode, payload: object = None, thread: str = "t", **configurable: object
) -> tuple[list[StreamEvent], Ended]:
    events: list[StreamEvent] = []
    (ended,) = run_all(
        [RunJob(thread, payload={"log": []} if payload is None else payload, configurable=configurable)],
        open_saver=lambda: open_saver(str(path / "debug.sqlite"), env={}),
        graph_for=lambda job: graph,
        desk_for=lambda job: None,
        limits=Limits(timeout_s=30, max_steps=20),
        listener=Streamed(modes, events.append, lambda: NOW),
    )
    return events, ended


def nested() -> Any:
    def check(state: State) -> State:
        get_stream_writer()({"progress": "checked", "key": KEY})
        return {"log": ["checked"]}

    def ask(state: State) -> State:
        return {"log": [interrupt({"question": "sure?"})]}

    inner = StateGraph(State).add_sequence([("check", check), ("ask", ask)]).add_edge(START, "check").compile()
    return StateGraph(State).add_node("income", inner).add_edge(START, "income").compile()


def told(events: Sequence[StreamEvent]) -> list[tuple[str, str, object]]:
    return [(event.mode, event.node, event.data) for event in events]


def test_updates_and_custom_data_say_their_node_with_its_path(tmp_path: Path) -> None:
    events, ended = streamed(tmp_path, nested(), "updates", "custom")
    assert ended.status == "interrupted"
    question = ended.interrupts[0][1]
    assert told(events) == [
        ("custom", "income|check", {"progress": "checked", "key": "***"}),
        ("updates", "income|check", {"log": ["checked"]}),
        ("updates", "income", {"__interrupt__": [{"id": question.id, "value": {"question": "sure?"}}]}),
    ]
    assert [event.at for event in events] == [NOW] * 3
    assert all(event.ns.startswith("income:") for event in events)


def test_values_are_the_state_of_each_graph(tmp_path: Path) -> None:
    events, _ = streamed(tmp_path, nested(), "values")
    assert told(events)[:2] == [("values", "", {"log": []}), ("values", "income", {"log": []})]
    assert told(events)[2] == ("values", "income", {"log": ["checked"]})
    asked = told(events)[-1][2]
    assert isinstance(asked, dict) and asked["__interrupt__"][0]["value"] == {"question": "sure?"}


def test_debug_events_say_what_happens_and_hide_secrets_of_the_configuration(tmp_path: Path) -> None:
    events, _ = streamed(tmp_path, nested(), "debug", api_token="open-sesame", user="u-1")
    kinds = [(event.node, event.data["type"]) for event in events if isinstance(event.data, dict)]
    assert ("income", "task") in kinds and ("income|check", "task_result") in kinds and ("", "checkpoint") in kinds
    text = str(events)
    assert "'api_token': '***'" in text and "'user': 'u-1'" in text
    assert "open-sesame" not in text


def test_the_pieces_of_a_message_have_its_id_and_the_last_one_says_so(tmp_path: Path) -> None:
    async def talk(state: State) -> State:
        model = GenericFakeChatModel(messages=iter([AIMessage("one two three")]))
        return {"log": [(await model.ainvoke("hi")).content]}

    graph = StateGraph(State).add_node("talk", talk).add_edge(START, "talk").compile()
    events, _ = streamed(tmp_path, graph, "messages")
    assert "".join(str(event.data["content"]) for event in events if isinstance(event.data, dict)) == "one two three"
    assert len({event.piece for event in events}) == 1 and events[0].piece
    assert [event.is_last for event in events] == [False] * (len(events) - 1) + [True]
    assert {event.node for event in events} == {"talk"}


def test_messages_of_a_subagent_are_heard_below_the_tool_that_runs_it(tmp_path: Path) -> None:
    payload = {"messages": [("user", "go")]}
    events, ended = streamed(tmp_path, deep_agent.make(), "messages", "updates", payload=payload)
    assert ended.status == "done", ended.error
    inner = {event.node for event in events if event.mode == "messages" and event.ns}
    assert any(node.startswith("tools|") for node in inner), {event.node for event in events}


def test_custom_data_of_one_of_several_running_nodes_is_of_their_graph(tmp_path: Path) -> None:
    here = asyncio.Barrier(2)

    async def both(state: State) -> State:
        await here.wait()
        get_stream_writer()("here")
        await here.wait()
        return {"log": []}

    graph = StateGraph(State).add_node("a", both).add_node("b", both).add_edge(START, "a").add_edge(START, "b")
    events, _ = streamed(tmp_path, graph.compile(), "custom")
    assert told(events) == [("custom", "", "here")] * 2


def test_a_listener_that_fails_stops_the_graph_and_its_error_gets_out(tmp_path: Path) -> None:
    ran: list[str] = []

    def node(name: str) -> Any:
        async def run(state: State) -> State:
            ran.append(name)
            return {"log": [name]}

        return run

    def fail(event: StreamEvent) -> None:
        raise BrokenPipeError("closed")

    builder = StateGraph(State).add_sequence([(name, node(name)) for name in ("first", "second", "third")])
    cut: list[object] = []
    with pytest.raises(BrokenPipeError, match="closed"):
        run_all(
            [RunJob("t", payload={"log": []})],
            open_saver=lambda: open_saver(str(tmp_path / "debug.sqlite"), env={}),
            graph_for=lambda job: builder.add_edge(START, "first").compile(),
            desk_for=lambda job: None,
            limits=Limits(timeout_s=30, max_steps=20),
            listener=Streamed(("updates",), fail),
            on_cut=lambda job, calls: cut.append(calls),
        )
    assert "third" not in ran
    assert cut == [()]


def test_modes_are_checked_and_each_is_heard_once() -> None:
    assert parse_modes(["custom", "updates", "custom"]) == ("custom", "updates")
    assert parse_modes(STREAM_MODES) == STREAM_MODES
    with pytest.raises(UsageError, match="--stream token: no such stream"):
        parse_modes(["token"])


def test_custom_data_says_its_node_beside_tasks_that_finished_in_an_earlier_run(tmp_path: Path) -> None:
    def ask(state: State) -> State:
        answer = interrupt("?")
        get_stream_writer()("answered")
        return {"log": [answer]}

    def after(state: State) -> State:
        get_stream_writer()("after")
        return {"log": []}

    builder = StateGraph(State).add_node("done", lambda state: {"log": ["done"]}).add_node("ask", ask)
    builder.add_node("after", after).add_edge(["done", "ask"], "after")
    graph = builder.add_edge(START, "done").add_edge(START, "ask").compile()
    _, asked = streamed(tmp_path, graph, "custom")
    payload = Command(resume={asked.interrupts[0][1].id: 1})
    events, _ = streamed(tmp_path, graph, "custom", payload=payload)
    assert told(events) == [("custom", "ask", "answered"), ("custom", "after", "after")]
