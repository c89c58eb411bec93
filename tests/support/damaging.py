"""What each fault of `doctor` is made by: a real thread, run on a stock saver, and its rows damaged."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, TypedDict

import pytest
from langchain_core.messages import AnyMessage
from langgraph.checkpoint.serde.encrypted import EncryptedSerializer
from langgraph.graph import START, StateGraph

from tests.catalog import config_of
from tests.support.damage import Rows

KEY = "0123456789abcdef"


@dataclass(frozen=True)
class Damage:
    """How a thread is damaged.

    `also` are faults that are the same damage seen from elsewhere; `only` is the one kind of store that can be damaged
    so.
    """

    do: Callable[[Rows, str], object]
    also: frozenset[str] = frozenset()
    only: str | None = None


def messages(case: str, change: Callable[[list[AnyMessage]], list[AnyMessage]]) -> Callable[[Rows, str], object]:
    """Changes the messages of the head."""

    def do(rows: Rows, thread: str) -> None:
        rows.run(case, thread)
        rows.value(thread, rows.ids(thread)[-1], "messages", change)

    return do


def again(message: Any, **changed: Any) -> Any:
    return message.model_copy(update=changed)


def malformed(found: list[AnyMessage]) -> list[AnyMessage]:
    asked: Any = found[1]
    bad = {"name": "get_policy", "id": "c2", "args": "{topic", "error": "not JSON", "type": "invalid_tool_call"}
    return [found[0], again(asked, tool_calls=asked.tool_calls[:1], invalid_tool_calls=[bad]), found[2], found[4]]


def without_ids(found: list[AnyMessage]) -> list[AnyMessage]:
    asked: Any = found[1]
    calls = [{**call, "id": ""} for call in asked.tool_calls]
    return [found[0], again(asked, tool_calls=calls), *(again(m, tool_call_id="") for m in found[2:4]), found[4]]


def stop_after(rows: Rows, thread: str, n_checkpoints: int, *, writes: bool = False) -> str:
    """Deletes what came after the first few checkpoints, as if the run had been stopped there; returns the last."""
    ids = rows.ids(thread)
    for id in ids[n_checkpoints:]:
        rows.delete(thread, id)
        rows.delete(thread, id, table="writes")
    last = ids[n_checkpoints - 1]
    if not writes:
        rows.delete(thread, last, table="writes")
    return last


def call_waiting(rows: Rows, thread: str) -> None:
    rows.run("agent", thread)
    stop_after(rows, thread, 3)


def call_failed(rows: Rows, thread: str) -> None:
    """One of the two tools raised, the other's result is stored."""
    rows.run("agent", thread)
    last = stop_after(rows, thread, 3, writes=True)
    where = "WHERE thread_id = ? AND checkpoint_id = ?"
    task, idx = rows.sql(f"SELECT task_id, idx FROM {{writes}} {where} AND channel = 'messages' LIMIT 1", thread, last)[
        0
    ]
    rows.sql(f"DELETE FROM {{writes}} {where} AND task_id = ? AND idx <> ?", thread, last, task, idx)
    rows.sql(
        f"UPDATE {{writes}} SET channel = '__error__', idx = -1, type = 'msgpack', {{value}} = ?"
        f" {where} AND task_id = ?",
        b"\xb2TimeoutError('no')", thread, last, task,
    )  # fmt: skip


class Numbers(TypedDict, total=False):
    n: Annotated[int, operator.add]


def route_to(rows: Rows, thread: str, router: Callable[[Any], str]) -> None:
    graph = StateGraph(Numbers)
    graph.add_node("count", lambda state: {"n": 1}).add_node("report", lambda state: {"n": 1})
    graph.add_edge(START, "count").add_conditional_edges("count", router)
    app = graph.compile(checkpointer=rows.saver)
    app.invoke({"n": 0}, config_of(thread), durability="sync")  # type: ignore[arg-type]


def router_raised(rows: Rows, thread: str) -> None:
    def router(state: Any) -> str:
        raise ValueError("no route")

    with pytest.raises(ValueError, match="no route"):
        route_to(rows, thread, router)


def early_join(rows: Rows, thread: str) -> None:
    """Stores the side of a join that arrives later as arrived: what durability "async" does when nodes are fast."""
    rows.run("uneven join", thread)
    channel = "join:left+right_more:end"
    at = next(id for id in rows.ids(thread) if channel in _channels(rows, thread, id))
    rows.value(thread, at, channel, lambda names: {*names, "right_more"})


def _channels(rows: Rows, thread: str, id: str) -> list[str]:
    found: list[str] = []
    rows.checkpoint(thread, id, lambda document: found.extend(document["channel_versions"]))
    return found


def delete_row(rows: Rows, thread: str, case: str, at: int, *, writes: bool) -> None:
    rows.run(case, thread)
    id = rows.ids(thread)[at]
    rows.delete(thread, id)
    if writes:
        rows.delete(thread, id, table="writes")


def recreate(rows: Rows, thread: str) -> None:
    """The thread was deleted while the last step ran."""
    rows.run("linear", thread)
    *before, head = rows.ids(thread)
    for id in before:
        rows.delete(thread, id)
    for id in before[:-1]:
        rows.delete(thread, id, table="writes")
    if rows.kind == "postgres":
        version = rows.version(thread, head, "log")
        rows.sql("DELETE FROM checkpoint_blobs WHERE thread_id = ? AND version <> ?", thread, version)


def behead(rows: Rows, thread: str) -> None:
    rows.run("subgraph", thread)
    for id in rows.ids(thread):
        rows.delete(thread, id)
        rows.delete(thread, id, table="writes")


def lose_blob(rows: Rows, thread: str) -> None:
    rows.run("linear", thread)
    version = rows.version(thread, rows.ids(thread)[2], "log")
    rows.sql("DELETE FROM checkpoint_blobs WHERE thread_id = ? AND channel = 'log' AND version = ?", thread, version)


def ruin_row(rows: Rows, thread: str) -> None:
    rows.run("linear", thread)
    id = rows.ids(thread)[2]
    rows.sql("UPDATE checkpoints SET checkpoint = ? WHERE thread_id = ? AND checkpoint_id = ?", b"\xc1", thread, id)


def ruin_value(rows: Rows, thread: str) -> None:
    rows.run("linear", thread)
    rows.ruin(thread, rows.ids(thread)[2], "log")


def ruin_write(rows: Rows, thread: str) -> None:
    rows.run("linear", thread)
    rows.sql(
        "UPDATE {writes} SET {value} = ? WHERE thread_id = ? AND checkpoint_id = ? AND channel = 'log'",
        b"\xc1", thread, rows.ids(thread)[2],
    )  # fmt: skip


def text_for_bytes(rows: Rows, thread: str) -> None:
    """SQLite takes anything in any column: here a number where a write's bytes are."""
    rows.run("linear", thread)
    rows.sql("UPDATE {writes} SET channel = x'ff' WHERE thread_id = ? AND channel = 'log'", thread)


def ruin_metadata(rows: Rows, thread: str) -> None:
    rows.run("linear", thread)
    where = "WHERE thread_id = ? AND checkpoint_id = ?"
    bad = "[1]" if rows.kind == "postgres" else b'{"step": '
    rows.sql(f"UPDATE checkpoints SET metadata = ? {where}", bad, thread, rows.ids(thread)[-1])


@dataclass
class Order:
    id: str
    total: float


class Ordered(TypedDict, total=False):
    order: Order


def drift(rows: Rows, thread: str) -> None:
    """The head has the bare fields of what was a dataclass."""
    graph = StateGraph(Ordered)
    for name in ("price", "check"):
        graph.add_node(name, lambda state: {"order": Order(state["order"].id, state["order"].total + 1)})
    graph.add_edge(START, "price").add_edge("price", "check")
    app = graph.compile(checkpointer=rows.saver)
    app.invoke({"order": Order("A1", 10.0)}, config_of(thread), durability="sync")  # type: ignore[arg-type]
    rows.value(thread, rows.ids(thread)[-1], "order", lambda order: {"id": "A1", "total": 12.0})


def encrypted(rows: Rows) -> Rows:
    saver: Any = type(rows.saver)(
        conn=rows.saver.conn, serde=EncryptedSerializer.from_pycryptodome_aes(key=KEY.encode())
    )  # type: ignore[call-arg,attr-defined]
    return Rows(rows.kind, rows.url, saver)


def encrypt(rows: Rows, thread: str) -> None:
    encrypted(rows).run("linear", thread)


def encrypt_later(rows: Rows, thread: str) -> None:
    rows.run("linear", thread)
    encrypted(rows).run("linear", thread)


def leak(rows: Rows, thread: str) -> None:
    rows.run("linear", thread)
    for id in rows.ids(thread):
        rows.metadata(thread, id, lambda metadata: metadata.update(openai_api_key="abcdef0123456789"))


def rename(rows: Rows, thread: str, at: int, id: str) -> None:
    """Gives a checkpoint another id, with all that names it."""
    rows.run("linear", thread)
    old = rows.ids(thread)[at]
    rows.sql("UPDATE {writes} SET checkpoint_id = ? WHERE thread_id = ? AND checkpoint_id = ?", id, thread, old)
    for column in ("checkpoint_id", "parent_checkpoint_id"):
        rows.sql(f"UPDATE checkpoints SET {column} = ? WHERE thread_id = ? AND {column} = ?", id, thread, old)


def head_document(change: Callable[[dict[str, Any]], object]) -> Callable[[Rows, str], object]:
    """Changes what the head's own row holds."""

    def do(rows: Rows, thread: str) -> None:
        rows.run("linear", thread)
        rows.checkpoint(thread, rows.ids(thread)[-1], change)

    return do


def _numbered(versions: dict[str, str]) -> dict[str, int]:
    return {name: int(version.partition(".")[0]) for name, version in versions.items()}


def number_seen(document: dict[str, Any]) -> None:
    document["versions_seen"] = {node: _numbered(seen) for node, seen in document["versions_seen"].items()}


def number_all(document: dict[str, Any]) -> None:
    document["channel_versions"] = _numbered(document["channel_versions"])
    number_seen(document)


def renumber(rows: Rows, thread: str, change: Callable[[dict[str, Any]], object]) -> None:
    """Numbers versions on every checkpoint, as LangGraph.js does."""
    rows.run("linear", thread)
    for id in rows.ids(thread):
        rows.checkpoint(thread, id, change)
    if rows.kind == "postgres" and change is number_all:
        rows.sql(
            "UPDATE checkpoint_blobs SET version = split_part(version, '.', 1)::int::text WHERE thread_id = ?", thread
        )


DAMAGES: Mapping[str, Damage] = {
    "call_unanswered": Damage(messages("agent", lambda found: [*found[:3], found[4]])),
    "call_failed": Damage(call_failed),
    "call_answered_twice": Damage(messages("agent", lambda m: [*m[:4], again(m[3], id="late"), m[4]])),
    "call_orphaned": Damage(messages("agent", lambda m: [m[0], *m[2:]])),
    "call_misordered": Damage(messages("agent", lambda m: [*m[:3], m[4], m[3]])),
    "call_invalid": Damage(messages("agent", malformed)),
    "call_without_id": Damage(messages("agent", without_ids)),
    "call_waiting": Damage(call_waiting),
    "task_failed": Damage(lambda rows, thread: rows.run("failed", thread)),
    "router_failed": Damage(router_raised),
    "interrupt_pending": Damage(lambda rows, thread: rows.run("interrupt inside", thread)),
    "writes_missing": Damage(
        lambda rows, thread: (rows.run("linear", thread), rows.delete(thread, rows.ids(thread)[2], table="writes"))
    ),
    "join_wrong": Damage(early_join),
    "value_mutated": Damage(
        lambda rows, thread: (
            rows.run("values", thread),
            rows.value(thread, rows.ids(thread)[-1], "table", lambda table: {**table, "late": 1}),
        ),
        only="sqlite",
    ),
    "parent_missing": Damage(lambda rows, thread: delete_row(rows, thread, "linear", 2, writes=True)),
    "parent_wrong": Damage(
        lambda rows, thread: (
            rows.run("linear", thread),
            rows.metadata(thread, rows.ids(thread)[2], lambda metadata: metadata.update(step=99)),
        )
    ),
    "rows_recreated": Damage(recreate),
    "writes_orphaned": Damage(lambda rows, thread: delete_row(rows, thread, "interrupt inside", -1, writes=False)),
    "blobs_orphaned": Damage(
        lambda rows, thread: delete_row(rows, thread, "interrupt inside", -1, writes=True), only="postgres"
    ),
    "namespace_orphaned": Damage(
        lambda rows, thread: delete_row(rows, thread, "subgraph interrupted", -1, writes=True)
    ),
    "thread_headless": Damage(behead),
    "blob_missing": Damage(lose_blob, only="postgres"),
    "delta_broken": Damage(
        lambda rows, thread: delete_row(rows, thread, "delta", 2, writes=True), also=frozenset({"parent_missing"})
    ),
    "row_unreadable": Damage(ruin_row, only="sqlite"),
    "rows_unreadable": Damage(text_for_bytes, only="sqlite"),
    "value_unreadable": Damage(ruin_value),
    "metadata_unreadable": Damage(ruin_metadata),
    "metadata_lacking": Damage(
        lambda rows, thread: (
            rows.run("linear", thread),
            rows.metadata(thread, rows.ids(thread)[-1], lambda metadata: metadata.pop("step")),
        )
    ),
    "value_drifted": Damage(drift),
    "key_missing": Damage(encrypt),
    "encryption_mixed": Damage(encrypt_later),
    "metadata_secret": Damage(leak),
    "several_heads": Damage(lambda rows, thread: rows.run("update fork", thread)),
    "head_edited": Damage(lambda rows, thread: rows.run("update fork", thread)),
    "head_superseded": Damage(lambda rows, thread: rename(rows, thread, -2, "1fffffff-ffff-6fff-8fff-ffffffffffff")),
    "id_invalid": Damage(lambda rows, thread: rename(rows, thread, -1, "checkpoint-4")),
    "versions_missing": Damage(head_document(lambda document: document.update(channel_versions={}))),
    "versions_integer": Damage(lambda rows, thread: renumber(rows, thread, number_all)),
    "versions_mixed": Damage(lambda rows, thread: renumber(rows, thread, number_seen)),
    "format_newer": Damage(head_document(lambda document: document.update(v=9))),
}
