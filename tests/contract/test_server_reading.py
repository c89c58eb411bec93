"""Looking at the threads of a real Agent Server: every command, compared with what the server itself says."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from langgraph_sdk.client import SyncLangGraphClient

from agentctl.codec.values import decode
from agentctl.errors import NotFound
from agentctl.stores.open import open_reader
from agentctl.stores.reading.history import read_history
from agentctl.stores.reading.state import read_values
from agentctl.stores.reading.steps import StepReader
from agentctl.stores.server.reader import ServerReader
from agentctl.testing import run_cli
from agentctl.testing.commands import CliResult
from tests.support.agent_server import GROUP, N_LONG, NAMES, AgentServer, thread_id

pytestmark = pytest.mark.xdist_group(GROUP)

WITH_RUNS = tuple(name for name in NAMES if name not in ("empty", "bare", "busy"))


@pytest.fixture(scope="module")
def client(own_server: AgentServer) -> Iterator[SyncLangGraphClient]:
    with own_server.client() as made:
        yield made


@pytest.fixture
def reader(own_server: AgentServer) -> Iterator[ServerReader]:
    with closing(open_reader(own_server.url)) as opened:
        assert isinstance(opened, ServerReader)
        yield opened


def looked(server: AgentServer, verb: str, target: str, *words: str, **how: Any) -> CliResult:
    return run_cli(verb, target, *words, "--store", server.url, **how)


def said(client: SyncLangGraphClient, name: str, ns: str = "") -> list[Any]:
    checkpoint: Any = {"thread_id": thread_id(name), "checkpoint_ns": ns}
    return list(client.threads.get_history(thread_id(name), limit=1000, checkpoint=checkpoint))


@pytest.mark.parametrize("name", WITH_RUNS)
def test_every_step_is_as_the_server_states_it(reader: ServerReader, client: SyncLangGraphClient, name: str) -> None:
    for ns in reader.namespaces(thread_id(name)):
        steps = StepReader(reader, thread_id(name), ns)
        ours = {step.row.id: step for step in steps.steps(steps.tree.ids)}
        states = said(client, name, ns)
        assert list(ours) == [state["checkpoint"]["checkpoint_id"] for state in states]
        for state, step in zip(states, ours.values(), strict=True):
            assert step.row.parent == (state["parent_checkpoint"] or {}).get("checkpoint_id")
            assert step.row.metadata == state["metadata"]
            if step.next != ("?",):
                assert step.next == tuple(task["name"] for task in state["tasks"])
                assert [(task.id, task.error, len(task.interrupts)) for task in step.tasks] == [
                    (task["id"], task["error"], len(task["interrupts"])) for task in state["tasks"]
                ]


@pytest.mark.parametrize("name", WITH_RUNS)
def test_every_value_is_the_json_that_the_server_gives(
    reader: ServerReader, client: SyncLangGraphClient, name: str
) -> None:
    states = {state["checkpoint"]["checkpoint_id"]: state for state in said(client, name)}
    listed = [row.id for row in reader.rows(thread_id(name))]
    for stored in reader.stored(thread_id(name), "", listed):
        values = {channel: decode(value) for channel, value in stored.values.items()}
        assert values == states.pop(stored.row.id)["values"]
    assert states == {}


def test_a_head_shows_its_own_values_and_not_those_of_tasks_that_wait_beside_it(
    reader: ServerReader, client: SyncLangGraphClient
) -> None:
    (newest, *_) = said(client, "failing")
    read = read_values(reader, thread_id("failing"), "", newest["checkpoint"]["checkpoint_id"])
    assert read.values == newest["values"]
    assert client.threads.get_state(thread_id("failing"))["values"] != newest["values"]


def test_threads_lists_all_with_what_each_is_doing(own_server: AgentServer) -> None:
    found = run_cli("threads", "--store", own_server.url, "--json", "--limit", "0")
    by_thread = {item["thread"]: item for item in found.json["items"]}
    states = {name: by_thread[thread_id(name)]["status"] for name in NAMES}
    expected = dict.fromkeys(NAMES, "done") | {
        "fan": "interrupted", "outer": "interrupted", "asking": "interrupted", "failing": "error",
        "busy": "pending", "empty": "empty", "bare": "empty",
    }  # fmt: skip
    assert states == expected
    assert by_thread[thread_id("failing")]["error"] == "ValueError('the printer is on fire')"
    assert by_thread[thread_id("chat")]["n_checkpoints"] is None
    assert by_thread[thread_id("empty")]["head"] == ""
    assert (found.json["n_total"] >= len(NAMES), found.json["truncated"]) == (True, False)
    assert found.json["warnings"] == [f"1 of {found.json['n_total']} threads are busy: a run is writing to them"]


@pytest.mark.parametrize(
    ("words", "names"),
    [
        (["--where", "user_id=u-chat"], {"chat"}),
        (["--where", "user_id=u-empty"], {"empty"}),
        (["--status", "empty"], {"empty", "bare"}),
        (["--grep", "refund is on its way"], {"forked"}),
        (["--grep", "printer is on FIRE"], {"failing"}),
        (["--since", "2999-01-01"], set()),
    ],
)
def test_threads_are_found_by_metadata_status_time_and_text(
    own_server: AgentServer, words: list[str], names: set[str]
) -> None:
    found = run_cli("threads", "--store", own_server.url, "--json", *words)
    seeded = {thread_id(name) for name in NAMES}
    assert {item["thread"] for item in found.json["items"]} & seeded == {thread_id(name) for name in names}


def test_a_thread_is_found_by_the_id_of_a_run(own_server: AgentServer, client: SyncLangGraphClient) -> None:
    run_id = said(client, "chat")[0]["metadata"]["run_id"]
    found = run_cli("threads", "--store", own_server.url, "--json", "--where", f"run_id={run_id}")
    assert [item["thread"] for item in found.json["items"]] == [thread_id("chat")]
    named = looked(own_server, "show", run_id)
    assert (named.code, f"it ran on thread {thread_id('chat')}" in named.err) == (3, True)


def test_a_history_has_every_row_of_a_long_thread_and_draws_branches(own_server: AgentServer) -> None:
    long = looked(own_server, "history", thread_id("long"), "--json").json
    assert [item["step"] for item in long["items"]] == list(range(N_LONG - 1, -1, -1))
    assert (long["truncated"], long["n_total"]) == (False, N_LONG)
    assert [item["channels"] for item in long["items"]] == [["messages"]] * N_LONG

    forked = looked(own_server, "history", thread_id("forked"), "--json").json
    assert forked["n_branches"] == 2
    assert "descends from an update" in forked["notes"][0]
    wrote = [item["wrote"] for item in forked["items"] if item["branch"] == 0]
    assert wrote == [["agent"], ["?"], ["agent"], ["__start__"], []]


def test_a_limit_is_said_to_be_one(own_server: AgentServer) -> None:
    page = looked(own_server, "history", thread_id("long"), "--json", "--limit", "5").json
    assert (len(page["items"]), page["n_total"], page["truncated"]) == (5, N_LONG, True)


def test_questions_inside_subgraphs_are_shown_at_every_level(own_server: AgentServer) -> None:
    everything = looked(own_server, "history", thread_id("outer"), "--all", "--json").json["items"]
    asking = {item["ns"].partition(":")[0]: item["interrupts"] for item in everything if item["interrupts"]}
    assert {ns: [i["value"]["options"] for i in asked] for ns, asked in asking.items()} == {
        "": [["yes", "no"]],
        "review": [["yes", "no"]],
    }
    shown = looked(own_server, "show", thread_id("outer"), "--ns", "review", "--json").json
    assert (shown["next"], shown["values"]["log"]) == (["ask"], ["drafted", "read"])
    assert shown["tasks"][0]["interrupts"][0]["value"] == {"text": "hello!", "options": ["yes", "no"]}


def test_sends_keep_their_number_and_finished_ones_their_results(own_server: AgentServer) -> None:
    shown = looked(own_server, "show", thread_id("fan"), "--json").json
    assert shown["next"] == ["price"] * 3
    assert [task["finished"] for task in shown["tasks"]] == [True, False, True]


def test_a_conversation_shows_each_call_beside_its_result(own_server: AgentServer) -> None:
    messages = looked(own_server, "show", thread_id("chat"), "--messages", terminal=True).out
    assert "lookup_order" in messages and "No refund is due" in messages
    call = looked(own_server, "show", thread_id("chat"), "--call", "lookup_order", "--json").json
    assert json.loads(call["result"]["text"]) == {"order_id": "A1", "status": "delivered"}
    assert call["args"] == {"order_id": "A1"}


@pytest.mark.parametrize("revision", ["head~1", "before:tools", "call:lookup_order", "step:1", "root"])
def test_revisions_are_resolved(own_server: AgentServer, client: SyncLangGraphClient, revision: str) -> None:
    by_step = {state["metadata"]["step"]: state["checkpoint"]["checkpoint_id"] for state in said(client, "chat")}
    expected = {"head~1": 2, "before:tools": 1, "call:lookup_order": 1, "step:1": 1, "root": -1}
    found = looked(own_server, "resolve", f"{thread_id('chat')}@{revision}")
    assert found.out.split()[0] == by_step[expected[revision]]


def test_branches_are_compared(own_server: AgentServer) -> None:
    history = looked(own_server, "history", thread_id("forked"), "--json").json["items"]
    other = next(item["id"] for item in history if item["branch"] == 1)
    found = looked(own_server, "diff", f"{thread_id('forked')}@{other}...head", "--json").json
    assert [found["reply"]["left"], found["reply"]["right"]] == [
        "No refund is due: your order was delivered.",
        "Your refund is on its way.",
    ]


def test_turns_are_exported(own_server: AgentServer, tmp_path: Path) -> None:
    made = looked(
        own_server, "export", thread_id("chat"), "--dataset", "refunds", "--check", "reply contains No refund",
        "--output", str(tmp_path),
    )  # fmt: skip
    assert made.code == 0, made.err
    (example,) = (tmp_path / "refunds" / "examples.jsonl").read_text("utf-8").splitlines()
    assert "where is my order?" in example and own_server.url in example


def test_doctor_finds_no_fault_in_healthy_threads_and_says_what_it_cannot_see(own_server: AgentServer) -> None:
    found = run_cli("doctor", "--all", "--store", own_server.url, "--json").json
    seeded = {thread_id(name) for name in NAMES}
    items = [item for item in found["items"] if item["thread"] in seeded]
    assert [item for item in items if item["severity"] == "fault"] == []
    assert {item["code"] for item in items} >= {"interrupt_pending", "task_failed", "head_edited", "several_heads"}
    assert "states, not rows" in found["notes"][0]
    asked = next(item for item in items if item["code"] == "interrupt_pending")
    assert asked["command"].startswith("agentctl show ")


def test_sizes_are_told_by_thread_and_by_channel_and_no_deeper(own_server: AgentServer) -> None:
    store = run_cli("size", "--store", own_server.url, "--json", "--top", "0").json
    assert {item["thread"] for item in store["items"]} >= {thread_id(name) for name in WITH_RUNS}
    one = looked(own_server, "size", thread_id("chat"), "--json").json
    assert (one["by"], one["total"]["payload_bytes"]) == ("channel", None)
    assert next(item for item in one["items"] if item["channel"] == "messages")["state_bytes"] > 0
    for level in ("namespace", "message", "row"):
        refused = looked(own_server, "size", thread_id("chat"), "--by", level)
        assert (refused.code, "--by channel" in refused.err) == (5, True)


@pytest.mark.parametrize(
    ("target", "message"),
    [
        ("support-17", "the threads of an Agent Server have UUIDs as ids"),
        ("00000000-0000-4000-8000-000000000000", "there is no thread 00000000-0000-4000-8000-000000000000"),
        (thread_id("empty"), f"there is no thread {thread_id('empty')} with checkpoints"),
        (f"{thread_id('chat')}@abcdef12", "abcdef12"),
    ],
)
def test_what_is_not_there_is_exit_3(own_server: AgentServer, target: str, message: str) -> None:
    found = looked(own_server, "show", target)
    assert (found.code, message in found.err) == (3, True), found.err


def test_a_checkpoint_of_another_thread_is_not_found(own_server: AgentServer, client: SyncLangGraphClient) -> None:
    foreign = said(client, "fan")[0]["checkpoint"]["checkpoint_id"]
    assert looked(own_server, "show", f"{thread_id('chat')}@{foreign}").code == 3


def test_a_namespace_that_is_not_there_is_named_with_those_that_are(reader: ServerReader) -> None:
    with pytest.raises(NotFound) as caught:
        read_history(reader, thread_id("outer"), ns="nosuch:1")
    assert [str(candidate["ns"]).partition(":")[0] for candidate in caught.value.candidates] == ["", "review"]


def test_a_busy_thread_is_shown_as_it_stands_and_said_to_be_busy(own_server: AgentServer) -> None:
    found = looked(own_server, "history", thread_id("busy"))
    assert (found.code, "is busy: a run is writing to it" in found.err) == (0, True)
    assert found.out.splitlines()[0].split("\t")[7] == "hold"


def test_a_server_cannot_be_written_to(own_server: AgentServer) -> None:
    found = run_cli("copy", thread_id("chat"), "--to", own_server.url, "--store", own_server.url)
    assert (found.code, "takes no stored rows" in found.err) == (5, True), found.err
