"""Reports N: Agent Servers, their replacements and their bad days; and what else public reports say of servers."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from agentctl.errors import StoreError
from agentctl.stores.server.reader import ServerReader
from agentctl.testing import run_cli
from agentctl.testing.commands import CliResult
from tests.support.server_stub import Request, StubServer, checkpoint_id, server_stub, state, task

N_ROWS = 35
TWO_NODES = """
import operator
from typing import Annotated, TypedDict
from langgraph.graph import START, StateGraph

class State(TypedDict, total=False):
    log: Annotated[list[str], operator.add]

graph = StateGraph(State).add_node("a", lambda state: {"log": ["a"]}).add_node("b", lambda state: {"log": ["b"]})
graph = graph.add_edge(START, "a").add_edge("a", "b").compile()
"""


@pytest.fixture
def stub() -> Iterator[StubServer]:
    with server_stub() as running:
        yield running


def looked(stub: StubServer, *words: str, **how: Any) -> CliResult:
    return run_cli(*words, "--store", stub.url, **how)


def cut_off(stub: StubServer, thread: str, n_kept: int) -> None:
    del stub.states[thread, ""][n_kept:]


def test_n1_a_history_whose_start_the_server_does_not_give_is_said_to_be_cut(stub: StubServer) -> None:
    thread = stub.thread("kept a day", N_ROWS)
    cut_off(stub, thread, 5)

    shown = looked(stub, "history", thread)
    document = looked(stub, "history", thread, "--json").json

    assert shown.code == 0 and len(shown.rows) == 5
    assert "the history is cut" in shown.err and "5 checkpoints, the oldest of 2026-11-30T12:00:00" in shown.err
    assert any("the history is cut" in text for text in document["warnings"])


def test_n1_a_copy_of_a_cut_history_says_so(stub: StubServer, tmp_path: Path) -> None:
    thread = stub.thread("kept a day", N_ROWS)
    cut_off(stub, thread, 5)

    copied = looked(stub, "copy", thread, "--to", str(tmp_path / "debug.sqlite"), "--json")

    assert copied.code == 0 and copied.json["n_checkpoints"] == 5
    assert any("the history is cut" in text for text in copied.json["warnings"])


def test_n2_where_one_form_of_before_gives_empty_pages_the_other_is_tried(stub: StubServer) -> None:
    thread = stub.thread("aegra", N_ROWS)
    stub.pages_by = ("text",)

    assert len(looked(stub, "history", thread, "--limit", "0").rows) == N_ROWS


def test_n2_an_empty_second_page_is_no_end_of_a_history(stub: StubServer) -> None:
    thread = stub.thread("aegra", N_ROWS)
    stub.pages_by = ()

    shown = looked(stub, "history", thread, "--limit", "0")

    assert 0 < len(shown.rows) < N_ROWS
    assert "the history is cut" in shown.err


def test_n3_a_form_of_before_that_is_answered_500_is_not_needed(stub: StubServer) -> None:
    thread = stub.thread("before as text", N_ROWS)
    stub.fault = lambda request: (500, {"detail": "KeyError"}) if _has_text(request) else None

    shown = looked(stub, "history", thread, "--limit", "0")

    assert len(shown.rows) == N_ROWS and shown.err == ""


def test_n3_where_no_form_of_before_works_nothing_is_sold_as_the_whole(stub: StubServer) -> None:
    thread = stub.thread("no before", N_ROWS)
    stub.fault = lambda request: (500, {"detail": "boom"}) if _is_second_page(request) else None

    shown = looked(stub, "history", thread, "--limit", "0")

    assert (shown.code, shown.out) == (4, "")
    assert "answered 500 (boom): could not read the history" in shown.err


def test_n4_a_rerun_starts_where_it_was_asked_to_and_asks_the_server_for_no_run(
    stub: StubServer, tmp_path: Path
) -> None:
    thread = stub.thread("rerun")
    stub.states[thread, ""] = [
        state(thread, 3, values={"log": ["a", "b"]}),
        state(thread, 2, values={"log": ["a"]}, next=["b"], tasks=[task(2, "b", {"log": ["b"]})]),
        state(thread, 1, values={"log": []}, next=["a"], tasks=[task(1, "a", {"log": ["a"]})]),
        state(thread, 0, values={}, next=["__start__"], tasks=[task(0, "__start__", {"log": []})]),
    ]
    (tmp_path / "app.py").write_text(TWO_NODES, "utf-8")
    debug = tmp_path / "debug" / "debug.sqlite"

    words = ("--graph", "app.py:graph", "--debug-store", str(debug), "--json")
    replayed = looked(stub, "replay", f"{thread}@before:b", *words, cwd=tmp_path)
    history = run_cli("history", f"{thread}.replay-1", "--store", debug, "--json").json["items"]

    assert (replayed.code, replayed.json["runs"][0]["nodes"]) == (0, ["b"]), replayed.out
    forked = next(item for item in history if item["source"] == "fork")
    assert (forked["parent"], forked["next"]) == (checkpoint_id(2), ["b"])
    assert not [request for request in stub.requests if "/runs" in request.path or request.path.endswith("/state")]


def test_n5_threads_without_a_checkpoint_are_a_normal_case(stub: StubServer) -> None:
    new, done = stub.thread("new"), stub.thread("done", 2)
    broken = stub.thread("null", 1)
    stub.states[broken, ""][0] |= {"checkpoint": None, "checkpoint_id": None, "metadata": None, "created_at": None}

    listed = {item["thread"]: item["status"] for item in looked(stub, "threads", "--json").json["items"]}
    shown = looked(stub, "show", new)

    assert listed == {new: "empty", done: "done", broken: "empty"}
    assert shown.code == 3 and shown.err.startswith("error:")


def test_n6_looking_at_lists_asks_for_no_values(stub: StubServer) -> None:
    thread = stub.thread("select", N_ROWS)
    looked(stub, "threads")
    lists = list(stub.requests)
    looked(stub, "history", thread, "--limit", "0")

    assert lists and all("values" not in request.body["select"] for request in lists if request.method == "POST")
    pages = [request for request in stub.asked("/history") if request.body.get("limit", 0) >= 20]
    assert pages and all("values" not in request.body["select"] for request in pages)


def test_n7_a_history_longer_than_any_default_is_whole(stub: StubServer) -> None:
    thread = stub.thread("long", N_ROWS)

    document = looked(stub, "history", thread, "--json").json

    assert [item["id"] for item in document["items"]] == [checkpoint_id(n) for n in reversed(range(N_ROWS))]
    assert (document["n_total"], document["truncated"]) == (N_ROWS, False)
    assert all(request.body["limit"] > 10 for request in stub.asked("/history") if "limit" in request.body)


def test_n8_a_checkpoint_of_another_thread_is_not_found(stub: StubServer) -> None:
    thread = stub.thread("a", 2)
    stub.thread("b", 5)

    shown = looked(stub, "show", f"{thread}@{checkpoint_id(4)}")

    assert (shown.code, shown.out) == (3, "")


def test_n8_a_state_of_another_thread_than_was_asked_for_is_refused(stub: StubServer) -> None:
    thread, other = stub.thread("a", 2), stub.thread("b", 2)
    stub.states[thread, ""] = stub.states[other, ""]

    shown = looked(stub, "history", thread)

    assert (shown.code, shown.out) == (4, "")
    assert f"was asked for thread {thread} and gave a state of {other}" in shown.err


@pytest.mark.parametrize("verb", ["history", "show", "copy", "doctor"])
def test_n9_a_server_that_lost_its_checkpoints_is_exit_4_with_what_keeps_them(
    stub: StubServer, tmp_path: Path, verb: str
) -> None:
    thread = stub.thread("killed", 3)
    stub.fault = lambda request: (500, {"detail": "checkpoint not found"}) if request.is_history else None
    target = tmp_path / "debug.sqlite"

    asked = looked(stub, verb, thread, *(("--to", str(target)) if verb == "copy" else ()))

    assert (asked.code, asked.out) == (4, "")
    assert "answered 500" in asked.err and 'a durable "checkpointer"' in asked.err
    assert "Traceback" not in asked.err


def test_n10_missing_and_unknown_keys_do_no_harm(stub: StubServer, tmp_path: Path) -> None:
    thread = stub.thread("old", 3)
    for one in stub.states[thread, ""]:
        for key in ("interrupts", "tasks", "checkpoint_id", "parent_checkpoint_id"):
            del one[key]
        one["from_the_future"] = {"a": 1}

    history = looked(stub, "history", thread, "--json").json
    copied = looked(stub, "copy", thread, "--to", str(tmp_path / "debug.sqlite"), "--json")

    assert [item["id"] for item in history["items"]] == [checkpoint_id(n) for n in (2, 1, 0)]
    assert looked(stub, "show", thread, "--json").json["values"]["messages"][-1]["content"] == "text 2"
    assert copied.json["n_checkpoints"] == 3


def test_b11_a_server_that_ignores_namespaces_is_found_out(stub: StubServer) -> None:
    thread = stub.thread("no namespaces", 2)
    stub.ignores_ns = True
    due = task(1, "review")
    inner = {"thread_id": thread, "checkpoint_ns": f"review:{due['id']}"}
    stub.states[thread, ""][0] |= {"tasks": [{**due, "checkpoint": inner}], "next": ["review"]}

    shown = looked(stub, "history", thread, "--ns", inner["checkpoint_ns"])

    assert (shown.code, shown.out) == (4, "")
    assert "it ignores namespaces" in shown.err


def test_l18_a_thread_that_is_gone_when_it_is_read_does_not_end_the_list(stub: StubServer) -> None:
    kept, gone = stub.thread("kept", 2), stub.thread("swept", 2)
    stub.fault = lambda request: (404, {"detail": "gone"}) if gone in request.path else None

    listed = looked(stub, "threads", "--json")

    assert listed.code == 0, listed.out
    assert kept in [item["thread"] for item in listed.json["items"]]
    assert any(f"thread {gone} is listed, but" in text for text in listed.json["warnings"])


@pytest.mark.parametrize("verb", ["fork", "copy", "resume"])
def test_c15_nothing_is_ever_updated_on_a_server(stub: StubServer, tmp_path: Path, verb: str) -> None:
    thread = stub.thread("updated", 3)
    (tmp_path / "app.py").write_text(TWO_NODES, "utf-8")
    words = {
        "fork": ("--set", 'log=["x"]', "--graph", "app.py:graph", "--debug-store", stub.url),
        "copy": ("--to", stub.url),
        "resume": ("--value", "1"),
    }

    refused = looked(stub, verb, thread, *words[verb], cwd=tmp_path)

    assert refused.code == 5, refused.err
    assert verb != "resume" or "an Agent Server, which runs its own threads" in refused.err
    assert not [request for request in stub.requests if "/runs" in request.path or request.path.endswith("/state")]


@pytest.mark.parametrize(
    ("status", "code", "words"),
    [
        (401, 4, "set LANGGRAPH_API_KEY"),
        (404, 3, "there is no thread"),
        (409, 4, "try again when it has ended"),
        (422, 4, "answered 422 (why)"),
        (429, 4, "try again later"),
        (503, 4, "answered 503 (why)"),
    ],
)
def test_each_refusal_of_a_server_is_told_for_what_it_is(stub: StubServer, status: int, code: int, words: str) -> None:
    thread = stub.thread("refused", 3)
    stub.fault = lambda request: (status, {"detail": "why"}) if request.is_history else None

    shown = looked(stub, "history", thread)
    document = looked(stub, "history", thread, "--json")

    assert (shown.code, shown.out) == (code, "") and words in shown.err, shown.err
    assert document.code == code and document.json["error"]["hint"]


def test_an_answer_that_breaks_off_is_asked_for_again_and_then_given_up(stub: StubServer) -> None:
    thread = stub.thread("dropping", N_ROWS)
    stub.n_drops = 1
    once = looked(stub, "history", thread, "--limit", "0")
    stub.n_drops = 1000
    always = looked(stub, "history", thread, "--limit", "0")

    assert len(once.rows) == N_ROWS
    assert (always.code, always.out) == (4, "") and "dropped the connection twice" in always.err


def test_what_is_no_json_is_no_agent_server(stub: StubServer) -> None:
    stub.is_json = False

    shown = looked(stub, "threads")

    assert (shown.code, shown.out) == (4, "") and "is no Agent Server: the answer is not JSON" in shown.err


def test_a_server_that_does_not_answer_is_not_waited_for_for_ever(stub: StubServer) -> None:
    thread = stub.thread("slow", 3)
    stub.hangs.set()

    with closing(ServerReader(stub.url, timeout_s=0.1)) as reader, pytest.raises(StoreError) as raised:
        reader.namespaces(thread)

    assert "did not answer within 0.1 seconds" in raised.value.message


def test_a_server_that_is_not_there_is_exit_4(stub: StubServer) -> None:
    found = run_cli("threads", "--store", "http://127.0.0.1:1")

    assert found.code == 4 and "cannot reach http://127.0.0.1:1" in found.err


def test_a_thread_of_the_functional_api_is_not_copied(stub: StubServer, tmp_path: Path) -> None:
    thread = stub.thread("functional", 1)
    stub.states[thread, ""] = [state(thread, 0, tasks=[task(0, "workflow", {"answer": 1})], next=["workflow"])]

    refused = looked(stub, "copy", thread, "--to", str(tmp_path / "debug.sqlite"))

    assert refused.code == 5 and "is of the functional API (workflow)" in refused.err


def _has_text(request: Request) -> bool:
    return "before" in request.query or isinstance(request.body.get("before"), str)


def _is_second_page(request: Request) -> bool:
    return request.is_history and ("before" in request.query or request.body.get("before") is not None)
