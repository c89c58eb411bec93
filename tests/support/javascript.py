"""A thread as LangGraph.js leaves it on its SQLite and Postgres savers: JSON values, versions that are numbers.

Source: langgraphjs, libs/checkpoint-sqlite/src/index.ts, libs/checkpoint-postgres/src (index.ts, migrations.ts) and
libs/checkpoint/src/serde/jsonplus.ts, of August 2026.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from uuid import UUID, uuid5

import psycopg
from langgraph.checkpoint.postgres.base import MIGRATIONS

from tests.support.stored import is_postgres

THREAD = "js"
SQLITE_TABLES = (
    "CREATE TABLE checkpoints (thread_id TEXT NOT NULL, checkpoint_ns TEXT NOT NULL DEFAULT '', checkpoint_id TEXT"
    " NOT NULL, parent_checkpoint_id TEXT, type TEXT, checkpoint BLOB, metadata BLOB,"
    " PRIMARY KEY (thread_id, checkpoint_ns, checkpoint_id))",
    "CREATE TABLE writes (thread_id TEXT NOT NULL, checkpoint_ns TEXT NOT NULL DEFAULT '', checkpoint_id TEXT NOT NULL,"
    " task_id TEXT NOT NULL, idx INTEGER NOT NULL, channel TEXT NOT NULL, type TEXT, value BLOB,"
    " PRIMARY KEY (thread_id, checkpoint_ns, checkpoint_id, task_id, idx))",
)
_N_MIGRATIONS = 5
SET = {"lc": 2, "type": "constructor", "id": ["Set"], "method": None, "args": [["vip"]], "kwargs": {}}
UNDEFINED = {"lc": 2, "type": "undefined"}


def message(kind: str, content: str, id: str, **fields: Any) -> dict[str, Any]:
    """A message as LangChain.js serializes one."""
    kwargs = {"content": content, "additional_kwargs": {}, "response_metadata": {}, "id": id, **fields}
    return {"lc": 1, "type": "constructor", "id": ["langchain_core", "messages", kind], "kwargs": kwargs}


CALL = {"name": "look", "args": {"q": 1}, "id": "call_1", "type": "tool_call"}
HUMAN = message("HumanMessage", "hi", "h1")
CALLING = message("AIMessage", "", "a1", tool_calls=[CALL], invalid_tool_calls=[])
FOUND = message("ToolMessage", "found", "t1", tool_call_id="call_1", name="look")
REPLY = message("AIMessage", "done", "a2", tool_calls=[], invalid_tool_calls=[])


@dataclass
class Step:
    """One checkpoint: values, versions, what nodes have seen, and the writes of the task that ran from it."""

    values: dict[str, Any]
    versions: dict[str, int]
    seen: dict[str, dict[str, int]] = field(default_factory=dict)
    writes: Sequence[tuple[str, Any]] = ()
    node: str = "agent"

    @property
    def trigger(self) -> str:
        """The channel that made the task run."""
        return "__start__" if self.node == "__start__" else f"branch:to:{self.node}"


def chat(**more: Any) -> list[Step]:
    """An agent that calls a tool once: five checkpoints. `more` are values that the tool's step adds."""
    started = {"__start__": {"__start__": 1}}
    first = {**started, "agent": {"branch:to:agent": 2}}
    called = {**first, "tools": {"branch:to:tools": 3}}
    state = {"count": 3, "ratio": 0.5, "cfg": {"a": [1, None]}, **more}
    versions = {"__start__": 2, "messages": 2, "branch:to:agent": 2}
    later = {**versions, "messages": 3, "branch:to:agent": 3, "branch:to:tools": 3}
    answered = {**later, "messages": 4, "branch:to:agent": 4, "branch:to:tools": 4, **dict.fromkeys(state, 4)}
    return [
        Step(
            {"__start__": {"messages": [HUMAN]}},
            {"__start__": 1},
            {},
            [("messages", [HUMAN]), ("branch:to:agent", None)],
            node="__start__",
        ),
        Step(
            {"messages": [HUMAN], "branch:to:agent": None},
            versions,
            started,
            [("messages", [CALLING]), ("branch:to:tools", None)],
        ),
        Step(
            {"messages": [HUMAN, CALLING], "branch:to:tools": None},
            later,
            first,
            [("messages", [FOUND]), *state.items(), ("branch:to:agent", None)],
            node="tools",
        ),
        Step(
            {"messages": [HUMAN, CALLING, FOUND], "branch:to:agent": None, **state},
            answered,
            called,
            [("messages", [REPLY])],
        ),
        Step(
            {"messages": [HUMAN, CALLING, FOUND, REPLY], **state},
            {**answered, "messages": 5, "branch:to:agent": 5},
            {**called, "agent": {"branch:to:agent": 4}},
        ),
    ]


def id_of(place: int) -> str:
    """The id of a checkpoint by its place from the oldest."""
    return f"1f1ecc84-b5d8-6{place:03x}-800{place}-02cb0e6a8a3c"


def fill(store: str, steps: Sequence[Step], thread: str = THREAD) -> None:
    """Makes the tables of LangGraph.js in an empty store and a thread in them."""
    (_fill_postgres if is_postgres(store) else _fill_sqlite)(store, steps, thread)


def _document(step: Step, place: int) -> dict[str, Any]:
    return {
        "v": 4,
        "id": id_of(place),
        "ts": f"2026-09-01T10:00:0{place}.000Z",
        "channel_values": step.values,
        "channel_versions": step.versions,
        "versions_seen": {"__input__": {}, **step.seen},
    }


def _metadata(place: int, thread: str) -> dict[str, Any]:
    return {"source": "loop" if place else "input", "step": place - 1, "parents": {}, "thread_id": thread}


def _task(place: int, step: Step) -> str:
    """The id of the task that ran from a checkpoint: its node is the one that the next versions say has run.

    Source: langgraphjs, libs/langgraph-core/src/pregel/algo.ts (`_prepareSingleTask`).
    """
    name = f'["{step.node}","{place}","{step.node}","__pregel_pull",["{step.trigger}"]]'
    return str(uuid5(UUID(id_of(place)), name))


def _fill_sqlite(path: str, steps: Sequence[Step], thread: str) -> None:
    with closing(sqlite3.connect(Path(path), isolation_level=None)) as database:
        for statement in SQLITE_TABLES:
            database.execute(statement)
        for place, step in enumerate(steps):
            parent = id_of(place - 1) if place else None
            state, metadata = _bytes(_document(step, place)), _bytes(_metadata(place, thread))
            row = (thread, "", id_of(place), parent, "json", state, metadata)
            database.execute("INSERT INTO checkpoints VALUES (?, ?, ?, ?, ?, ?, ?)", row)
            for idx, (channel, value) in enumerate(step.writes):
                write = (thread, "", id_of(place), _task(place, step), idx, channel, "json", _bytes(value))
                database.execute("INSERT INTO writes VALUES (?, ?, ?, ?, ?, ?, ?, ?)", write)


def _fill_postgres(url: str, steps: Sequence[Step], thread: str) -> None:
    known: set[tuple[str, int]] = set()
    with psycopg.connect(url, autocommit=True) as server:
        for version, statement in enumerate(MIGRATIONS[:_N_MIGRATIONS]):
            server.execute(statement)  # type: ignore[arg-type]
            server.execute("INSERT INTO checkpoint_migrations VALUES (%s)", (version,))
        for place, step in enumerate(steps):
            document = _document(step, place)
            values = document.pop("channel_values")
            for channel, version in step.versions.items():
                if (channel, version) not in known:
                    known.add((channel, version))
                    blob = ("json", _bytes(values[channel])) if channel in values else ("empty", None)
                    server.execute(
                        "INSERT INTO checkpoint_blobs VALUES (%s, '', %s, %s, %s, %s)",
                        (thread, channel, str(version), *blob),
                    )
            server.execute(
                "INSERT INTO checkpoints (thread_id, checkpoint_ns, checkpoint_id, parent_checkpoint_id, checkpoint,"
                " metadata) VALUES (%s, '', %s, %s, %s, %s)",
                (
                    thread,
                    id_of(place),
                    id_of(place - 1) if place else None,
                    json.dumps(document),
                    json.dumps(_metadata(place, thread)),
                ),
            )
            for idx, (channel, value) in enumerate(step.writes):
                server.execute(
                    "INSERT INTO checkpoint_writes VALUES (%s, '', %s, %s, %s, %s, 'json', %s)",
                    (thread, id_of(place), _task(place, step), idx, channel, _bytes(value)),
                )


def _bytes(value: Any) -> bytes:
    """JSON as `JSON.stringify` writes it."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()
