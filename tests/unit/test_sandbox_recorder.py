"""The recording of a real thread, and a run that gets nothing but it."""

from __future__ import annotations

import json
import operator
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any

import pytest
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langchain_core.tools import BaseTool, InjectedToolCallId, StructuredTool, ToolException, tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode
from langgraph.types import Command

from agentctl.records.rows import Stored
from agentctl.sandbox.answers import Desk, Policy
from agentctl.sandbox.calls import CallBlocked
from agentctl.sandbox.effects import Effects
from agentctl.sandbox.injection import sandboxed
from agentctl.sandbox.recorder import record_thread
from agentctl.sandbox.recordings import Recording
from agentctl.stores.open import open_reader
from tests.support.tools import World, agent, ask, call, calling, once, thread, tool_messages

A1 = {"order_id": "A1"}


@contextmanager
def saved(path: Path) -> Iterator[SqliteSaver]:
    with SqliteSaver.from_conn_string(str(path)) as saver:
        saver.setup()
        yield saver


def record(path: Path, *, tip: str | None = None) -> Recording:
    reader = open_reader(str(path))
    try:
        return record_thread(reader, "t", tip=tip)
    finally:
        reader.close()


def record_run(folder: Path, graph: Any, *inputs: Any) -> Recording:
    """Really runs a graph in a new file and returns the recording of its thread."""
    path = folder / "source.sqlite"
    with saved(path) as saver:
        bound = graph.copy(update={"checkpointer": saver})
        for value in inputs or (ask(),):
            bound.invoke(value, thread(), durability="sync")
    return record(path)


def replayed(graph: Any, recording: Recording, policy: Policy | None = None) -> tuple[dict[str, Any], Desk]:
    desk = Desk(policy or Policy(), recording.cursor())
    bound = graph.copy(update={"checkpointer": InMemorySaver()})
    with sandboxed(graph, desk):
        result = bound.invoke(ask(), thread("replay"), durability="sync")
    return result, desk


def served(desk: Desk) -> list[tuple[str, str]]:
    return [(report.name, report.served_by) for report in desk.calls]


def test_a_replay_gets_what_the_tools_said_and_calls_none(tmp_path: Path) -> None:
    world = World()
    calls = [call("lookup_order", "c1", **A1), call("issue_refund", "c2", order_id="A1", amount=120.0)]
    graph = agent([world.lookup(), world.refund()], once(*calls))
    recording = record_run(tmp_path, graph)
    assert [(entry.name, entry.kind) for entry in recording.entries] == [
        ("lookup_order", "message"),
        ("issue_refund", "message"),
    ]
    result, desk = replayed(graph, Recording.from_json(json.loads(json.dumps(recording.to_json()))))
    assert result["messages"][-1].content == '{"order_id": "A1", "status": "delivered"} paid'
    assert sorted(served(desk)) == [("issue_refund", "recorded"), ("lookup_order", "recorded")]
    assert world.n_ran == 2


def test_an_artifact_comes_back_as_the_rows_hold_it(tmp_path: Path) -> None:
    found_at = datetime(2026, 11, 30, tzinfo=UTC)

    def search(query: str) -> tuple[str, dict[str, Any]]:
        """Searches."""
        return "found", {"at": found_at, "pages": [3], "raw": b"\x00"}

    made = StructuredTool.from_function(search, response_format="content_and_artifact")
    graph = agent([made], once(call("search", "c1", query="refunds")))
    result, _ = replayed(graph, record_run(tmp_path, graph))
    assert tool_messages(result)[0].artifact == {"at": found_at, "pages": [3], "raw": b"\x00"}


def test_a_recorded_error_is_an_error_again(tmp_path: Path) -> None:
    ran: list[str] = []

    def lookup_order(order_id: str) -> str:
        """Looks an order up."""
        ran.append(order_id)
        raise ToolException("the service is down")

    graph = agent(
        [StructuredTool.from_function(lookup_order, handle_tool_error=True)], once(call("lookup_order", "c1", **A1))
    )
    result, desk = replayed(graph, record_run(tmp_path, graph))
    (message,) = tool_messages(result)
    assert (message.status, message.content) == ("error", "the service is down")
    assert served(desk) == [("lookup_order", "recorded")]
    assert ran == ["A1"]


class Notes(MessagesState):
    notes: Annotated[list[str], operator.add]
    owner: str


def noting(tools: list[BaseTool], *calls: dict[str, Any], to_end: bool = False) -> Any:
    def think(state: Notes) -> dict[str, Any]:
        said = [message for message in state["messages"] if isinstance(message, ToolMessage)]
        return {"messages": [AIMessage("done") if said else calling(*calls)]}

    def human(state: Notes) -> dict[str, Any]:
        return {"messages": [AIMessage("a person takes over")]}

    graph = StateGraph(Notes)
    graph.add_node("agent", think)
    graph.add_node("tools", ToolNode(tools))
    graph.add_node("human", human)
    graph.add_edge(START, "agent")
    graph.add_conditional_edges(
        "agent", lambda state: "tools" if state["messages"][-1].tool_calls else END, ["tools", END]
    )
    if not to_end:
        graph.add_edge("tools", "agent")
    return graph.compile()


def noting_tool(ran: list[str], **command: Any) -> BaseTool:
    @tool
    def note(text: str, tool_call_id: Annotated[str, InjectedToolCallId]) -> Command[Any]:
        """Notes something down."""
        ran.append(text)
        said = ToolMessage(f"noted {text}", tool_call_id=tool_call_id)
        return Command(update={"notes": [text], "owner": "desk", "messages": [said]}, **command)

    return note


def test_a_recorded_command_comes_back_with_all_its_channel_writes(tmp_path: Path) -> None:
    ran: list[str] = []
    graph = noting([noting_tool(ran)], call("note", "c1", text="fragile"))
    recording = record_run(tmp_path, graph)
    assert recording.entries[0].kind == "command"
    result, desk = replayed(graph, recording)
    assert (result["notes"], result["owner"]) == (["fragile"], "desk")
    assert tool_messages(result)[0].content == "noted fragile"
    assert desk.calls[0].result == "noted fragile"
    assert ran == ["fragile"]


def test_a_command_given_to_another_call_answers_that_call(tmp_path: Path) -> None:
    ran: list[str] = []
    note = noting_tool(ran)
    recording = record_run(tmp_path, noting([note], call("note", "c1", text="fragile")))
    result, _ = replayed(noting([note], call("note", "c99", text="fragile")), recording)
    assert tool_messages(result)[0].tool_call_id == "c99"
    assert ran == ["fragile"]


def test_where_a_recorded_command_led_is_followed_again(tmp_path: Path) -> None:
    ran: list[str] = []
    graph = noting([noting_tool(ran, goto="human")], call("note", "c1", text="fragile"), to_end=True)
    result, _ = replayed(graph, record_run(tmp_path, graph))
    assert result["messages"][-1].content == "a person takes over"
    assert ran == ["fragile"]


def test_a_plain_edge_is_no_part_of_a_recorded_answer(tmp_path: Path) -> None:
    world = World()
    graph = noting([world.lookup()], call("lookup_order", "c1", **A1))
    recording = record_run(tmp_path, graph)
    assert recording.entries[0].goto == ("agent",)
    result, _ = replayed(graph, recording)
    assert [message.type for message in result["messages"]] == ["human", "ai", "tool", "ai"]


def test_what_stands_between_two_answers_of_one_task_has_no_certain_owner(tmp_path: Path) -> None:
    ran: list[str] = []
    world = World()
    tools = [noting_tool(ran), world.lookup()]
    graph = noting(
        tools, call("lookup_order", "c1", **A1), call("note", "c2", text="x"), call("lookup_order", "c3", **A1)
    )
    recording = record_run(tmp_path, graph)
    assert [(entry.id, entry.kind) for entry in recording.entries] == [
        ("c1", "partial"),
        ("c2", "partial"),
        ("c3", "message"),
    ]
    with pytest.raises(CallBlocked):
        replayed(graph, recording)
    effects = Effects(said={"note": "state", "lookup_order": "read"})
    result, desk = replayed(graph, recording, Policy(effects=effects, stubs={"lookup_order": "lost"}))
    assert result["notes"] == ["x"]
    assert dict(served(desk))["note"] == "state"
    assert world.n_ran == 2


def test_a_call_answered_by_a_sibling_that_waits_is_recorded_from_its_pending_write(tmp_path: Path) -> None:
    world = World()

    def left(state: MessagesState) -> dict[str, Any]:
        said = world.lookup().invoke(A1)
        return {"messages": [ToolMessage(said, tool_call_id="c1", name="lookup_order")]}

    def right(state: MessagesState) -> dict[str, Any]:
        raise ValueError("down")

    graph = StateGraph(MessagesState)
    graph.add_node("agent", lambda state: {"messages": [calling(call("lookup_order", "c1", **A1))]})
    graph.add_node("left", left)
    graph.add_node("right", right)
    graph.add_edge(START, "agent")
    graph.add_edge("agent", "left")
    graph.add_edge("agent", "right")
    path = tmp_path / "source.sqlite"
    with saved(path) as saver, pytest.raises(ValueError):
        graph.compile(checkpointer=saver).invoke(ask(), thread() | {"max_concurrency": 1}, durability="sync")
    (entry,) = record(path).entries
    assert (entry.answered_at, json.loads(entry.text)["status"]) == (None, "delivered")


def test_the_branch_in_question_comes_first_and_other_branches_fill_in(tmp_path: Path) -> None:
    world = World()
    graph = agent([world.lookup()], once(call("lookup_order", "c1", **A1)))
    path = tmp_path / "source.sqlite"
    with saved(path) as saver:
        bound = graph.copy(update={"checkpointer": saver})
        bound.invoke(ask(), thread(), durability="sync")
        first_tip = bound.get_state(thread()).config["configurable"]["checkpoint_id"]
        before = [s for s in bound.get_state_history(thread()) if s.next == ("tools",)][-1]
        corrected = ToolMessage("lost", tool_call_id="c1", name="lookup_order")
        bound.invoke(
            None, bound.update_state(before.config, {"messages": [corrected]}, as_node="tools"), durability="sync"
        )
    assert [entry.text for entry in record(path).entries] == ["lost"]
    assert [json.loads(entry.text)["status"] for entry in record(path, tip=first_tip).entries] == ["delivered"]


def test_calls_inside_a_subgraph_are_recorded_with_their_namespace(tmp_path: Path) -> None:
    world = World()
    inner = agent([world.lookup()], once(call("lookup_order", "c1", **A1)), checkpointer=None)
    outer = StateGraph(MessagesState)
    outer.add_node("desk", inner)
    outer.add_edge(START, "desk")
    graph = outer.compile()
    recording = record_run(tmp_path, graph)
    assert [entry.ns.partition(":")[0] for entry in recording.entries] == ["desk"]
    result, desk = replayed(graph, recording)
    assert served(desk) == [("lookup_order", "recorded")]
    assert desk.calls[0].ns.startswith("desk:")
    assert "delivered" in result["messages"][-1].content
    assert world.n_ran == 1


def test_a_second_turn_starts_behind_the_answers_of_the_first(tmp_path: Path) -> None:
    counted = iter(range(9))

    @tool
    def clock(zone: str) -> str:
        """Tells the time."""
        return f"tick {next(counted)}"

    def script(messages: list[Any]) -> AIMessage:
        last = messages[-1]
        return (
            AIMessage(last.text)
            if isinstance(last, ToolMessage)
            else calling(call("clock", f"c{len(messages)}", zone="z"))
        )

    graph = agent([clock], script)
    path = tmp_path / "source.sqlite"
    with saved(path) as saver:
        bound = graph.copy(update={"checkpointer": saver})
        bound.invoke(ask("first"), thread(), durability="sync")
        between = bound.get_state(thread()).config["configurable"]["checkpoint_id"]
        bound.invoke(ask("second"), thread(), durability="sync")
    cursor = record(path).cursor(between)
    desk = Desk(Policy(), cursor)
    with sandboxed(graph, desk):
        result = graph.invoke({"messages": [HumanMessage("again")]}, thread("r"), durability="sync")
    assert result["messages"][-1].content == "tick 1"


def test_no_stored_value_of_a_recording_is_encrypted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("Crypto")
    from langgraph.checkpoint.serde.encrypted import EncryptedSerializer

    monkeypatch.setenv("LANGGRAPH_AES_KEY", "0123456789abcdef")
    ran: list[str] = []
    graph = noting([noting_tool(ran)], call("note", "c1", text="fragile"))
    path = tmp_path / "source.sqlite"
    with saved(path) as saver:
        saver.serde = EncryptedSerializer.from_pycryptodome_aes()
        graph.copy(update={"checkpointer": saver}).invoke(ask(), thread(), durability="sync")
    recording = record(path)
    values: list[Stored] = [value for entry in recording.entries for _, value in entry.writes]
    assert values
    assert not [value for value in values if "+" in value.type]
    monkeypatch.delenv("LANGGRAPH_AES_KEY")
    assert replayed(graph, recording)[0]["notes"] == ["fragile"]
