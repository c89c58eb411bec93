"""The stock tables are those that the readers know. When a release changes one, this says which column."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import psycopg
from langgraph.checkpoint.postgres import PostgresSaver
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.store.postgres import PostgresStore
from langgraph.store.sqlite import SqliteStore

from agentctl.stores.postgres import layout
from agentctl.stores.sqlite import reader as sqlite_reader

POSTGRES_COLUMNS = "SELECT column_name, data_type FROM information_schema.columns WHERE table_name = %s"
KEYS = """
SELECT array_agg(a.attname::text ORDER BY k.position) FROM pg_index i
CROSS JOIN unnest(i.indkey::int[]) WITH ORDINALITY AS k(number, position)
JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = k.number
WHERE i.indrelid = %s::regclass AND i.indisprimary
"""


def _sqlite_columns(path: Path, table: str) -> dict[str, int]:
    """Returns column names with their place in the primary key, 0 for none."""
    with closing(sqlite3.connect(path)) as connection:
        return {row[1]: row[5] for row in connection.execute(f"PRAGMA table_info({table})")}


def test_the_sqlite_checkpoint_tables_have_the_columns_that_are_read_and_no_others(tmp_path: Path) -> None:
    path = tmp_path / "stock.sqlite"
    with SqliteSaver.from_conn_string(str(path)) as saver:
        saver.setup()
    checkpoints, writes = _sqlite_columns(path, "checkpoints"), _sqlite_columns(path, "writes")
    assert set(checkpoints) == set(sqlite_reader.CHECKPOINT_COLUMNS)
    assert set(writes) == {*sqlite_reader.WRITE_COLUMNS, sqlite_reader.TASK_PATH}
    assert [name for name, place in checkpoints.items() if place] == ["thread_id", "checkpoint_ns", "checkpoint_id"]
    assert [name for name, place in writes.items() if place] == [
        "thread_id",
        "checkpoint_ns",
        "checkpoint_id",
        "task_id",
        "idx",
    ]


def test_the_sqlite_memory_store_has_the_columns_that_are_read(tmp_path: Path) -> None:
    path = tmp_path / "stock.sqlite"
    with SqliteStore.from_conn_string(str(path)) as store:
        store.setup()
    assert set(_sqlite_columns(path, "store")) == {*sqlite_reader.STORE_COLUMNS, "expires_at", "ttl_minutes"}


def test_threads_are_listed_from_the_index_of_the_primary_key_alone(tmp_path: Path) -> None:
    path = tmp_path / "stock.sqlite"
    with SqliteSaver.from_conn_string(str(path)) as saver:
        saver.setup()
    with closing(sqlite3.connect(path)) as connection:
        plan = connection.execute(f"EXPLAIN QUERY PLAN {sqlite_reader.HEADS_QUERY}").fetchall()
    assert [step[3] for step in plan] == ["SCAN checkpoints USING COVERING INDEX sqlite_autoindex_checkpoints_1"]


def test_the_postgres_checkpoint_tables_have_the_columns_that_are_read_and_no_others(fresh_postgres_url: str) -> None:
    with PostgresSaver.from_conn_string(fresh_postgres_url) as saver:
        saver.setup()
    with psycopg.connect(fresh_postgres_url) as connection:
        found = {table: dict(connection.execute(POSTGRES_COLUMNS, (table,)).fetchall()) for table in layout.TABLES}
        keys = {table: connection.execute(KEYS, (table,)).fetchone() for table in layout.TABLES}
        newest = connection.execute("SELECT max(v) FROM checkpoint_migrations").fetchone()
    assert set(found["checkpoints"]) == {*layout.TABLES["checkpoints"], "type"}
    assert set(found["checkpoint_blobs"]) == set(layout.TABLES["checkpoint_blobs"])
    assert set(found["checkpoint_writes"]) == {*layout.TABLES["checkpoint_writes"], layout.TASK_PATH}
    assert (found["checkpoints"]["checkpoint"], found["checkpoints"]["metadata"]) == ("jsonb", "jsonb")
    assert (found["checkpoint_blobs"]["blob"], found["checkpoint_writes"]["blob"]) == ("bytea", "bytea")
    assert keys["checkpoints"] == (["thread_id", "checkpoint_ns", "checkpoint_id"],)
    assert keys["checkpoint_blobs"] == (["thread_id", "checkpoint_ns", "channel", "version"],)
    assert keys["checkpoint_writes"] == (["thread_id", "checkpoint_ns", "checkpoint_id", "task_id", "idx"],)
    assert newest == (layout.NEWEST_KNOWN_MIGRATION,)


def test_the_postgres_memory_store_has_the_columns_that_are_read(fresh_postgres_url: str) -> None:
    with PostgresStore.from_conn_string(fresh_postgres_url) as store:
        store.setup()
    with psycopg.connect(fresh_postgres_url) as connection:
        columns = dict(connection.execute(POSTGRES_COLUMNS, ("store",)).fetchall())
    assert set(columns) == {*layout.STORE_COLUMNS, "expires_at", "ttl_minutes"}


def test_the_serializer_marks_values_with_the_types_that_are_known() -> None:
    serializer = JsonPlusSerializer()
    samples = {"null": None, "bytes": b"x", "bytearray": bytearray(b"x"), "msgpack": {"a": [1, "b", {2}]}}
    assert {name: serializer.dumps_typed(value)[0] for name, value in samples.items()} == {n: n for n in samples}
