"""Where LangGraph's tables are in a Postgres database, and whether they are of a layout that is read here.

Source: langgraph-checkpoint-postgres 3.2.0, checkpoint/postgres/base.py (`MIGRATIONS`), shallow.py (tables without
`checkpoint_id`) and store/postgres/base.py.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from psycopg import sql

from agentctl.errors import StoreError
from agentctl.stores.postgres.opening import ReadCursor

NEWEST_KNOWN_MIGRATION = 9

TABLES = {
    "checkpoints": ("thread_id", "checkpoint_ns", "checkpoint_id", "parent_checkpoint_id", "checkpoint", "metadata"),
    "checkpoint_blobs": ("thread_id", "checkpoint_ns", "channel", "version", "type", "blob"),
    "checkpoint_writes": ("thread_id", "checkpoint_ns", "checkpoint_id", "task_id", "idx", "channel", "type", "blob"),
}
TASK_PATH = "task_path"
"""A column of `checkpoint_writes` that databases before migration 9 lack."""
STORE_COLUMNS = ("prefix", "key", "value", "created_at", "updated_at")

_MIGRATIONS = "checkpoint_migrations"
_COLUMNS = """
SELECT wanted.name, a.attname
FROM unnest(%s::text[], %s::text[]) AS wanted(name, quoted)
JOIN pg_catalog.pg_attribute a ON a.attrelid = pg_catalog.to_regclass(wanted.quoted)
WHERE a.attnum > 0 AND NOT a.attisdropped
"""
_SCHEMA_OF = """
SELECT n.nspname FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
WHERE c.oid = pg_catalog.to_regclass(%s)
"""
_SCHEMAS_WITH = """
SELECT n.nspname FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
WHERE c.relname = 'checkpoints' AND c.relkind = ANY(ARRAY['r', 'p', 'v', 'm', 'f']::"char"[]) ORDER BY n.nspname
"""
_MAY_READ = "SELECT pg_catalog.has_table_privilege(pg_catalog.to_regclass(%s), 'SELECT')"


@dataclass(frozen=True, slots=True)
class Layout:
    """The tables of one database.

    Attributes:
        schema: Schema that holds them.
        has_task_path: Whether writes have a task path.
        has_store: Whether a memory store lies beside the checkpoints.
        warnings: What a reader should know, e.g. tables newer than this version.
    """

    schema: str
    has_task_path: bool
    has_store: bool
    warnings: tuple[str, ...] = ()

    def table(self, name: str) -> sql.Identifier:
        """Returns a table's name, quoted with its schema."""
        return sql.Identifier(self.schema, name)


def find_layout(cursor: ReadCursor, schema: str | None) -> Layout:
    """Returns where the tables are and what they hold.

    Args:
        cursor: Inside a transaction.
        schema: The schema to look into; None takes the search path.

    Raises:
        StoreError: There are no tables, they are elsewhere (the hint names where), or of a layout without history.
    """
    found = _one(cursor, _SCHEMA_OF, _regclass(schema, "checkpoints"))
    if found is None:
        raise _no_tables(cursor, schema)
    schema = str(found)
    columns = _columns(cursor, schema, (*TABLES, "store", _MIGRATIONS))
    for table, needed in TABLES.items():
        _require_columns(table, needed, columns[table], schema)
    return Layout(
        schema=schema,
        has_task_path=TASK_PATH in columns["checkpoint_writes"],
        has_store=columns["store"].issuperset(STORE_COLUMNS),
        warnings=_migration_warnings(cursor, schema) if columns[_MIGRATIONS] else (),
    )


def _require_columns(table: str, needed: tuple[str, ...], columns: Collection[str], schema: str) -> None:
    missing = [name for name in needed if name not in columns]
    if not missing:
        return
    if not columns:
        raise StoreError(
            f"schema {schema} has checkpoints but no table {table}", hint="set it up with PostgresSaver.setup()"
        )
    if table == "checkpoints" and "checkpoint_id" in missing:
        raise StoreError(
            f"the tables in schema {schema} are those of a shallow saver: one state a thread and no history",
            hint="history needs a PostgresSaver; a shallow table keeps only what get_state shows",
        )
    raise StoreError(
        f"{schema}.{table} lacks {', '.join(missing)}, so it is not a layout this version reads",
        hint="compare it with the tables of a current langgraph-checkpoint-postgres",
    )


def _no_tables(cursor: ReadCursor, schema: str | None) -> StoreError:
    elsewhere = [str(name) for (name,) in cursor.execute(_SCHEMAS_WITH).fetchall()]
    where = f"schema {schema}" if schema is not None else "the search path"
    if elsewhere:
        hint = f"a table checkpoints is in schema {', '.join(elsewhere)}: --schema {elsewhere[0]}"
    else:
        hint = "no schema of this database has one; check the database name in the URL"
    return StoreError(f"no LangGraph checkpoints in {where}", hint=hint)


def _migration_warnings(cursor: ReadCursor, schema: str) -> tuple[str, ...]:
    if not _one(cursor, _MAY_READ, _regclass(schema, _MIGRATIONS)):
        return ()
    query = sql.SQL("SELECT max(v) FROM {}").format(sql.Identifier(schema, _MIGRATIONS))
    newest = cursor.execute(query).fetchone()
    if newest is None or newest[0] is None or newest[0] <= NEWEST_KNOWN_MIGRATION:
        return ()
    return (
        f"the tables are at migration {newest[0]}, this version knows up to {NEWEST_KNOWN_MIGRATION}:"
        " reading only, and a newer column is not shown",
    )


def _columns(cursor: ReadCursor, schema: str, tables: Sequence[str]) -> dict[str, set[str]]:
    """Returns the columns of tables by table, none for one that is not there."""
    found: dict[str, set[str]] = {table: set() for table in tables}
    for table, column in cursor.execute(_COLUMNS, (list(tables), [_regclass(schema, one) for one in tables])):
        found[table].add(column)
    return found


def _one(cursor: ReadCursor, query: str, name: str) -> object:
    found = cursor.execute(query, (name,)).fetchone()
    return None if found is None else found[0]


def _regclass(schema: str | None, table: str) -> str:
    """Returns a name as `to_regclass` parses it."""
    parts = [table] if schema is None else [schema, table]
    return ".".join('"' + part.replace('"', '""') + '"' for part in parts)
