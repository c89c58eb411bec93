"""The stock tables, as a new database gets them.

An existing database is never migrated here: on large tables that takes locks that only its owner can judge.

Source: `MIGRATIONS` and `PostgresSaver.setup` (langgraph-checkpoint-postgres 3.2.0, checkpoint/postgres/base.py).
"""

from __future__ import annotations

import psycopg
from psycopg import sql
from psycopg.rows import TupleRow

from agentctl.errors import StoreError
from agentctl.stores.postgres.layout import NEWEST_KNOWN_MIGRATION

_CREATE = (
    """CREATE TABLE IF NOT EXISTS {}.checkpoint_migrations (
    v INTEGER PRIMARY KEY
)""",
    """CREATE TABLE IF NOT EXISTS {}.checkpoints (
    thread_id TEXT NOT NULL,
    checkpoint_ns TEXT NOT NULL DEFAULT '',
    checkpoint_id TEXT NOT NULL,
    parent_checkpoint_id TEXT,
    type TEXT,
    checkpoint JSONB NOT NULL,
    metadata JSONB NOT NULL DEFAULT '{{}}',
    PRIMARY KEY (thread_id, checkpoint_ns, checkpoint_id)
)""",
    """CREATE TABLE IF NOT EXISTS {}.checkpoint_blobs (
    thread_id TEXT NOT NULL,
    checkpoint_ns TEXT NOT NULL DEFAULT '',
    channel TEXT NOT NULL,
    version TEXT NOT NULL,
    type TEXT NOT NULL,
    blob BYTEA,
    PRIMARY KEY (thread_id, checkpoint_ns, channel, version)
)""",
    """CREATE TABLE IF NOT EXISTS {}.checkpoint_writes (
    thread_id TEXT NOT NULL,
    checkpoint_ns TEXT NOT NULL DEFAULT '',
    checkpoint_id TEXT NOT NULL,
    task_id TEXT NOT NULL,
    idx INTEGER NOT NULL,
    channel TEXT NOT NULL,
    type TEXT,
    blob BYTEA NOT NULL,
    task_path TEXT NOT NULL DEFAULT '',
    PRIMARY KEY (thread_id, checkpoint_ns, checkpoint_id, task_id, idx)
)""",
    "CREATE INDEX IF NOT EXISTS checkpoints_thread_id_idx ON {}.checkpoints(thread_id)",
    "CREATE INDEX IF NOT EXISTS checkpoint_blobs_thread_id_idx ON {}.checkpoint_blobs(thread_id)",
    "CREATE INDEX IF NOT EXISTS checkpoint_writes_thread_id_idx ON {}.checkpoint_writes(thread_id)",
)
_SETUP_LOCK = 0x6167656E7463746C
"""Key of the advisory lock that makes two set-ups of one database wait for each other ("agentctl" in ASCII)."""


def create_missing_tables(connection: psycopg.Connection[TupleRow], schema: str | None) -> None:
    """Creates the stock tables in one transaction where there is no `checkpoints` table.

    Args:
        connection: In autocommit mode, outside a transaction.
        schema: Where to create them; None takes the first schema of the search path.

    Raises:
        StoreError: The schema does not exist, or the tables that are there are older or newer than this version.
    """
    with connection.transaction(), connection.cursor() as cursor:
        if are_tables_missing(cursor, schema):
            create_tables(cursor, schema)


def are_tables_missing(cursor: psycopg.Cursor[TupleRow], schema: str | None) -> bool:
    """Says whether there is no `checkpoints` table.

    Raises:
        StoreError: As `create_missing_tables`.
    """
    _existing_schema(cursor, schema)
    if not has_table(cursor, schema, "checkpoints"):
        return True
    _require_current(cursor, schema)
    return False


def create_tables(cursor: psycopg.Cursor[TupleRow], schema: str | None) -> None:
    """Creates the stock tables as part of a transaction, unless another one has made them since they were missed.

    Each statement looks for its table by itself: this transaction, which missed them, may go on missing them.
    """
    cursor.execute("SELECT pg_advisory_xact_lock(%s)", (_SETUP_LOCK,))
    name = sql.Identifier(_existing_schema(cursor, schema))
    for statement in _CREATE:
        cursor.execute(sql.SQL(statement).format(name))
    cursor.execute(
        sql.SQL("INSERT INTO {}.checkpoint_migrations (v) SELECT generate_series(0, %s) ON CONFLICT DO NOTHING").format(
            name
        ),
        (NEWEST_KNOWN_MIGRATION,),
    )


def _existing_schema(cursor: psycopg.Cursor[TupleRow], schema: str | None) -> str:
    if schema is None:
        found = cursor.execute("SELECT current_schema()").fetchone()
    else:
        found = cursor.execute("SELECT nspname FROM pg_catalog.pg_namespace WHERE nspname = %s", (schema,)).fetchone()
    if found is None or found[0] is None:
        raise StoreError(
            f"there is no schema {schema}" if schema else "no schema of the search path exists",
            hint=f"CREATE SCHEMA {schema or 'public'}, or give another one: --schema NAME",
        )
    return str(found[0])


def has_table(cursor: psycopg.Cursor[TupleRow], schema: str | None, table: str) -> bool:
    """Tells whether a table is in a schema, or in the search path where that is None."""
    found = cursor.execute("SELECT pg_catalog.to_regclass(%s) IS NOT NULL", (_quoted(schema, table),)).fetchone()
    return found is not None and bool(found[0])


def _require_current(cursor: psycopg.Cursor[TupleRow], schema: str | None) -> None:
    newest = -1
    if has_table(cursor, schema, "checkpoint_migrations"):
        query = sql.SQL("SELECT coalesce(max(v), -1) FROM {}").format(_identifier(schema, "checkpoint_migrations"))
        found = cursor.execute(query).fetchone()
        newest = int(found[0]) if found is not None else -1
    if newest < NEWEST_KNOWN_MIGRATION:
        raise StoreError(
            f"the tables are at migration {newest}, writing needs {NEWEST_KNOWN_MIGRATION}",
            hint="run PostgresSaver.setup() of langgraph-checkpoint-postgres 3.1 or newer on that database",
        )
    if newest > NEWEST_KNOWN_MIGRATION:
        raise StoreError(
            f"the tables are at migration {newest}, this version knows up to {NEWEST_KNOWN_MIGRATION} and only reads",
            hint="copy into another store: --to FILE.sqlite",
        )


def _identifier(schema: str | None, table: str) -> sql.Identifier:
    return sql.Identifier(table) if schema is None else sql.Identifier(schema, table)


def _quoted(schema: str | None, table: str) -> str:
    """Returns a name as `to_regclass` parses it."""
    parts = [table] if schema is None else [schema, table]
    return ".".join('"' + part.replace('"', '""') + '"' for part in parts)
