"""Looking at a Postgres database: read-only transactions, a SELECT-only role, and errors that say what to do."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from urllib.parse import quote

import psycopg
import pytest
from langgraph.checkpoint.postgres import PostgresSaver
from langgraph.store.postgres import PostgresStore
from psycopg import sql

from agentctl.errors import StoreError
from agentctl.stores.open import open_reader
from agentctl.stores.postgres.opening import PostgresDatabase
from agentctl.stores.postgres.reader import PostgresReader
from tests.catalog import CATALOG, run_case
from tests.support.postgres import database_name, new_database

CASES = ("linear", "subgraph nested", "half done", "delta")
TABLES = ("checkpoints", "checkpoint_blobs", "checkpoint_writes", "checkpoint_migrations", "store", "store_migrations")
HASH_OF_A_TABLE = "SELECT count(*), md5(string_agg(md5(t::text), '' ORDER BY md5(t::text))) FROM {} t"


@pytest.fixture(scope="module")
def template(postgres_url: str) -> Iterator[str]:
    with new_database(postgres_url) as url:
        with PostgresSaver.from_conn_string(url) as saver:
            saver.setup()
            for name in CASES:
                run_case(CATALOG[name], saver)
        with PostgresStore.from_conn_string(url) as store:
            store.setup()
            store.put(("users", "u-1"), "language", {"value": "fr"})
        yield url


@pytest.fixture
def database(postgres_url: str, template: str) -> Iterator[str]:
    """A database with real threads and a memory store beside them."""
    with new_database(postgres_url, like=template) as url:
        yield url


@pytest.fixture
def empty_tables(fresh_postgres_url: str) -> str:
    with PostgresSaver.from_conn_string(fresh_postgres_url) as saver:
        saver.setup()
    return fresh_postgres_url


@pytest.fixture
def reader_role(database: str) -> Iterator[str]:
    """The URL of a role that may SELECT from the tables and do nothing else."""
    name = f"looker_{database_name(database)}"
    _run(
        database,
        f"CREATE ROLE {name} LOGIN",
        "REVOKE ALL ON SCHEMA public FROM PUBLIC",
        f"GRANT USAGE ON SCHEMA public TO {name}",
        f"GRANT SELECT ON ALL TABLES IN SCHEMA public TO {name}",
    )
    yield database.replace("//postgres@", f"//{name}@")
    _run(database, f"DROP OWNED BY {name}", f"DROP ROLE {name}")


def _run(url: str, *statements: str) -> None:
    with psycopg.connect(url, autocommit=True) as connection:
        for statement in statements:
            connection.execute(sql.SQL(statement))  # type: ignore[arg-type]


def _hashes(url: str) -> dict[str, object]:
    with psycopg.connect(url, autocommit=True) as connection:
        tables = {name: sql.SQL(HASH_OF_A_TABLE).format(sql.Identifier(name)) for name in TABLES}
        return {name: connection.execute(query).fetchone() for name, query in tables.items()}


def _look(url: str, schema: str | None = None) -> list[str]:
    """Calls every method of a fresh reader and returns the threads it saw, sorted."""
    with closing(PostgresReader(url, schema=schema)) as reader:
        threads = sorted(head.thread for head in reader.heads())
        for thread in threads:
            for ns in reader.namespaces(thread):
                ids = [row.id for row in reader.rows(thread, ns)]
                assert len(list(reader.stored(thread, ns, ids))) == len(ids)
                reader.writes(thread, ns)
        reader.find_run("no such run")
        reader.memory()
    return threads


def _threads() -> list[str]:
    return sorted(CATALOG[name].thread for name in CASES)


def test_a_select_only_role_sees_everything_and_changes_nothing(database: str, reader_role: str) -> None:
    before = _hashes(database)
    assert _look(reader_role) == _threads()
    assert _hashes(database) == before


def test_a_superuser_changes_nothing_either(database: str) -> None:
    before = _hashes(database)
    assert _look(database) == _threads()
    assert _hashes(database) == before


def test_a_read_cannot_write(empty_tables: str) -> None:
    with closing(PostgresDatabase(empty_tables)) as opened, pytest.raises(StoreError, match="read-only transaction"):
        opened.read(lambda cursor: cursor.execute("DELETE FROM checkpoints"))


def test_between_reads_no_transaction_and_nothing_prepared_stays(database: str) -> None:
    opened = PostgresDatabase(database)
    for _ in range(8):
        opened.read(lambda cursor: cursor.execute("SELECT %s::text", ("x",)).fetchall())
    pid, prepared = opened.read(
        lambda cursor: (
            cursor.execute("SELECT pg_backend_pid()").fetchall()[0][0],
            cursor.execute("SELECT name FROM pg_prepared_statements").fetchall(),
        )
    )
    assert prepared == []
    with psycopg.connect(database) as connection:
        states = connection.execute("SELECT state FROM pg_stat_activity WHERE pid = %s", (pid,)).fetchall()
    assert states == [("idle",)]
    opened.close()


def test_the_memory_store_beside_the_checkpoints_is_read_by_prefix(database: str) -> None:
    with closing(PostgresReader(database)) as reader:
        (item,) = reader.memory()
        assert (item.namespace, item.key, item.value) == (("users", "u-1"), "language", {"value": "fr"})
        assert item.created_at is not None
        assert list(reader.memory(("users",))) == [item]
        assert list(reader.memory(("users", "u-1"))) == [item]
        assert list(reader.memory(("user",))) == []


def test_a_memory_store_that_the_role_may_not_read_is_an_error_with_a_hint(database: str, reader_role: str) -> None:
    _run(database, f"REVOKE SELECT ON store FROM {reader_role.split('//')[1].partition('@')[0]}")
    with closing(PostgresReader(reader_role)) as reader, pytest.raises(StoreError, match="permission denied") as caught:
        reader.memory()
    assert "GRANT SELECT" in (caught.value.hint or "")


def test_tables_outside_the_search_path_are_named_and_one_can_be_picked(empty_tables: str) -> None:
    _run(
        empty_tables,
        'CREATE SCHEMA "Agents"',
        *(f'ALTER TABLE {name} SET SCHEMA "Agents"' for name in TABLES[:4]),
    )
    with pytest.raises(StoreError, match="no LangGraph checkpoints in the search path") as caught:
        open_reader(empty_tables)
    assert "--schema Agents" in (caught.value.hint or "")
    assert caught.value.exit_code == 4
    assert _look(empty_tables, schema="Agents") == []
    with pytest.raises(StoreError, match="no LangGraph checkpoints in schema public"):
        open_reader(empty_tables, schema="public")


def test_a_database_without_tables_is_an_error_and_gets_none(fresh_postgres_url: str) -> None:
    with pytest.raises(StoreError, match="no LangGraph checkpoints") as caught:
        open_reader(fresh_postgres_url)
    assert "database name" in (caught.value.hint or "")
    with psycopg.connect(fresh_postgres_url) as connection:
        assert connection.execute("SELECT count(*) FROM pg_stat_user_tables").fetchone() == (0,)


def test_a_shallow_layout_is_refused_because_it_has_no_history(fresh_postgres_url: str) -> None:
    _run(
        fresh_postgres_url,
        "CREATE TABLE checkpoints (thread_id text, checkpoint_ns text, type text, checkpoint jsonb, metadata jsonb)",
    )
    with pytest.raises(StoreError, match="no history"):
        open_reader(fresh_postgres_url)


def test_a_newer_migration_is_read_with_a_warning(empty_tables: str) -> None:
    with closing(PostgresReader(empty_tables)) as reader:
        assert reader.info.warnings == ()
    _run(empty_tables, "INSERT INTO checkpoint_migrations (v) VALUES (99)")
    with closing(PostgresReader(empty_tables)) as reader:
        assert "migration 99" in reader.info.warnings[0]
        assert list(reader.heads()) == []


def test_a_database_from_before_task_paths_is_read_without_them(database: str) -> None:
    _run(database, "ALTER TABLE checkpoint_writes DROP COLUMN task_path")
    with closing(PostgresReader(database)) as reader:
        writes = reader.writes(CATALOG["half done"].thread, "")
        assert writes
        assert {write.task_path for write in writes} == {None}
        keys = [(write.checkpoint_id, write.task_id, write.idx) for write in writes]
        assert keys == sorted(keys)


def test_a_lost_connection_is_made_again_once(database: str) -> None:
    others = f"FROM pg_stat_activity WHERE datname = '{database_name(database)}' AND pid <> pg_backend_pid()"
    with closing(PostgresReader(database)) as reader:
        _run(database, f"SELECT pg_terminate_backend(pid, 5000) {others}")
        assert sorted(head.thread for head in reader.heads()) == _threads()


def test_a_server_that_cannot_be_reached_is_an_error_without_the_password() -> None:
    with pytest.raises(StoreError, match="no connection to postgresql://ann:") as caught:
        open_reader("postgresql://ann:se%40cret@127.0.0.1:1/agents")
    assert caught.value.exit_code == 4
    assert "cret" not in f"{caught.value.message} {caught.value.hint}"


def test_an_unknown_database_is_an_error_with_a_hint(postgres_url: str) -> None:
    with pytest.raises(StoreError, match="does not exist") as caught:
        open_reader(postgres_url.replace("/postgres?", "/nothing_here?"))
    assert "psql" in (caught.value.hint or "")


def test_a_malformed_url_is_an_error_with_the_form_to_use() -> None:
    with pytest.raises(StoreError, match="not a Postgres URL") as caught:
        open_reader("postgresql://h/db?no_such_option=1")
    assert "postgresql://USER" in (caught.value.hint or "")


def test_a_statement_timeout_is_an_error_with_a_hint(empty_tables: str) -> None:
    url = f"{empty_tables}&options={quote('-c statement_timeout=20')}"
    with closing(PostgresDatabase(url)) as opened, pytest.raises(StoreError, match="statement timeout") as caught:
        opened.read(lambda cursor: cursor.execute("SELECT pg_sleep(30)"))
    assert "--limit" in (caught.value.hint or "")


def test_a_standby_conflict_is_tried_again_once_and_then_explained(empty_tables: str) -> None:
    conflict = (
        "DO $$ BEGIN RAISE EXCEPTION 'canceling statement due to conflict with recovery' USING ERRCODE = '40001';"
        " END $$"
    )
    n_tried = []
    with closing(PostgresDatabase(empty_tables)) as opened, pytest.raises(StoreError, match="the standby") as caught:
        opened.read(lambda cursor: n_tried.append(1) or cursor.execute(conflict))  # type: ignore[func-returns-value]
    assert len(n_tried) == 2
    assert "hot_standby_feedback" in (caught.value.hint or "")


def test_a_lost_blob_is_listed_and_the_other_channels_are_read(database: str) -> None:
    thread = CATALOG["linear"].thread
    with closing(PostgresReader(database)) as reader:
        head, *older = [row.id for row in reader.rows(thread)]
        (whole,) = reader.stored(thread, "", [head])
        _run(
            database,
            f"DELETE FROM checkpoint_blobs WHERE thread_id = '{thread}' AND channel = 'log'"
            f" AND version = '{whole.channel_versions['log']}'",
        )
        (holed,) = reader.stored(thread, "", [head])
        assert holed.missing_blobs == ("log",)
        assert holed.values.keys() == whole.values.keys() - {"log"}
        assert all(found.missing_blobs == () for found in reader.stored(thread, "", older))


def test_an_empty_blob_is_no_value_and_no_loss(database: str) -> None:
    thread = CATALOG["linear"].thread
    with closing(PostgresReader(database)) as reader:
        head = reader.rows(thread)[0].id
        (whole,) = reader.stored(thread, "", [head])
        version = whole.channel_versions["log"]
        _run(
            database,
            f"UPDATE checkpoint_blobs SET type = 'empty', blob = NULL WHERE thread_id = '{thread}'"
            f" AND channel = 'log' AND version = '{version}'",
        )
        (emptied,) = reader.stored(thread, "", [head])
        assert "log" not in emptied.values
        assert emptied.missing_blobs == ()


def test_sends_of_old_formats_are_taken_from_the_parents_writes(database: str) -> None:
    thread = CATALOG["linear"].thread
    with closing(PostgresReader(database)) as reader:
        row = reader.rows(thread)[0]
        assert row.parent is not None
        _run(
            database,
            f"UPDATE checkpoints SET checkpoint = jsonb_set(checkpoint, '{{v}}', '3') WHERE checkpoint_id = '{row.id}'",
            "INSERT INTO checkpoint_writes (thread_id, checkpoint_id, task_id, task_path, idx, channel, type, blob)"
            f" VALUES ('{thread}', '{row.parent}', 'b', 'p1', 0, '__pregel_tasks', 'msgpack', '\\x02'),"
            f" ('{thread}', '{row.parent}', 'a', 'p2', 0, '__pregel_tasks', 'msgpack', '\\x01')",
        )
        (stored,) = reader.stored(thread, "", [row.id])
        with PostgresSaver.from_conn_string(database) as saver:
            stock = saver.get_tuple({"configurable": {"thread_id": thread}})
        assert stock is not None
        assert stock.checkpoint["channel_values"]["__pregel_tasks"] == [2, 1]
        assert stored.values["__pregel_tasks"].data == b"\x92\x02\x01"
