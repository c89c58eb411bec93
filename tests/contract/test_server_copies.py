"""Threads copied from a real Agent Server: what stock LangGraph reads in the copy, and what runs on it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import BaseMessage
from langgraph_sdk.client import SyncLangGraphClient

from agentctl.testing import run_cli
from agentctl.testing.commands import CliResult
from tests.support.agent_server import GROUP, AgentServer, thread_id
from tests.support.copies import stock_saver
from tests.support.served import graph as served

pytestmark = pytest.mark.xdist_group(GROUP)

GRAPH_OF = {
    "chat": served.chat,
    "forked": served.chat,
    "fan": served.fan,
    "outer": served.outer,
    "asking": served.letter,
    "answered": served.outer,
    "failing": served.failing,
    "delta": served.delta,
    "long": served.chat,
}
LOST = '{"order_id": "A1", "status": "lost"}'


@pytest.fixture(scope="module")
def client(own_server: AgentServer) -> Iterator[SyncLangGraphClient]:
    with own_server.client() as made:
        yield made


@pytest.fixture(params=["sqlite", "postgres"])
def debug(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "postgres":
        return str(request.getfixturevalue("fresh_postgres_url"))
    return str(tmp_path / "debug.sqlite")


def test_stock_langgraph_reads_a_copy_as_the_server_states_it(
    own_server: AgentServer, client: SyncLangGraphClient, debug: str
) -> None:
    names = GRAPH_OF if debug.endswith(".sqlite") else ("chat", "fan", "asking", "delta")
    for name in names:
        copied = run_cli(
            "copy", thread_id(name), "--store", own_server.url, "--to", debug, "--as", name, "--only", "all", "--json"
        )
        assert copied.code == 0 and copied.json["verified"], copied.out
        with stock_saver(debug) as saver:
            bound = GRAPH_OF[name].copy(update={"checkpointer": saver})
            read = [_snapshot(one) for one in bound.get_state_history({"configurable": {"thread_id": name}})]
        assert read == [_state(one) for one in client.threads.get_history(thread_id(name), limit=1000)], name


def test_a_masked_copy_in_which_nothing_is_personal_is_as_the_server_states_it(
    own_server: AgentServer, client: SyncLangGraphClient, tmp_path: Path
) -> None:
    debug = str(tmp_path / "debug.sqlite")
    for name in ("fan", "asking", "delta"):
        words = ("--store", own_server.url, "--to", debug, "--debug-store", debug, "--as", name)
        copied = run_cli("copy", thread_id(name), *words, "--only", "all", "--mask", "--json")
        assert copied.code == 0 and copied.json["verified"] and copied.json["masked"], copied.out
        with stock_saver(debug) as saver:
            bound = GRAPH_OF[name].copy(update={"checkpointer": saver})
            read = [_snapshot(one) for one in bound.get_state_history({"configurable": {"thread_id": name}})]
        assert read == [_state(one) for one in client.threads.get_history(thread_id(name), limit=1000)], name


def test_subgraphs_are_copied_with_their_own_questions(
    own_server: AgentServer, client: SyncLangGraphClient, tmp_path: Path
) -> None:
    debug = str(tmp_path / "debug.sqlite")
    run_cli("copy", thread_id("asking"), "--store", own_server.url, "--to", debug, "--as", "asking")

    with stock_saver(debug) as saver:
        bound = served.letter.copy(update={"checkpointer": saver})
        inner = bound.get_state({"configurable": {"thread_id": "asking"}}, subgraphs=True).tasks[0].state

    stated = client.threads.get_state(thread_id("asking"), subgraphs=True)["tasks"][0]["state"]
    assert _snapshot(inner) == _state(stated)


def test_a_copied_question_is_answered_and_the_thread_runs_on(own_server: AgentServer, tmp_path: Path) -> None:
    in_copy = _Project(own_server, tmp_path)
    in_copy("copy", thread_id("asking"), "--as", "asking")

    resumed = in_copy("resume", "debug::asking", "--value", "true", "--graph", "graph.py:letter", "--json")

    assert (resumed.code, resumed.json["status"]) == (0, "done"), resumed.out
    shown = in_copy("show", "debug::asking", "--json").json["values"]
    assert shown["log"] == ["drafted", "drafted", "read", "asked", "sent"]


@pytest.mark.parametrize("source", ["server", "copy"])
def test_a_failure_is_diagnosed_on_the_server_and_on_a_copy(
    own_server: AgentServer, tmp_path: Path, source: str
) -> None:
    run = _Project(own_server, tmp_path)
    target = thread_id("chat")
    if source == "copy":
        run("copy", target, "--as", "chat")
        target = "debug::chat"

    found = run(
        "diagnose", target, "--graph", "graph.py:chat", "--check", "reply contains No refund",
        "--patch", 'lookup_order:status="lost"', "--json",
    )  # fmt: skip

    document = found.json
    assert (found.code, document["verdict"]) == (0, "tool_data"), found.out
    assert document["side_effects"]["escaped"] == 0
    assert {run["reply"] for run in document["forks"][0]["runs"]} == {"Your refund is on its way."}


def test_calls_are_answered_anew_straight_from_the_server(own_server: AgentServer, tmp_path: Path) -> None:
    run = _Project(own_server, tmp_path)
    target, graph = thread_id("chat"), ("--graph", "graph.py:chat", "--json")

    replayed = run("replay", f"{target}@before:tools", *graph)
    forked = run("fork", target, "--answer", f"lookup_order={LOST}", *graph)
    asked = run("fork", thread_id("asking"), "--resume", "false", "--graph", "graph.py:letter", "--json")
    summed = run("replay", f"{thread_id('delta')}@before:sum", "--graph", "graph.py:delta", "--json")

    assert replayed.json["runs"][0]["reply"] == "No refund is due: your order was delivered."
    assert forked.json["runs"][0]["reply"] == "Your refund is on its way."
    assert asked.json["runs"][0]["status"] == "done"
    assert summed.json["runs"][0]["reply"] == "that were 1"


def test_a_copied_conversation_is_exported(own_server: AgentServer, tmp_path: Path) -> None:
    run = _Project(own_server, tmp_path)
    run("copy", thread_id("chat"), "--as", "chat")

    exported = run("export", "debug::chat", "--dataset", "d", "--check", "reply contains No refund")

    assert exported.code == 0, exported.err
    assert "where is my order?" in (tmp_path / "datasets" / "d" / "examples.jsonl").read_text("utf-8")


def test_what_a_copy_cannot_hold_is_said_by_name(own_server: AgentServer, tmp_path: Path) -> None:
    run = _Project(own_server, tmp_path)

    fan = run("copy", thread_id("fan"), "--as", "fan", "--json").json["warnings"]
    delta = run("copy", thread_id("delta"), "--as", "delta", terminal=True)
    chat = run("copy", thread_id("chat"), "--as", "chat", "--json").json["warnings"]

    assert any("types other than messages are not stated: note, parts" in text for text in fan)
    assert any("cannot be" in text or "not replayed: what was sent to price" in text for text in fan)
    assert "delta channels are not stated: messages" in " ".join(delta.out.split())
    assert chat == []


@pytest.mark.parametrize(
    ("words", "lack"),
    [
        (("replay", "fan"), "what was sent to price"),
        (("fork", "fan", "--resume", "5"), "what was sent to price"),
        (("fork", "outer", "--resume", "true"), "where check went on to"),
        (("copy", "outer", "--only", "point"), "where check went on to"),
    ],
)
def test_a_step_of_which_something_is_not_stated_is_not_run(
    own_server: AgentServer, tmp_path: Path, words: tuple[str, ...], lack: str
) -> None:
    run = _Project(own_server, tmp_path)
    verb, name, *options = words
    graph = () if verb == "copy" else ("--graph", f"graph.py:{name}")

    refused = run(verb, thread_id(name), *options, *graph)

    assert refused.code == 5 and lack in refused.err and "start one step earlier" in refused.err, refused.err


def test_a_copied_step_of_which_something_is_not_stated_is_not_resumed(own_server: AgentServer, tmp_path: Path) -> None:
    run = _Project(own_server, tmp_path)
    run("copy", thread_id("fan"), "--as", "fan")

    refused = run("resume", "debug::fan", "--value", "5", "--graph", "graph.py:fan")
    earlier = run("replay", "debug::fan@before:plan", "--graph", "graph.py:fan", "--json")

    assert refused.code == 5 and "what was sent to price" in refused.err
    assert earlier.json["runs"][0]["nodes"] == ["plan", "price", "price", "price"]


class _Project:
    """Runs commands in a folder with the served graphs, on the server, with a debug store of its own."""

    def __init__(self, server: AgentServer, folder: Path) -> None:
        self._where = ("--store", server.url)
        self._folder = folder
        (folder / "graph.py").write_text(Path(served.__file__).read_text("utf-8"), "utf-8")

    def __call__(self, verb: str, target: str, *words: str, **how: Any) -> CliResult:
        where = () if target.startswith("debug::") else self._where
        debug = self._folder / "debug" / "debug.sqlite"
        return run_cli(verb, target, *words, *where, "--debug-store", debug, cwd=self._folder, **how)


def _snapshot(one: Any) -> tuple[Any, ...]:
    """What stock LangGraph says of a checkpoint, as JSON."""
    return (
        one.config["configurable"]["checkpoint_id"],
        one.parent_config and one.parent_config["configurable"]["checkpoint_id"],
        list(one.next),
        [
            (task.id, task.name, task.error, [(i.id, i.value) for i in task.interrupts], _json(task.result))
            for task in one.tasks
        ],
        _json(one.values),
        one.created_at,
    )


def _state(one: Any) -> tuple[Any, ...]:
    """What the server says of it."""
    return (
        one["checkpoint"]["checkpoint_id"],
        one["parent_checkpoint"] and one["parent_checkpoint"]["checkpoint_id"],
        one["next"],
        [
            (
                task["id"], task["name"], task["error"], [(i["id"], i["value"]) for i in task["interrupts"]],
                task["result"],
            )
            for task in one["tasks"]
        ],
        one["values"],
        one["created_at"],
    )  # fmt: skip


def _json(value: Any) -> Any:
    return json.loads(json.dumps(value, default=_fields))


def _fields(value: Any) -> Any:
    assert isinstance(value, BaseMessage), value
    return value.model_dump()
