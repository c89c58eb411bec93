"""The stock async saver on a store: what graphs run on.

One saver serves all runs of a command: a saver per run is slower (20 runs: 2.3x against 1.5x the time of one).
"""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from agentctl.errors import ConfigError, StoreError
from agentctl.records.rows import Stored
from agentctl.stores.urls import parse_store_url

if TYPE_CHECKING:
    from langgraph.checkpoint.base import BaseCheckpointSaver
    from langgraph.checkpoint.serde.base import SerializerProtocol
    from langgraph.store.base import BaseStore

LOCK_WAIT_S = 30.0
"""How long a run waits for another writer of a SQLite file; the stock 5 s fail under a writer that holds on."""

KEY = "LANGGRAPH_AES_KEY"

MEMORY_TABLES = ("store", "store_migrations")
"""Source: langgraph-checkpoint-sqlite 3.1.2 and -postgres 3.2.0, store/*/base.py."""

_SQLITE_TABLES = "SELECT name FROM sqlite_master WHERE type = 'table' AND name IN (?, ?)"


@asynccontextmanager
async def open_saver(
    url: str,
    *,
    schema: str | None = None,
    env: Mapping[str, str] | None = None,
    setup: bool = True,
    is_scratch: bool = False,
) -> AsyncIterator[BaseCheckpointSaver[str]]:
    """Opens the stock async saver on a SQLite or Postgres store.

    Args:
        url: A path, `sqlite:///...` or a Postgres URL, as `--store` takes it.
        schema: Postgres schema of the tables; None takes the search path.
        env: Environment; with LANGGRAPH_AES_KEY in it values are written encrypted, as the application does.
        setup: Whether tables that are missing are made, and older ones brought up to date.
        is_scratch: Whether a SQLite file need not outlive a crash of the system: commits then wait for no disk.

    Raises:
        StoreError: the store is of another kind.
    """
    serde = serializer(env)
    target = parse_store_url(url)
    match target.kind:
        case "postgres":
            from langgraph.checkpoint.postgres.aio import AsyncPostgresSaver

            async with AsyncPostgresSaver.from_conn_string(target.location, serde=serde) as saver:
                if schema is not None:
                    await _use_schema(saver.conn, schema)
                if setup:
                    await saver.setup()
                yield saver
        case "sqlite":
            import aiosqlite
            from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver

            async with aiosqlite.connect(target.location, timeout=LOCK_WAIT_S) as connection:
                if is_scratch:
                    await connection.execute("PRAGMA synchronous = OFF")
                sqlite_saver = AsyncSqliteSaver(connection, serde=serde)
                sqlite_saver.get_next_version = numbers_kept(  # type: ignore[method-assign, assignment]
                    sqlite_saver.get_next_version
                )
                sqlite_saver.is_setup = not setup
                await sqlite_saver.setup()
                yield sqlite_saver
        case _:
            raise StoreError(f"graphs cannot run on {url}", hint="use a SQLite file or a Postgres database")


def numbers_kept(next_version: Callable[[Any, None], str]) -> Callable[[Any, None], Any]:
    """Returns a saver's `get_next_version` that counts on where versions are numbers.

    LangGraph.js and savers without a rule of their own write numbers. The stock savers go on with text, which LangGraph
    cannot compare with the numbers that nodes have seen.

    Source: `BaseCheckpointSaver.get_next_version` (langgraph-checkpoint 4.3.2); `apply_writes` (langgraph 1.2.24,
    pregel/_algo.py), which gives the largest version that there is.
    """

    def following(current: Any, channel: None) -> Any:
        return current + 1 if isinstance(current, int | float) else next_version(current, channel)

    return following


@asynccontextmanager
async def open_memory(url: str, *, schema: str | None = None) -> AsyncIterator[BaseStore | None]:
    """Opens the stock memory store whose tables lie beside the checkpoints; gives None where none do. None is made.

    Args:
        url: A path, `sqlite:///...` or a Postgres URL, as `--store` takes it.
        schema: Postgres schema of the tables; None takes the search path.

    Raises:
        StoreError: the store is of another kind.
    """
    target = parse_store_url(url)
    match target.kind:
        case "postgres":
            from langgraph.store.postgres.aio import AsyncPostgresStore

            async with AsyncPostgresStore.from_conn_string(target.location) as store:
                if schema is not None:
                    await _use_schema(store.conn, schema)
                yield store if await _has_tables(store.conn) else None
        case "sqlite":
            import aiosqlite
            from langgraph.store.sqlite.aio import AsyncSqliteStore

            async with aiosqlite.connect(target.location, timeout=LOCK_WAIT_S, isolation_level=None) as connection:
                if len(list(await connection.execute_fetchall(_SQLITE_TABLES, MEMORY_TABLES))) < len(MEMORY_TABLES):
                    yield None
                    return
                async with AsyncSqliteStore(connection) as sqlite_store:
                    sqlite_store.is_setup = True
                    yield sqlite_store
        case _:
            raise StoreError(f"graphs cannot run on {url}", hint="use a SQLite file or a Postgres database")


async def _has_tables(connection: object) -> bool:
    """Tells whether the search path leads to the tables of a memory store."""
    from psycopg import AsyncConnection

    assert isinstance(connection, AsyncConnection)
    found = await connection.execute(
        "SELECT 1 FROM unnest(%s::text[]) AS name WHERE to_regclass(name) IS NOT NULL", (list(MEMORY_TABLES),)
    )
    return len(await found.fetchall()) == len(MEMORY_TABLES)


async def _use_schema(connection: object, schema: str) -> None:
    """Makes what is stock, whose statements name no schema, find its tables in one."""
    from psycopg import AsyncConnection, sql

    assert isinstance(connection, AsyncConnection)
    await connection.execute(sql.SQL("SET search_path TO {}").format(sql.Identifier(schema)))


def serializer(env: Mapping[str, str] | None = None) -> SerializerProtocol | None:
    """Returns the encrypting serializer where the environment has a key, else None (the saver's own)."""
    env = os.environ if env is None else env
    if not env.get(KEY):
        return None
    from langgraph.checkpoint.serde.encrypted import EncryptedSerializer

    try:
        return EncryptedSerializer.from_pycryptodome_aes(key=env[KEY].encode())
    except (ImportError, ValueError) as error:
        raise ConfigError(
            f"{KEY} cannot be used: {error}", hint="it needs pycryptodome and 16, 24 or 32 bytes"
        ) from error


def seal(stored: Stored, *, env: Mapping[str, str] | None = None) -> Stored:
    """Returns a stored value encrypted like the values around it.

    Raises:
        ConfigError: there is no key.
    """
    serde = serializer(env)
    if serde is None:
        raise ConfigError(f"the thread is encrypted and {KEY} is not set", hint=f"{KEY}=... agentctl ...")
    name, data = serde.cipher.encrypt(stored.data)  # type: ignore[attr-defined]
    return Stored(f"{stored.type}+{name}", data)
