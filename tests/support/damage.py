"""Rows of real threads, damaged by SQL: what a sweeper, a crash, another writer or a careless hand leaves."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg
from langgraph.checkpoint.postgres import PostgresSaver
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from langgraph.checkpoint.sqlite import SqliteSaver

from tests.catalog import CATALOG, Saver, run_case

_TABLES = {
    "sqlite": {"checkpoints": "checkpoints", "writes": "writes", "value": "value"},
    "postgres": {"checkpoints": "checkpoints", "writes": "checkpoint_writes", "value": "blob"},
}
DAMAGED = b"\xc1\xc1"
"""Bytes that no msgpack value begins with."""


@dataclass(frozen=True)
class Rows:
    """A database with the stock saver on it. SQL is written for SQLite, `{writes}` and `{value}` named for both."""

    kind: str
    url: str
    saver: Saver

    def run(self, case: str, thread: str) -> Any:
        """Runs a case of the catalog on a thread and returns its graph."""
        return run_case(CATALOG[case], self.saver, thread)

    def sql(self, query: str, *parameters: object) -> list[tuple[Any, ...]]:
        """Runs one statement and returns what it gives."""
        text = query.format(**_TABLES[self.kind])
        if self.kind == "sqlite":
            with closing(sqlite3.connect(self.url, timeout=30)) as database, database:
                return database.execute(text, parameters).fetchall()
        with psycopg.connect(self.url) as server:
            cursor = server.execute(text.replace("?", "%s"), parameters)  # type: ignore[arg-type]
            return cursor.fetchall() if cursor.description else []

    def ids(self, thread: str, ns: str = "") -> list[str]:
        """The checkpoints of a namespace, oldest first."""
        return [
            id
            for (id,) in self.sql(
                "SELECT checkpoint_id FROM checkpoints WHERE thread_id = ? AND checkpoint_ns = ? ORDER BY 1", thread, ns
            )
        ]

    def delete(self, thread: str, id: str, *, table: str = "checkpoints", ns: str = "") -> None:
        """Deletes the rows of one checkpoint in one table."""
        where = "WHERE thread_id = ? AND checkpoint_ns = ? AND checkpoint_id = ?"
        self.sql(f"DELETE FROM {{{table}}} {where}", thread, ns, id)

    def metadata(self, thread: str, id: str, change: Callable[[dict[str, Any]], object]) -> None:
        """Changes the metadata of one checkpoint."""
        where = "WHERE thread_id = ? AND checkpoint_id = ?"
        found = self.sql(f"SELECT metadata FROM checkpoints {where}", thread, id)[0][0]
        metadata = found if isinstance(found, dict) else json.loads(found)
        change(metadata)
        text = json.dumps(metadata)
        new = text.encode() if self.kind == "sqlite" else text
        self.sql(f"UPDATE checkpoints SET metadata = ? {where}", new, thread, id)

    def checkpoint(self, thread: str, id: str, change: Callable[[dict[str, Any]], object], ns: str = "") -> None:
        """Changes what a checkpoint's own row holds: on SQLite all of it, on Postgres all but blobs."""
        where = "WHERE thread_id = ? AND checkpoint_ns = ? AND checkpoint_id = ?"
        if self.kind == "sqlite":
            type_, data = self.sql(f"SELECT type, checkpoint FROM checkpoints {where}", thread, ns, id)[0]
            document = JsonPlusSerializer().loads_typed((type_, data))
            change(document)
            new = JsonPlusSerializer().dumps_typed(document)
            self.sql(f"UPDATE checkpoints SET type = ?, checkpoint = ? {where}", *new, thread, ns, id)
            return
        document = self.sql(f"SELECT checkpoint FROM checkpoints {where}", thread, ns, id)[0][0]
        change(document)
        self.sql(f"UPDATE checkpoints SET checkpoint = ? {where}", json.dumps(document), thread, ns, id)

    def value(self, thread: str, id: str, channel: str, change: Callable[[Any], Any], ns: str = "") -> None:
        """Changes a channel's value at one checkpoint; on Postgres at all that share its version."""
        serde = JsonPlusSerializer()
        if self.kind == "sqlite":

            def apply(document: dict[str, Any]) -> None:
                document["channel_values"][channel] = change(document["channel_values"][channel])

            self.checkpoint(thread, id, apply, ns)
            return
        where = "WHERE thread_id = ? AND checkpoint_ns = ? AND channel = ? AND version = ?"
        key = (thread, ns, channel, self.version(thread, id, channel, ns))
        type_, blob = self.sql(f"SELECT type, blob FROM checkpoint_blobs {where}", *key)[0]
        new = serde.dumps_typed(change(serde.loads_typed((type_, bytes(blob)))))
        self.sql(f"UPDATE checkpoint_blobs SET type = ?, blob = ? {where}", *new, *key)

    def version(self, thread: str, id: str, channel: str, ns: str = "") -> str:
        """The version of a channel at one checkpoint."""
        found: list[Any] = []
        self.checkpoint(thread, id, lambda document: found.append(document["channel_versions"][channel]), ns)
        return str(found[0])

    def ruin(self, thread: str, id: str, channel: str, ns: str = "") -> None:
        """Makes a channel's stored bytes unreadable at one checkpoint, and only these."""
        where = "WHERE thread_id = ? AND checkpoint_ns = ?"
        if self.kind == "postgres":
            version = self.version(thread, id, channel, ns)
            self.sql(
                f"UPDATE checkpoint_blobs SET blob = ? {where} AND channel = ? AND version = ?",
                DAMAGED, thread, ns, channel, version,
            )  # fmt: skip
            return
        from agentctl.codec.packed import join_map, split_map

        data = self.sql(f"SELECT checkpoint FROM checkpoints {where} AND checkpoint_id = ?", thread, ns, id)[0][0]
        parts = split_map(data)
        values = split_map(parts["channel_values"])
        # A text that is not UTF-8: the map around it can still be taken apart.
        values[channel] = b"\xa2\xff\xfe"
        parts["channel_values"] = join_map(values)
        self.sql(
            f"UPDATE checkpoints SET checkpoint = ? {where} AND checkpoint_id = ?", join_map(parts), thread, ns, id
        )


@contextmanager
def sqlite_rows(folder: Path) -> Iterator[Rows]:
    """A new SQLite file."""
    path = folder / "threads.sqlite"
    with SqliteSaver.from_conn_string(str(path)) as saver:
        saver.setup()
        yield Rows("sqlite", str(path), saver)


@contextmanager
def postgres_rows(url: str) -> Iterator[Rows]:
    """The tables in an empty database."""
    with PostgresSaver.from_conn_string(url) as saver:
        saver.setup()
        yield Rows("postgres", url, saver)
