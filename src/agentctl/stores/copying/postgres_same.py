"""Whether rows of Postgres are the same: compared where they lie in one database, by digest between two."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import psycopg
from psycopg import sql
from psycopg.rows import TupleRow

from agentctl.stores.copying.postgres_rows import Selection, columns_of, of_thread, selected
from agentctl.stores.copying.verify import N_KEY_COLUMNS
from agentctl.stores.postgres.layout import Layout
from agentctl.stores.postgres.writer import TABLES

Digest = tuple[Any, ...]
"""Key columns of a row, then its other columns: short ones as they are, values as SHA-256."""

_HASHED = {
    "checkpoint": "sha256(convert_to({}::text, 'UTF8'))",
    "metadata": "sha256(convert_to({}::text, 'UTF8'))",
    "blob": "sha256({})",
}
_JSON = ("checkpoint", "metadata")


def first_different(
    connection: psycopg.Connection[TupleRow],
    source: tuple[Layout, Iterable[Selection]],
    copy: tuple[Layout, str],
) -> tuple[str, tuple[Any, ...]] | None:
    """Returns table and key of a row that is not the same in a copy, missing there, or one too many; None for none.

    The server compares the values themselves: no row leaves it, and none has to be hashed.

    Args:
        connection: One that reads both.
        source: Where the tables of the source are, and its rows.
        copy: Where the tables of the copy are, and its thread, which has no other rows.
    """
    layout, selections = source
    copy_layout, as_thread = copy
    by_table: dict[str, list[Selection]] = {table: [] for table in TABLES}
    for selection in selections:
        by_table[selection.table].append(selection)
    for found in of_thread(as_thread):
        expected = by_table[found.table]
        query = _difference(found.table).format(
            expected=_rows(expected, layout) if expected else _no_rows(found, copy_layout),
            found=_rows([found], copy_layout),
        )
        parameters = [value for one in (*expected, found) for value in one.parameters]
        key = connection.execute(query, parameters).fetchone()
        if key is not None:
            return found.table, key
    return None


def digests(
    connection: psycopg.Connection[TupleRow], layout: Layout, selections: Iterable[Selection]
) -> dict[str, list[Digest]]:
    """Returns the digests of the selected rows by table, sorted."""
    found: dict[str, list[Digest]] = {table: [] for table in TABLES}
    for selection in selections:
        query = selected(selection, layout, columns_of(selection, layout, _HASHED))
        found[selection.table] += connection.execute(query, selection.parameters).fetchall()
    return {table: sorted(rows, key=repr) for table, rows in found.items()}


def _rows(selections: Iterable[Selection], layout: Layout) -> sql.Composed:
    return sql.SQL(" UNION ALL ").join(selected(one, layout, columns_of(one, layout)) for one in selections)


def _no_rows(selection: Selection, layout: Layout) -> sql.Composed:
    """Returns a SELECT of the same columns that finds nothing, and takes no parameters."""
    table = sql.SQL(" FROM {} AS t LIMIT 0").format(layout.table(selection.table))
    return sql.SQL("SELECT ") + columns_of(selection, layout) + table


def _difference(table: str) -> sql.SQL:
    """Returns the query that finds the key of a row in which `{expected}` and `{found}` differ.

    In each table a column besides the key is never null, so a row that is missing on either side differs.
    """
    n_keys = N_KEY_COLUMNS[table]
    keys, others = TABLES[table][:n_keys], TABLES[table][n_keys:]
    values = [f"{name}::text" if name in _JSON else name for name in others]
    one, other = (", ".join(f"{side}.{value}" for value in values) for side in ("expected", "found"))
    names = ", ".join(keys)
    return sql.SQL(
        f"SELECT {names} FROM ({{expected}}) AS expected FULL JOIN ({{found}}) AS found USING ({names})"
        f" WHERE ({one}) IS DISTINCT FROM ({other}) LIMIT 1"
    )
