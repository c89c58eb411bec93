"""Rows of a Postgres database as SQL: inserted inside one server, or streamed to another."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from types import MappingProxyType

import psycopg
from psycopg import sql
from psycopg.rows import TupleRow

from agentctl.stores.base import RowPick
from agentctl.stores.copying.picking import by_rule, condition
from agentctl.stores.large import LARGE_BYTES, Chunks, changed
from agentctl.stores.postgres.layout import TASK_PATH, Layout
from agentctl.stores.postgres.writer import TABLES, PostgresTransaction

_PICKED = "unnest(%b::text[], %b::text[]) AS picked(ns, id)"
"""The picks, sent in binary: as text each id of thousands is quoted first, which takes longer than to find its rows."""

_BLOB_KEYS = (
    "(SELECT DISTINCT c.checkpoint_ns AS ns, v.key AS channel, v.value AS version FROM {picked}"
    " JOIN {checkpoints} c ON c.thread_id = %s AND c.checkpoint_ns = picked.ns AND c.checkpoint_id = picked.id"
    " CROSS JOIN LATERAL jsonb_each_text(c.checkpoint -> 'channel_versions') AS v) AS wanted"
)
_CHUNK_BYTES = 4 * 1024 * 1024
"""A part of a value is held some four times on its way."""
_N_BYTES = {
    "checkpoints": "CASE WHEN pg_column_size({a}.checkpoint) > 8192 THEN octet_length({a}.checkpoint::text) ELSE 0 END",
    "checkpoint_blobs": "coalesce(octet_length({a}.blob), 0)",
    "checkpoint_writes": "octet_length({a}.blob)",
}
"""Length of the value of a row. A document is kept compressed, to a hundredth of its text at most."""
_LARGE = {
    "checkpoints": ("checkpoint", "convert_to(checkpoint::text, 'UTF8')"),
    "checkpoint_blobs": ("blob", "blob"),
    "checkpoint_writes": ("blob", "blob"),
}
"""The column that may be large, and its bytes."""
_KEYS = {
    "checkpoints": ("checkpoint_ns", "checkpoint_id"),
    "checkpoint_blobs": ("checkpoint_ns", "channel", "version"),
    "checkpoint_writes": ("checkpoint_ns", "checkpoint_id", "task_id", "idx"),
}
"""What tells a row of a thread from the others."""
_TEXT: Mapping[str, str] = MappingProxyType({"metadata": "{}::text"})
_AS_THEY_ARE: Mapping[str, str] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Selection:
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
    for selection in of_picks(thread, picks):
        query = sql.SQL("INSERT INTO {} (thread_id, {}) {}").format(
            transaction.layout.table(selection.table),
            _names(TABLES[selection.table]),
            _named(selection, layout),
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
    """Copies the picked rows to another server by binary COPY; the bytes pass through without being looked at.

    A row of COPY is held whole, by its server and by libpq, so rows with a large value go in parts.
    """
    for selection in of_picks(thread, picks):
        size = sql.SQL(_N_BYTES[selection.table].format(a=selection.alias))
        named = _named(selection, layout)
        outward = sql.SQL("COPY ({} WHERE {} <= {}) TO STDOUT (FORMAT BINARY)").format(named, size, LARGE_BYTES)
        inward = sql.SQL("COPY {} (thread_id, {}) FROM STDIN (FORMAT BINARY)").format(
            transaction.layout.table(selection.table), _names(TABLES[selection.table])
        )
        with (
            source.cursor() as reading,
            transaction.connection.cursor() as writing,
            reading.copy(outward, (as_thread, *selection.parameters)) as rows,
            writing.copy(inward) as target,
        ):
            for block in rows:
                target.write(block)
        transaction.insert_rows(selection.table, as_thread, _large_rows(source, layout, selection, thread))


def _large_rows(
    source: psycopg.Connection[TupleRow], layout: Layout, selection: Selection, thread: str
) -> Iterator[tuple[object, ...]]:
    """Yields the selected rows that hold a large value, which is read in chunks."""
    table, columns = selection.table, TABLES[selection.table]
    value, form = _LARGE[table]
    size = sql.SQL(_N_BYTES[table].format(a=selection.alias))
    lean = columns_of(selection, layout, {**_TEXT, value: "CASE WHEN FALSE THEN {} END"})
    query = sql.SQL("{} WHERE {} > {}").format(
        selected(selection, layout, sql.SQL("{}, {}").format(lean, size)), size, LARGE_BYTES
    )
    keys = [name for name in columns if name in _KEYS[table]]
    where = sql.SQL(" AND ").join(sql.SQL("{} = %s").format(sql.Identifier(name)) for name in ("thread_id", *keys))
    part = sql.SQL(
        "SELECT substring(whole FROM %s FOR %s) FROM (SELECT {} AS whole FROM {} WHERE {} OFFSET 0) AS one"
    ).format(sql.SQL(form), layout.table(table), where)
    for *row, n_bytes in source.execute(query, selection.parameters).fetchall():
        key = (thread, *(row[columns.index(name)] for name in keys))
        row[columns.index(value)] = Chunks(n_bytes, partial(_read_part, source, part, key), chunk_bytes=_CHUNK_BYTES)
        yield tuple(row)


def _read_part(
    source: psycopg.Connection[TupleRow], query: sql.Composed, key: tuple[object, ...], start: int, n_bytes: int
) -> bytes:
    with source.cursor(binary=True) as cursor:
        found = cursor.execute(query, (start + 1, n_bytes, *key)).fetchone()
    if found is None:
        raise changed()
    return bytes(found[0])


def of_thread(thread: str) -> Iterator[Selection]:
    """Yields the selections of every row of a thread."""
    for table in TABLES:
        yield Selection(table, f"{{{table}}} AS t WHERE t.thread_id = %s", "t", (thread,))


def of_picks(thread: str, picks: Sequence[RowPick]) -> Iterator[Selection]:
    """Yields the selections of the picked rows: one of checkpoints, one of blobs, and one of writes for each rule."""
    namespaces, ids = [pick.ns for pick in picks], [pick.id for pick in picks]
    by_id = "c.thread_id = %s AND c.checkpoint_ns = picked.ns AND c.checkpoint_id = picked.id"
    yield Selection("checkpoints", f"{{picked}} JOIN {{checkpoints}} c ON {by_id}", "c", (namespaces, ids, thread))
    yield Selection(
        "checkpoint_blobs",
        f"{_BLOB_KEYS} JOIN {{checkpoint_blobs}} b ON b.thread_id = %s AND b.checkpoint_ns = wanted.ns"
        " AND b.channel = wanted.channel AND b.version = wanted.version",
        "b",
        (namespaces, ids, thread, thread),
    )
    for rule, group in by_rule(picks).items():
        where, parameters = condition(rule, "%s")
        yield Selection(
            "checkpoint_writes",
            "{picked} JOIN {checkpoint_writes} w ON w.thread_id = %s AND w.checkpoint_ns = picked.ns"
            f" AND w.checkpoint_id = picked.id{where}",
            "w",
            ([pick.ns for pick in group], [pick.id for pick in group], thread, *parameters),
        )


def selected(selection: Selection, layout: Layout, columns: sql.Composable) -> sql.Composed:
    """Returns the SELECT of an expression over the selected rows; its parameters are the selection's."""
    tables = {table: layout.table(table) for table in TABLES}
    return sql.SQL("SELECT {} FROM {}").format(
        columns, sql.SQL(selection.source).format(picked=sql.SQL(_PICKED), **tables)
    )


def columns_of(selection: Selection, layout: Layout, forms: Mapping[str, str] = _AS_THEY_ARE) -> sql.Composed:
    """Returns the columns of a selection's table, in the order of `TABLES`, each under its name.

    Args:
        selection: Which table, and its alias.
        layout: Where it is; writes of a database without task paths have empty ones.
        forms: SQL of a column's value, by its name.
    """

    def column(name: str) -> sql.Composed:
        value = sql.Identifier(selection.alias, name)
        if name == TASK_PATH and not layout.has_task_path:
            return sql.SQL("''::text AS {}").format(sql.Identifier(name))
        return sql.SQL(forms.get(name, "{}") + " AS {}").format(value, sql.Identifier(name))

    return sql.SQL(", ").join(map(column, TABLES[selection.table]))


def _named(selection: Selection, layout: Layout) -> sql.Composed:
    """Returns the SELECT of rows under another thread id, which is its first parameter."""
    return selected(selection, layout, sql.SQL("%s::text, {}").format(columns_of(selection, layout)))


def _names(columns: Sequence[str]) -> sql.Composed:
    return sql.SQL(", ").join(map(sql.Identifier, columns))
