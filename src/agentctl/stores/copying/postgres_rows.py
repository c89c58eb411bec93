"""Picked rows of a Postgres database as SQL: inserted inside one server, streamed to another, or told by digest."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import psycopg
from psycopg import sql
from psycopg.rows import TupleRow

from agentctl.stores.base import RowPick
from agentctl.stores.copying.picking import by_rule, condition
from agentctl.stores.postgres.layout import TASK_PATH, Layout
from agentctl.stores.postgres.writer import TABLES, PostgresTransaction

Digest = tuple[Any, ...]
"""Key columns of a row, then its other columns: short ones as they are, values as SHA-256."""

_PICKED = "unnest(%s::text[], %s::text[]) AS picked(ns, id)"
_BLOB_KEYS = (
    "(SELECT DISTINCT c.checkpoint_ns AS ns, v.key AS channel, v.value AS version FROM {picked}"
    " JOIN {checkpoints} c ON c.thread_id = %s AND c.checkpoint_ns = picked.ns AND c.checkpoint_id = picked.id"
    " CROSS JOIN LATERAL jsonb_each_text(c.checkpoint -> 'channel_versions') AS v) AS wanted"
)
_HASHED = {
    "checkpoint": "sha256(convert_to({}::text, 'UTF8'))",
    "metadata": "sha256(convert_to({}::text, 'UTF8'))",
    "blob": "sha256({})",
}


@dataclass(frozen=True, slots=True)
class _Selection:
    """Rows of one table: what follows FROM, the alias of the table, and the parameters of both."""

    table: str
    source: str
    alias: str
    parameters: tuple[object, ...]


def may_read(connection: psycopg.Connection[TupleRow], layout: Layout) -> bool:
    """Tells whether the role of a connection may read the tables of another store in the same database."""
    names = [layout.table(table).as_string(connection) for table in TABLES]
    found = connection.execute(
        "SELECT bool_and(pg_catalog.has_schema_privilege(%s, 'USAGE')"
        " AND pg_catalog.has_table_privilege(name, 'SELECT')) FROM unnest(%s::text[]) AS tables(name)",
        (layout.schema, names),
    ).fetchone()
    return found is not None and bool(found[0])


def insert_selected(
    transaction: PostgresTransaction, layout: Layout, thread: str, as_thread: str, picks: Sequence[RowPick]
) -> None:
    """Copies the picked rows inside one server, a table and a rule a statement."""
    for selection in _selections(thread, picks):
        columns = TABLES[selection.table]
        query = sql.SQL("INSERT INTO {} (thread_id, {}) SELECT %s, {} FROM {}").format(
            transaction.layout.table(selection.table),
            _names(columns),
            _columns(columns, selection.alias, layout),
            _from(selection, layout),
        )
        transaction.connection.execute(query, (as_thread, *selection.parameters))


def stream_selected(
    source: psycopg.Connection[TupleRow],
    layout: Layout,
    transaction: PostgresTransaction,
    thread: str,
    as_thread: str,
    picks: Sequence[RowPick],
) -> None:
    """Copies the picked rows to another server by binary COPY; the bytes pass through without being looked at."""
    for selection in _selections(thread, picks):
        columns = TABLES[selection.table]
        outward = sql.SQL("COPY (SELECT %s::text, {} FROM {}) TO STDOUT (FORMAT BINARY)").format(
            _columns(columns, selection.alias, layout), _from(selection, layout)
        )
        inward = sql.SQL("COPY {} (thread_id, {}) FROM STDIN (FORMAT BINARY)").format(
            transaction.layout.table(selection.table), _names(columns)
        )
        with (
            source.cursor() as reading,
            transaction.connection.cursor() as writing,
            reading.copy(outward, (as_thread, *selection.parameters)) as rows,
            writing.copy(inward) as target,
        ):
            for block in rows:
                target.write(block)


def digests_of_picks(
    connection: psycopg.Connection[TupleRow], layout: Layout, thread: str, picks: Sequence[RowPick]
) -> dict[str, list[Digest]]:
    """Returns the digests of the picked rows by table, sorted."""
    found: dict[str, list[Digest]] = {table: [] for table in TABLES}
    for selection in _selections(thread, picks):
        columns = TABLES[selection.table]
        query = sql.SQL("SELECT {} FROM {}").format(
            _columns(columns, selection.alias, layout, hashed=True), _from(selection, layout)
        )
        found[selection.table] += connection.execute(query, selection.parameters).fetchall()
    return {table: sorted(rows, key=repr) for table, rows in found.items()}


def digests_of_thread(connection: psycopg.Connection[TupleRow], layout: Layout, thread: str) -> dict[str, list[Digest]]:
    """Returns the digests of all rows of a thread by table, sorted."""
    found = {}
    for table, columns in TABLES.items():
        query = sql.SQL("SELECT {} FROM {} AS t WHERE t.thread_id = %s").format(
            _columns(columns, "t", layout, hashed=True), layout.table(table)
        )
        found[table] = sorted(connection.execute(query, (thread,)).fetchall(), key=repr)
    return found


def _selections(thread: str, picks: Sequence[RowPick]) -> Iterator[_Selection]:
    namespaces, ids = [pick.ns for pick in picks], [pick.id for pick in picks]
    by_id = "c.thread_id = %s AND c.checkpoint_ns = picked.ns AND c.checkpoint_id = picked.id"
    yield _Selection("checkpoints", f"{{picked}} JOIN {{checkpoints}} c ON {by_id}", "c", (namespaces, ids, thread))
    yield _Selection(
        "checkpoint_blobs",
        f"{_BLOB_KEYS} JOIN {{blobs}} b ON b.thread_id = %s AND b.checkpoint_ns = wanted.ns"
        " AND b.channel = wanted.channel AND b.version = wanted.version",
        "b",
        (namespaces, ids, thread, thread),
    )
    for rule, group in by_rule(picks).items():
        where, parameters = condition(rule, "%s")
        yield _Selection(
            "checkpoint_writes",
            "{picked} JOIN {writes} w ON w.thread_id = %s AND w.checkpoint_ns = picked.ns"
            f" AND w.checkpoint_id = picked.id{where}",
            "w",
            ([pick.ns for pick in group], [pick.id for pick in group], thread, *parameters),
        )


def _from(selection: _Selection, layout: Layout) -> sql.Composed:
    return sql.SQL(selection.source).format(
        picked=sql.SQL(_PICKED),
        checkpoints=layout.table("checkpoints"),
        blobs=layout.table("checkpoint_blobs"),
        writes=layout.table("checkpoint_writes"),
    )


def _names(columns: Sequence[str]) -> sql.Composed:
    return sql.SQL(", ").join(map(sql.Identifier, columns))


def _columns(columns: Sequence[str], alias: str, layout: Layout, *, hashed: bool = False) -> sql.Composed:
    return sql.SQL(", ").join(_column(column, alias, layout, hashed=hashed) for column in columns)


def _column(column: str, alias: str, layout: Layout, *, hashed: bool) -> sql.Composable:
    if column == TASK_PATH and not layout.has_task_path:
        return sql.SQL("''")
    name = sql.Identifier(alias, column)
    return sql.SQL(_HASHED[column]).format(name) if hashed and column in _HASHED else name
