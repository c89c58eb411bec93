"""Graphs that know nothing of agentctl: recorded once for real, then run with nothing but the recording."""

from __future__ import annotations

import asyncio
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import HumanMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver

from agentctl.sandbox.answers import Desk, Policy
from agentctl.sandbox.calls import CallBlocked
from agentctl.sandbox.effects import Effects
from agentctl.sandbox.gate import running
from agentctl.sandbox.injection import sandboxed
from agentctl.sandbox.loading import LoadedGraph, load_graph
from agentctl.sandbox.recorder import record_thread
from agentctl.sandbox.recordings import Recording
from agentctl.stores.open import open_reader

HERE = Path(__file__).parent
ROOT = HERE.parent.parent
QUESTION = {"messages": [HumanMessage("where are my orders?")]}


@dataclass
class Stranger:
    loaded: LoadedGraph

    @property
    def world(self) -> list[str]:
        """What really happened outside."""
        return sys.modules[self.loaded.spec.module].WORLD  # type: ignore[no-any-return]

    def config(self, thread: str) -> Any:
        return {"configurable": {"thread_id": thread}}

    def record(self, folder: Path) -> tuple[Recording, str]:
        """Really runs the graph once; returns its recording and its final reply."""
        path = str(folder / "source.sqlite")

        async def run() -> str:
            async with AsyncSqliteSaver.from_conn_string(path) as saver:
                graph = self.loaded.with_saver(saver)
                result = await graph.ainvoke(QUESTION, self.config("t"), durability="sync")
            return str(result["messages"][-1].content)

        reply = asyncio.run(run())
        reader = open_reader(path)
        try:
            return record_thread(reader, "t"), reply
        finally:
            reader.close()

    def replay(self, *desks: Desk) -> list[Any]:
        """Runs the graph once a desk, side by side; returns results, or the block that ended a run."""
        graph = self.loaded.with_saver(InMemorySaver())

        async def one(number: int, desk: Desk) -> Any:
            try:
                with running(desk):
                    return await graph.ainvoke(QUESTION, self.config(f"r{number}"), durability="sync")
            except CallBlocked as blocked:
                return blocked

        async def together() -> list[Any]:
            return list(await asyncio.gather(*(one(number, desk) for number, desk in enumerate(desks))))

        with sandboxed(graph):
            return asyncio.run(together())


def served(desk: Desk) -> Counter[tuple[str, str]]:
    return Counter((report.name, report.served_by) for report in desk.calls)


SPECS = [
    "react_agent.py:graph",
    "plain_tool_node.py:builder",
    "direct_calls.py:make",
    "nested_async.py:make",
]


@pytest.fixture
def stranger(request: pytest.FixtureRequest) -> Iterator[Stranger]:
    with load_graph(f"{HERE / 'graphs' / request.param}", project_root=ROOT) as loaded:
        made = Stranger(loaded)
        made.world.clear()
        yield made


@pytest.mark.parametrize("stranger", SPECS, indirect=True)
def test_a_replay_says_the_same_and_touches_nothing(stranger: Stranger, tmp_path: Path) -> None:
    recording, reply = stranger.record(tmp_path)
    really = Counter(stranger.world)
    assert "refunded A1" in reply
    desks = [Desk(Policy(), recording.cursor()) for _ in range(3)]
    results = stranger.replay(*desks)
    assert [result["messages"][-1].content for result in results] == [reply] * 3
    assert {served_by for desk in desks for _, served_by in served(desk)} == {"recorded"}
    assert len({tuple(served(desk).items()) for desk in desks}) == 1
    assert Counter(stranger.world) == really


@pytest.mark.parametrize("stranger", [*SPECS, "functional.py:graph"], indirect=True)
def test_without_a_recording_the_first_call_is_blocked_with_a_stub_to_paste(stranger: Stranger) -> None:
    desk = Desk(Policy())
    (blocked,) = stranger.replay(desk)
    assert isinstance(blocked, CallBlocked)
    assert blocked.report.name == "lookup_order"
    assert (blocked.hint or "").startswith("--stub lookup_order=")
    assert stranger.world == []


@pytest.mark.parametrize("stranger", [*SPECS, "functional.py:graph"], indirect=True)
def test_stubs_let_the_run_end_with_nothing_real(stranger: Stranger) -> None:
    desk = Desk(Policy(stubs={"lookup_order": {"status": "delivered"}}))
    (result,) = stranger.replay(desk)
    assert result["messages"][-1].content == "No refund is due."
    assert set(served(desk)) == {("lookup_order", "stub")}
    assert stranger.world == []


@pytest.mark.parametrize("stranger", ["react_agent.py:graph"], indirect=True)
def test_middleware_of_an_agent_runs_around_the_recorded_answers(stranger: Stranger, tmp_path: Path) -> None:
    recording, _ = stranger.record(tmp_path)
    (result,) = stranger.replay(Desk(Policy(), recording.cursor()))
    tools = [message for message in result["messages"] if message.type == "tool"]
    assert tools
    assert all(message.additional_kwargs == {"shouted": True} for message in tools)


@pytest.mark.parametrize("stranger", ["direct_calls.py:make"], indirect=True)
def test_tools_that_code_calls_itself_are_said_to_be_seen_by_the_gate_alone(stranger: Stranger) -> None:
    with sandboxed(stranger.loaded.graph) as box:
        assert sorted(box.direct_tools) == ["act|issue_refund", "act|lookup_order"]


@pytest.mark.parametrize("stranger", ["nested_async.py:make"], indirect=True)
def test_tool_nodes_of_subgraphs_are_found_with_their_path(stranger: Stranger) -> None:
    paths = sorted(entry.path for entry in stranger.loaded.found.tool_nodes)
    assert paths == ["desk|tools", "second_opinion|tools"]


@pytest.mark.parametrize("stranger", ["deep_agent.py:make"], indirect=True)
def test_a_deep_agent_is_replayed_from_its_recording_alone(stranger: Stranger, tmp_path: Path) -> None:
    recording, reply = stranger.record(tmp_path)
    assert stranger.world == ["A1"]
    desk = Desk(Policy(), recording.cursor())
    (result,) = stranger.replay(desk)
    assert result["messages"][-1].content == reply
    assert result["todos"][0]["content"] == "look the order up"
    assert "/notes.md" in result["files"]
    assert served(desk)["task", "recorded"] == 1
    assert stranger.world == ["A1"]


@pytest.mark.parametrize("stranger", ["deep_agent.py:make"], indirect=True)
def test_a_deep_agents_own_tools_run_and_its_subagents_tools_are_gated(stranger: Stranger) -> None:
    desk = Desk(Policy(stubs={"lookup_order": "lost"}))
    (result,) = stranger.replay(desk)
    assert result["messages"][-1].content == "Done: found lost"
    names = ("write_todos", "task", "write_file", "read_file")
    assert served(desk) == Counter({**{(name, "state"): 1 for name in names}, ("lookup_order", "stub"): 1})
    blocked = Desk(Policy())
    assert isinstance(stranger.replay(blocked)[0], CallBlocked)
    assert blocked.calls[-1].ns.startswith("tools:")
    assert stranger.world == []


@pytest.mark.parametrize("stranger", ["deep_agent.py:make"], indirect=True)
def test_a_subagent_that_the_target_lies_in_runs_although_its_result_is_recorded(
    stranger: Stranger, tmp_path: Path
) -> None:
    recording, _ = stranger.record(tmp_path)
    desk = Desk(Policy(enclosing=frozenset({"d2"})), recording.cursor())
    stranger.replay(desk)
    assert served(desk)["task", "state"] == 1
    assert served(desk)["lookup_order", "recorded"] == 1
    assert stranger.world == ["A1"]


@pytest.mark.parametrize("stranger", ["deep_agent.py:make"], indirect=True)
def test_a_shell_is_a_write_whatever_anyone_says(stranger: Stranger) -> None:
    shells = [entry.tool for entry in stranger.loaded.found.tools if entry.tool.name == "execute"]
    assert shells
    assert {Effects(said={"execute": "state"}).of("execute", tool) for tool in shells} == {"write"}
