"""A copy that is killed half way leaves nothing in its target, says so, and can be repeated."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import psycopg
import pytest
from langgraph.checkpoint.postgres import PostgresSaver
from langgraph.checkpoint.sqlite import SqliteSaver

from agentctl.stores.sqlite.writer import SqliteWriter
from agentctl.testing import CliResult, run_cli
from tests.catalog import CATALOG, run_case
from tests.support.killed import Killed
from tests.support.postgres import database_name, new_database

CASE = CATALOG["fan out"]
_KILL_OWN = "PERFORM pg_terminate_backend(pg_backend_pid())"
_KILL_SOURCE = (
    "PERFORM pg_terminate_backend(pid, 5000) FROM pg_stat_activity"
    " WHERE datname = '{source}' AND query LIKE 'COPY (SELECT%' AND state = 'active'"
)
_ARM = """
CREATE FUNCTION kill() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
    IF NEW.thread_id = 'c' THEN {act}; END IF; RETURN NEW; END $$;
CREATE TRIGGER kill BEFORE INSERT ON {table} FOR EACH ROW EXECUTE FUNCTION kill();
"""
_ENLARGE = "UPDATE checkpoint_blobs SET blob = blob || repeat('x', 400000)::bytea WHERE blob IS NOT NULL"
_DISARM = "DROP FUNCTION kill() CASCADE"


@pytest.fixture(scope="module")
def postgres_source(postgres_url: str) -> Iterator[str]:
    """A database with one thread, whose blobs are more than a connection has room for on the way."""
    with new_database(postgres_url) as url, PostgresSaver.from_conn_string(url) as saver:
        saver.setup()
        run_case(CASE, saver)
        saver.conn.execute(
            "UPDATE checkpoint_blobs SET blob = blob || repeat('x', 400000)::bytea WHERE blob IS NOT NULL"
        )
        yield url


@pytest.fixture(scope="module")
def sqlite_source(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("source") / "prod.sqlite"
    with SqliteSaver.from_conn_string(str(path)) as saver:
        saver.setup()
        run_case(CASE, saver)
    return str(path)


def _copy(source: str, target: str) -> CliResult:
    return run_cli("copy", CASE.thread, "--only", "all", "--store", source, "--to", target, "--as", "c", environ={})


def _arm(url: str, table: str, act: str) -> None:
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(_ARM.format(table=table, act=act))


def _disarm(url: str) -> None:
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(_DISARM)


def _assert_told(done: CliResult) -> None:
    assert done.code == 4, done.err
    assert done.err.startswith("error: no connection to postgresql://")
    assert "hint: " in done.err


@pytest.mark.parametrize("table", ["checkpoints", "checkpoint_blobs", "checkpoint_writes"])
@pytest.mark.parametrize("source", ["the same database", "another database"])
def test_a_target_backend_killed_in_mid_copy_leaves_nothing(
    postgres_source: str, fresh_postgres_url: str, source: str, table: str
) -> None:
    target = postgres_source if source == "the same database" else fresh_postgres_url
    with PostgresSaver.from_conn_string(target) as saver:
        saver.setup()
    _arm(target, table, _KILL_OWN)
    try:
        _assert_told(_copy(postgres_source, target))
    finally:
        _disarm(target)
    assert _rows_of_copy(target) == 0

    again = _copy(postgres_source, target)
    assert again.code == 0, again.err
    if target == postgres_source:
        with psycopg.connect(target, autocommit=True) as connection:
            for name in ("checkpoints", "checkpoint_blobs", "checkpoint_writes"):
                connection.execute(f"DELETE FROM {name} WHERE thread_id = 'c'")


def test_a_source_backend_killed_in_the_middle_of_its_copy_leaves_nothing(
    postgres_source: str, fresh_postgres_url: str
) -> None:
    with PostgresSaver.from_conn_string(fresh_postgres_url) as saver:
        saver.setup()
    _arm(fresh_postgres_url, "checkpoint_blobs", _KILL_SOURCE.format(source=database_name(postgres_source)))
    done = _copy(postgres_source, fresh_postgres_url)
    _disarm(fresh_postgres_url)

    _assert_told(done)
    assert _rows_of_copy(fresh_postgres_url) == 0
    assert _copy(postgres_source, fresh_postgres_url).code == 0


def test_a_backend_killed_while_rows_of_sqlite_come_in_leaves_nothing(
    sqlite_source: str, fresh_postgres_url: str
) -> None:
    with PostgresSaver.from_conn_string(fresh_postgres_url) as saver:
        saver.setup()
    _arm(fresh_postgres_url, "checkpoint_writes", _KILL_OWN)
    _assert_told(_copy(sqlite_source, fresh_postgres_url))
    _disarm(fresh_postgres_url)

    assert _rows_of_copy(fresh_postgres_url) == 0
    assert _copy(sqlite_source, fresh_postgres_url).code == 0


@pytest.mark.parametrize("mode", ["wal", "delete"])
@pytest.mark.parametrize("has_threads", [False, True], ids=["a new file", "a file with threads"])
def test_a_process_killed_in_mid_copy_leaves_nothing_in_its_file(
    sqlite_source: str, tmp_path: Path, killed: Killed, mode: str, has_threads: bool
) -> None:
    target = tmp_path / "debug.sqlite"
    if has_threads:
        with SqliteSaver.from_conn_string(str(target)) as saver:
            saver.setup()
            run_case(CATALOG["linear"], saver)
        with closing(sqlite3.connect(target)) as connection:
            connection.execute(f"PRAGMA journal_mode={mode}")
    killed("dying_copy", sqlite_source, str(target), CASE.thread)

    listed = run_cli("threads", "--store", target, environ={})
    assert [row[0] for row in listed.rows] == ([CATALOG["linear"].thread] if has_threads else []), listed.err
    again = _copy(sqlite_source, str(target))
    assert again.code == 0, again.err


def test_a_target_without_room_is_left_without_a_row_and_filled_when_there_is(
    sqlite_source: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = tmp_path / "debug.sqlite"
    with SqliteSaver.from_conn_string(str(target)) as saver:
        saver.setup()
    connect = SqliteWriter._connect

    def crowded(self: SqliteWriter) -> sqlite3.Connection:
        connection = connect(self)
        connection.execute("PRAGMA max_page_count = 6")
        return connection

    with monkeypatch.context() as patched:
        patched.setattr(SqliteWriter, "_connect", crowded)
        done = _copy(sqlite_source, str(target))

    assert (done.code, done.out) == (4, "")
    assert done.err.startswith(f"error: {target} cannot be written: database or disk is full\nhint: ")
    assert run_cli("threads", "--store", target, environ={}).rows == []
    assert _copy(sqlite_source, str(target)).code == 0


@pytest.fixture(scope="module")
def killed() -> Iterator[Killed]:
    killed = Killed()
    yield killed
    killed.close()


def _rows_of_copy(url: str) -> int:
    with psycopg.connect(url) as connection:
        counts = [
            connection.execute(f"SELECT count(*) FROM {name} WHERE thread_id = 'c'").fetchone()
            for name in ("checkpoints", "checkpoint_blobs", "checkpoint_writes")
        ]
    return sum(count[0] for count in counts if count)
