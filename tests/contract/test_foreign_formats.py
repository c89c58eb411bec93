"""Threads of checkpoint formats 1 to 3, as LangGraph before 0.5 left them, in JSON and in msgpack."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import AIMessage, HumanMessage
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from langgraph.types import Send

from agentctl.testing import CliResult, run_cli
from tests.support.copies import stock_saver

FORMS = [(1, "json"), (1, "msgpack"), (2, "msgpack"), (3, "msgpack")]


def id_of(place: int) -> str:
    return f"1ef1ecc8-b5d8-6{place:03x}-800{place}-02cb0e6a8a3c"


def _version(number: int) -> str:
    return f"{number:032}.0{number}"


def _message(role: str, text: str, form: str) -> Any:
    if form == "msgpack":
        return (HumanMessage if role == "Human" else AIMessage)(text, id=f"{role}-1")
    path = ["langchain", "schema", "messages", f"{role}Message"]
    return {"lc": 1, "type": "constructor", "id": path, "kwargs": {"content": text, "id": f"{role}-1"}}


def _documents(version: int, form: str) -> list[dict[str, Any]]:
    """Input, an agent that answered, and a Send that waits. Formats before 3 name routes and nodes otherwise."""
    said, reply = _message("Human", "hi", form), _message("AI", "done", form)
    route = "start:agent" if version < 3 else "branch:to:agent"
    marker = {"agent": "agent"} if version < 3 else {}
    send = {"node": "review", "arg": 1} if form == "json" else Send("review", 1)
    one, two, three = _version(1), _version(2), _version(3)
    started = {"__input__": {}, "__start__": {"__start__": one}}
    steps: list[tuple[Any, Any, Any, Any]] = [
        ({"__start__": {"messages": [said]}}, {"__start__": one}, {"__input__": {}}, []),
        ({"messages": [said], route: "__start__"}, {"__start__": two, "messages": two, route: two}, started, []),
        (
            {"messages": [said, reply], **marker},
            {"__start__": two, "messages": three, route: three, **dict.fromkeys(marker, three)},
            {**started, "agent": {route: two}},
            [send],
        ),
    ]
    return [
        {
            "v": version,
            "ts": "2024-05-01T00:00:00+00:00",
            "id": id_of(place),
            "channel_values": values,
            "channel_versions": versions,
            "versions_seen": seen,
            "pending_sends": sends,
        }
        for place, (values, versions, seen, sends) in enumerate(steps)
    ]


@pytest.fixture(params=FORMS, ids=lambda form: f"v{form[0]}-{form[1]}")
def store(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    version, form = request.param
    path = tmp_path / "old.sqlite"
    with stock_saver(str(path)), closing(sqlite3.connect(path, isolation_level=None)) as database:
        for place, document in enumerate(_documents(version, form)):
            packed = ("json", json.dumps(document).encode()) if form == "json" else _packed(document)
            metadata = {"source": "loop" if place else "input", "step": place - 1, "writes": {"agent": None}}
            parent = id_of(place - 1) if place else None
            row = ("t", "", document["id"], parent, *packed, json.dumps(metadata).encode())
            database.execute("INSERT INTO checkpoints VALUES (?, ?, ?, ?, ?, ?, ?)", row)
    return str(path)


def _packed(value: Any) -> tuple[str, bytes]:
    return JsonPlusSerializer().dumps_typed(value)


def _run(store: str, *words: str) -> CliResult:
    return run_cli(*words, "--store", store)


def test_what_ran_and_what_waits_is_shown_and_routes_are_no_state(store: str) -> None:
    rows = _run(store, "history", "t", "--json").json["items"]
    assert [(row["wrote"], row["next"]) for row in rows] == [
        (["agent"], ["review"]),
        (["__start__"], ["agent"]),
        ([], ["__start__"]),
    ]
    shown = _run(store, "show", "t", "--json").json
    assert (list(shown["values"]), shown["changed"]) == (["messages"], ["messages"])
    talk = _run(store, "show", "t", "--messages", "--json").json["items"]
    assert [one["message"]["text"] for one in talk] == ["hi", "done"]
    difference = _run(store, "diff", "t@head~1", "t", "--json").json
    assert (len(difference["messages"]), difference["state"]) == (1, [])


def test_a_copy_is_exact_and_pending_sends_stay_in_their_kind_of_store(
    store: str, tmp_path: Path, fresh_postgres_url: str
) -> None:
    words = ("copy", "t", "--only", "all", "--as", "copy", "--to")
    assert _run(store, *words, str(tmp_path / "copy.sqlite"), "--json").json["verified"] is True
    refused = _run(store, *words, fresh_postgres_url)
    assert (refused.code, "pending Sends in format" in refused.err) == (5, True)
    before = ("copy", f"t@{id_of(1)}", "--as", "part", "--to")
    assert _run(store, *before, fresh_postgres_url, "--json").json["verified"] is True
    back = str(tmp_path / "back.sqlite")
    assert run_cli("copy", "part", "--store", fresh_postgres_url, "--to", back, "--json").json["verified"] is True
    expected = _run(store, "show", f"t@{id_of(1)}", "--json").json["values"]
    assert run_cli("show", "part", "--store", fresh_postgres_url, "--json").json["values"] == expected
