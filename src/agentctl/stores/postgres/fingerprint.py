"""A hash over every table of a database: the proof that nobody wrote to it."""

from __future__ import annotations

from psycopg import sql

from agentctl.stores.postgres.opening import PostgresDatabase, ReadCursor

_TABLES = """
SELECT n.nspname, c.relname FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
WHERE c.relkind = 'r' AND n.nspname <> 'information_schema' AND n.nspname NOT LIKE 'pg\\_%' ORDER BY 1, 2
"""
_HASH = """
SELECT count(*) || ' rows ' || md5(coalesce(string_agg(md5(t::text), '' ORDER BY md5(t::text)), '')) FROM {} AS t
"""


def hash_tables(url: str) -> dict[str, str]:
    """Returns number of rows and hash of each table that is not the system's, by `schema.table`.

    Args:
        url: `postgresql://...`, as somebody who may read every table.

    Raises:
        StoreError: the database cannot be read.
    """
    database = PostgresDatabase(url)
    try:
        return database.read(_hashes)
    finally:
        database.close()


def _hashes(cursor: ReadCursor) -> dict[str, str]:
    tables = cursor.execute(_TABLES).fetchall()
    found = {}
    for schema, table in tables:
        (value,) = cursor.execute(sql.SQL(_HASH).format(sql.Identifier(schema, table))).fetchall()[0]
        found[f"{schema}.{table}"] = str(value)
    return found
