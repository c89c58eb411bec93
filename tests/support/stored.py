"""What the tables of a database hold, whatever they are called."""

from __future__ import annotations

import sqlite3
from contextlib import closing

import psycopg


def is_postgres(url: str) -> bool:
    """Tells a Postgres address from the path of a SQLite file."""
    return url.startswith("postgres")


def rows_naming(url: str, text: str) -> dict[str, int]:
    """How many rows of each table of a database hold a text, in any column."""
    with closing(psycopg.connect(url) if is_postgres(url) else sqlite3.connect(url)) as connection:
        names = (
            "SELECT tablename FROM pg_tables WHERE schemaname = 'public'"
            if is_postgres(url)
            else "SELECT name FROM sqlite_master WHERE type = 'table'"
        )
        tables = [row[0] for row in connection.execute(names).fetchall()]
        return {
            table: sum(
                any(text in _text(value) for value in row)
                for row in connection.execute(f'SELECT * FROM "{table}"').fetchall()
            )
            for table in tables
        }


def _text(value: object) -> str:
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)
