"""Reports J: connections, schemas, and files that other processes have open."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import psycopg
import pytest
from langgraph.checkpoint.postgres import PostgresSaver
from langgraph.checkpoint.sqlite import SqliteSaver
from psycopg.conninfo import conninfo_to_dict

from agentctl.stores.postgres.opening import PostgresDatabase
from agentctl.testing import CliResult, run_cli
from tests.catalog import CATALOG, run_case
from tests.support.postgres import new_database
from tests.support.sqlite_process import SqlProcess
from tests.support.stores import saver_at

CASE = CATALOG["linear"]
_INSERT = (
    "INSERT INTO checkpoints SELECT 'later-{}', checkpoint_ns, checkpoint_id, NULL, type, checkpoint, metadata"
    f" FROM checkpoints WHERE thread_id = '{CASE.thread}' AND checkpoint_ns = '' ORDER BY checkpoint_id DESC LIMIT 1"
)


@pytest.fixture(scope="module")
def filled(postgres_url: str) -> Iterator[str]:
    """A database with one thread; tests copy it."""
    with new_database(postgres_url) as url:
        with PostgresSaver.from_conn_string(url) as saver:
            saver.setup()
            run_case(CASE, saver)
        yield url


@pytest.fixture
def database(postgres_url: str, filled: str) -> Iterator[str]:
    with new_database(postgres_url, like=filled) as url:
        yield url


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """A file with one thread, in WAL mode."""
    path = tmp_path / "prod.sqlite"
    with SqliteSaver.from_conn_string(str(path)) as saver:
        saver.setup()
        run_case(CASE, saver)
    return path


def _cli(store: object, *words: object) -> CliResult:
    return run_cli(*map(str, words), "--store", str(store), environ={})


def _run(url: str, *statements: str) -> None:
    with psycopg.connect(url, autocommit=True) as connection:
        for statement in statements:
            connection.execute(statement)  # type: ignore[call-overload]


def test_j1_no_connection_asks_for_anything_at_start_up_or_prepares_statements(
    database: str, fresh_postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[dict[str, Any]] = []
    prepared: list[Any] = []
    connect, close = psycopg.connect, psycopg.Connection.close

    def connecting(text: str, **how: Any) -> Any:
        asked.append({**conninfo_to_dict(text), **how})
        return connect(text, **how)

    def closing(connection: psycopg.Connection[Any]) -> None:
        if not connection.closed:
            prepared.extend(connection.execute("SELECT name FROM pg_prepared_statements").fetchall())
        close(connection)

    monkeypatch.setattr(psycopg, "connect", connecting)
    monkeypatch.setattr(psycopg.Connection, "close", closing)
    copied = _cli(database, "copy", CASE.thread, "--to", fresh_postgres_url)
    looked = [_cli(database, verb, CASE.thread) for verb in ("history", "show", "size", "doctor")]

    assert [done.code for done in (copied, *looked)] == [0] * 5, copied.err
    assert prepared == []
    assert len(asked) > 5
    for one in asked:
        assert one.keys() - conninfo_to_dict(database).keys() == {"autocommit", "prepare_threshold", "connect_timeout"}
        assert one["prepare_threshold"] is None


def test_j2_a_read_on_a_dropped_connection_is_done_again_once(database: str) -> None:
    pids: list[int] = []

    def work(cursor: Any) -> int:
        pids.append(cursor.execute("SELECT pg_backend_pid()").fetchone()[0])
        if len(pids) == 1:
            cursor.execute("SELECT pg_terminate_backend(pg_backend_pid())")
        return len(pids)

    with closing(PostgresDatabase(database)) as opened:
        assert opened.read(work) == 2
    assert len(set(pids)) == 2


def test_j3_a_role_that_may_only_select_looks_and_is_never_set_up(database: str) -> None:
    _run(
        database,
        "CREATE ROLE looker LOGIN",
        "GRANT USAGE ON SCHEMA public TO looker",
        "GRANT SELECT ON ALL TABLES IN SCHEMA public TO looker",
    )
    try:
        role = database.replace("//postgres@", "//looker@")
        looked = [_cli(role, verb, CASE.thread) for verb in ("history", "show", "size", "doctor")]
        written = _cli(role, "copy", CASE.thread, "--to", role)
    finally:
        _run(database, "DROP OWNED BY looker", "DROP ROLE looker")

    assert [done.code for done in looked] == [0] * 4
    assert written.code == 4
    assert "may not write" in written.err


def test_j4_a_newer_layout_is_looked_at_with_a_warning_and_never_written(database: str) -> None:
    _run(database, "INSERT INTO checkpoint_migrations (v) VALUES (99)")
    looked = _cli(database, "history", CASE.thread)
    written = _cli(database, "copy", CASE.thread, "--to", database)

    assert looked.code == 0
    assert "warning: " in looked.err and "migration 99" in looked.err
    assert (written.code, written.out) == (4, "")
    assert "99" in written.err


@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
def test_j5_tables_without_history_are_told_as_such(kind: str, tmp_path: Path, fresh_postgres_url: str) -> None:
    columns = "thread_id TEXT, checkpoint_ns TEXT, type TEXT, checkpoint {}, metadata {}"
    if kind == "postgres":
        store = fresh_postgres_url
        _run(store, f"CREATE TABLE checkpoints ({columns.format('JSONB', 'JSONB')})")
    else:
        store = str(tmp_path / "shallow.sqlite")
        with closing(sqlite3.connect(store)) as connection:
            connection.execute(f"CREATE TABLE checkpoints ({columns.format('BLOB', 'BLOB')})")
    done = _cli(store, "history", "t")

    assert done.code == 4
    assert ("no history" if kind == "postgres" else "lacks checkpoint_id") in done.err


def test_j6_a_thread_id_that_the_index_cannot_hold_is_refused_before_anything_is_written(
    file: Path, fresh_postgres_url: str
) -> None:
    done = _cli(file, "copy", CASE.thread, "--to", fresh_postgres_url, "--as", "x" * 3840)

    assert done.code == 5
    assert "3840 bytes" in done.err
    with psycopg.connect(fresh_postgres_url) as connection:
        assert connection.execute("SELECT to_regclass('checkpoints')").fetchone() == (None,)
    assert _cli(file, "copy", CASE.thread, "--to", fresh_postgres_url, "--as", "7").code == 0
    assert _cli(fresh_postgres_url, "history", "7").code == 0


@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
def test_j7_no_lock_of_a_saver_is_waited_for(kind: str, file: Path, database: str) -> None:
    store = database if kind == "postgres" else str(file)
    with saver_at(store) as saver, saver.lock:
        assert _cli(store, "history", CASE.thread).code == 0
        assert _cli(store, "size", CASE.thread).code == 0


@pytest.mark.parametrize("mode", ["wal", "delete"])
def test_j8_a_writer_commits_between_all_reads_of_a_history_in_a_loop(file: Path, mode: str) -> None:
    _set_mode(file, mode)
    with SqlProcess(file) as writer:
        writer.run("PRAGMA busy_timeout=0")
        for n in range(10):
            writer.run("BEGIN IMMEDIATE", _INSERT.format(n))
            assert _cli(file, "history", CASE.thread).code == 0
            writer.run("COMMIT")
    assert len(_cli(file, "threads").rows) == 11


def test_j9_a_file_in_rollback_mode_stays_so_and_is_copied_whole_while_another_process_has_it_open(
    file: Path, tmp_path: Path
) -> None:
    _set_mode(file, "delete")
    with SqlProcess(file) as writer:
        writer.run("BEGIN IMMEDIATE", _INSERT.format(1))
        before = file.read_bytes()
        done = _cli(file, "copy", CASE.thread, "--only", "all", "--to", tmp_path / "copy.sqlite")
        assert file.read_bytes() == before
        writer.run("COMMIT")

    assert done.code == 0, done.err
    assert file.read_bytes()[18:20] == b"\x01\x01"
    assert not file.with_name("prod.sqlite-wal").exists()


def _set_mode(file: Path, mode: str) -> None:
    with closing(sqlite3.connect(file)) as connection:
        assert connection.execute(f"PRAGMA journal_mode={mode}").fetchone() == (mode,)
