"""A role that may SELECT and nothing else, for as long as it is needed."""

from __future__ import annotations

import secrets
from collections.abc import Generator
from contextlib import contextmanager
from urllib.parse import parse_qsl, quote, urlencode, urlsplit, urlunsplit

import psycopg
from psycopg import errors, sql

_SCHEMAS = """
SELECT DISTINCT table_schema FROM information_schema.tables
WHERE table_type = 'BASE TABLE' AND table_schema NOT IN ('information_schema', 'pg_catalog')
"""


@contextmanager
def reading_role(url: str) -> Generator[str | None]:
    """Makes a role, gives the URL of the database as that role, and drops it at the end.

    Gives None where the user of `url` may not make roles, or the server does not let the new one in.

    Args:
        url: `postgresql://...`.
    """
    name, password = f"agentctl_reader_{secrets.token_hex(4)}", secrets.token_hex(16)
    with psycopg.connect(url, autocommit=True) as owner:
        try:
            _create(owner, name, password)
        except errors.InsufficientPrivilege:
            yield None
            return
        try:
            reading = as_user(url, name, password)
            yield reading if _is_let_in(reading) else None
        finally:
            role = sql.Identifier(name)
            owner.execute(sql.SQL("DROP OWNED BY {}").format(role))
            owner.execute(sql.SQL("DROP ROLE {}").format(role))


def as_user(url: str, user: str, password: str) -> str:
    """Returns the URL with another user and password."""
    parts = urlsplit(url)
    host = parts.netloc.rpartition("@")[2]
    query = urlencode(
        [
            (key, value)
            for key, value in parse_qsl(parts.query, keep_blank_values=True)
            if key not in ("user", "password")
        ]
    )
    return urlunsplit(
        (parts.scheme, f"{quote(user, safe='')}:{quote(password, safe='')}@{host}", parts.path, query, "")
    )


def _create(owner: psycopg.Connection, name: str, password: str) -> None:
    role = sql.Identifier(name)
    with owner.transaction():
        owner.execute(sql.SQL("CREATE ROLE {} LOGIN PASSWORD {}").format(role, sql.Literal(password)))
        for (schema,) in owner.execute(_SCHEMAS).fetchall():
            place = sql.Identifier(schema)
            owner.execute(sql.SQL("GRANT USAGE ON SCHEMA {} TO {}").format(place, role))
            owner.execute(sql.SQL("GRANT SELECT ON ALL TABLES IN SCHEMA {} TO {}").format(place, role))


def _is_let_in(url: str) -> bool:
    try:
        psycopg.connect(url, connect_timeout=10).close()
    except psycopg.OperationalError:
        return False
    return True
