"""Seeded threads for the benchmarks, made by running a real graph with the stock savers.

`chat`: a window of 40 messages of 200 bytes at every checkpoint. `short`: the same of 2 messages. `growing`: one more
message of 200 bytes a step.

Usage: python -m benchmarks.threads STORE make KIND THREAD N_CHECKPOINTS
                                          branches THREAD N_MESSAGES     (prints both ids)
                                          heavy THREAD MEGABYTES         (one message is that large)
                                          lengthen SOURCE THREAD TIMES
                                          multiply SOURCE TIMES
"""

from __future__ import annotations

import random
import sqlite3
import string
import sys
from contextlib import closing
from functools import partial
from typing import Annotated, Any, TypedDict

import psycopg
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.graph import END, START, StateGraph
from langgraph.graph.message import add_messages

from benchmarks.stock import open_saver

WINDOWS = {"chat": 40, "short": 2}
"""How many messages the state of a kind holds."""
N_BYTES = 200


class Window(TypedDict):
    """State of `chat`: a bounded window, and how many steps are left."""

    messages: list[AnyMessage]
    left: int


class Growing(TypedDict):
    """State of `growing`: every message so far."""

    messages: Annotated[list[AnyMessage], add_messages]
    left: int


def _text(seed: int) -> str:
    return "".join(random.Random(seed).choices(string.ascii_letters + "      ", k=N_BYTES))


def _message(number: int) -> AnyMessage:
    kind = AIMessage if number % 2 else HumanMessage
    return kind(_text(number), id=f"m-{number}")


def build(kind: str) -> StateGraph[Any, Any, Any, Any]:
    """Returns the graph of a kind: two nodes that take turns until no step is left."""
    n_window = WINDOWS.get(kind, 0)

    def window(state: Window) -> dict[str, Any]:
        number = state["left"]
        return {"messages": [*state["messages"], _message(number)][-n_window:], "left": number - 1}

    def growing(state: Growing) -> dict[str, Any]:
        return {"messages": [_message(state["left"])], "left": state["left"] - 1}

    def onward(name: str) -> Any:
        return lambda state: name if state["left"] > 0 else END

    node = window if n_window else growing
    graph: StateGraph[Any, Any, Any, Any] = StateGraph(Window if n_window else Growing)
    graph.add_node("agent", node)
    graph.add_node("tools", node)
    graph.add_edge(START, "agent")
    graph.add_conditional_edges("agent", onward("tools"), ["tools", END])
    graph.add_conditional_edges("tools", onward("agent"), ["agent", END])
    return graph


def make_thread(saver: BaseCheckpointSaver[Any], kind: str, thread: str, n_checkpoints: int) -> None:
    """Writes a thread of about `n_checkpoints` checkpoints."""
    graph = build(kind).compile(checkpointer=saver)
    first = [_message(10_000_000 + i) for i in range(WINDOWS.get(kind, 1))]
    config: Any = {"configurable": {"thread_id": thread}, "recursion_limit": n_checkpoints + 10}
    graph.invoke({"messages": first, "left": n_checkpoints - 2}, config, durability="sync")


def make_branches(saver: BaseCheckpointSaver[Any], thread: str, n_messages: int) -> tuple[str, str]:
    """Writes a thread of two branches that part after half of their messages; returns their checkpoints' ids."""
    graph = build("growing").compile(checkpointer=saver)
    half = n_messages // 2

    def wrote(config: Any, first: int) -> Any:
        messages = [_message(first + i) for i in range(half)]
        return graph.update_state(config, {"messages": messages, "left": 0}, as_node="agent")

    base = wrote({"configurable": {"thread_id": thread}}, 0)
    left, right = wrote(base, n_messages), wrote(base, 2 * n_messages)
    return left["configurable"]["checkpoint_id"], right["configurable"]["checkpoint_id"]


def make_heavy(saver: BaseCheckpointSaver[Any], thread: str, n_megabytes: int) -> None:
    """Writes a thread in which one message of two is very large; it is gone again before the newest checkpoint."""
    graph = build("short").compile(checkpointer=saver)
    config: Any = {"configurable": {"thread_id": thread}}
    for text in ("small", "x" * (n_megabytes * 1_000_000), "small", "small", "small"):
        update = {"messages": [HumanMessage(text, id="m-0"), AIMessage("noted", id="m-1")], "left": 0}
        graph.update_state(config, update, as_node="agent")


def lengthen(store: str, source: str, thread: str, times: int) -> None:
    """Makes a thread `times` as long as `source`, by copying its rows with later ids."""
    if store.startswith("postgresql://"):
        _lengthen_in_postgres(store, source, thread, times)
    else:
        _lengthen_in_file(store, source, thread, times)


_APART = 16
"""How much later each turn is, in steps of the first 32 bits of an id: 27 s each, so more than a thread takes."""

_LATER = "lpad(to_hex(('x' || left({0}, 8))::bit(32)::int + %(turn)s), 8, '0') || substr({0}, 9)"


def _lengthen_in_postgres(url: str, source: str, thread: str, times: int) -> None:
    """Copies the blobs once: their versions are the same in every turn."""
    later, later_parent = _LATER.format("checkpoint_id"), _LATER.format("parent_checkpoint_id")
    columns = {table: ", ".join(names) for table, names in POSTGRES_TABLES.items()}
    with psycopg.connect(url) as connection:
        names = columns["checkpoint_blobs"]
        connection.execute(
            f"INSERT INTO checkpoint_blobs (thread_id, {names}) SELECT %s, {names} FROM checkpoint_blobs"
            " WHERE thread_id = %s",
            (thread, source),
        )
        for turn in range(times):
            given = {"thread": thread, "source": source, "turn": turn * _APART}
            connection.execute(
                f"INSERT INTO checkpoints (thread_id, {columns['checkpoints']}) SELECT %(thread)s, checkpoint_ns,"
                f" {later}, coalesce({later_parent}, (SELECT max(checkpoint_id) FROM checkpoints"
                " WHERE thread_id = %(thread)s)), type, checkpoint, metadata FROM checkpoints"
                " WHERE thread_id = %(source)s",
                given,
            )
            connection.execute(
                f"INSERT INTO checkpoint_writes (thread_id, {columns['checkpoint_writes']}) SELECT %(thread)s,"
                f" checkpoint_ns, {later}, task_id, task_path, idx, channel, type, blob FROM checkpoint_writes"
                " WHERE thread_id = %(source)s",
                given,
            )
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("ANALYZE")


def _lengthen_in_file(path: str, source: str, thread: str, times: int) -> None:
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        tip: str | None = None
        for turn in range(times):
            connection.create_function("later", 1, partial(_later, turn=turn * _APART))
            connection.execute(
                "INSERT INTO checkpoints SELECT ?, checkpoint_ns, later(checkpoint_id),"
                " coalesce(later(parent_checkpoint_id), ?), type, checkpoint, metadata"
                " FROM checkpoints WHERE thread_id = ?",
                (thread, tip, source),
            )
            connection.execute(
                "INSERT INTO writes (thread_id, checkpoint_ns, checkpoint_id, task_id, task_path, idx, channel, type,"
                " value) SELECT ?, checkpoint_ns, later(checkpoint_id), task_id, task_path, idx, channel, type, value"
                " FROM writes WHERE thread_id = ?",
                (thread, source),
            )
            (tip,) = connection.execute(
                "SELECT max(checkpoint_id) FROM checkpoints WHERE thread_id = ?", (thread,)
            ).fetchone()
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")


TABLES = {
    "checkpoints": ("checkpoint_ns", "checkpoint_id", "parent_checkpoint_id", "type", "checkpoint", "metadata"),
    "writes": ("checkpoint_ns", "checkpoint_id", "task_id", "task_path", "idx", "channel", "type", "value"),
}
POSTGRES_TABLES = {
    "checkpoints": TABLES["checkpoints"],
    "checkpoint_blobs": ("checkpoint_ns", "channel", "version", "type", "blob"),
    "checkpoint_writes": (*TABLES["writes"][:-1], "blob"),
}


def multiply(store: str, source: str, times: int) -> None:
    """Copies a thread's rows under `times` other names, SOURCE-1 and so on."""
    is_postgres = store.startswith("postgresql://")
    mark, tables = ("%s", POSTGRES_TABLES) if is_postgres else ("?", TABLES)
    with open_saver(store) as saver:
        run = saver.conn.execute
        for number in range(1, times + 1):
            for table, columns in tables.items():
                names = ", ".join(columns)
                run(
                    f"INSERT INTO {table} (thread_id, {names}) SELECT {mark}, {names} FROM {table}"
                    f" WHERE thread_id = {mark}",
                    (f"{source}-{number}", source),
                )
            saver.conn.commit()
        run("ANALYZE" if is_postgres else "PRAGMA wal_checkpoint(TRUNCATE)")


def _later(checkpoint_id: str | None, turn: int) -> str | None:
    """Returns an id with the same tail and a later time."""
    return None if checkpoint_id is None else f"{int(checkpoint_id[:8], 16) + turn:08x}{checkpoint_id[8:]}"


def main() -> None:
    """Writes what the command line says. A process of its own: what it imports would count as memory of others."""
    store, *asked = sys.argv[1:]
    match asked:
        case ["make", kind, thread, n_checkpoints]:
            with open_saver(store) as saver:
                saver.setup()
                make_thread(saver, kind, thread, int(n_checkpoints))
        case ["branches", thread, n_messages]:
            with open_saver(store) as saver:
                print(*make_branches(saver, thread, int(n_messages)))
        case ["heavy", thread, n_megabytes]:
            with open_saver(store) as saver:
                make_heavy(saver, thread, int(n_megabytes))
        case ["lengthen", source, thread, times]:
            lengthen(store, source, thread, int(times))
        case ["multiply", source, times]:
            multiply(store, source, int(times))


if __name__ == "__main__":
    main()
