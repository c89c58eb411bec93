"""Copies that must not be made, and what is left behind when one is not: nothing."""

from __future__ import annotations

import hashlib
import json
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import ormsgpack
import psycopg
import pytest
from langgraph.checkpoint.postgres import PostgresSaver
from langgraph.checkpoint.serde.encrypted import EncryptedSerializer
from langgraph.checkpoint.sqlite import SqliteSaver

from agentctl.codec.encryption import is_encrypted
from agentctl.errors import NotFound, Refused, StoreError
from agentctl.records.rows import Stored, WriteRow
from agentctl.stores.base import CopyPlan, Reader, Writer
from agentctl.stores.copying.execute import copy
from agentctl.stores.copying.selection import for_copy, for_replay, for_resume
from agentctl.stores.open import open_reader, open_writer
from agentctl.stores.postgres.writer import PostgresWriter
from agentctl.stores.sqlite.writer import SqliteTransaction, SqliteWriter
from tests.catalog import CATALOG, run_case
from tests.catalog.storage import VALUES
from tests.support.copies import stock_saver, tuples, without_repeated_snapshots
from tests.support.postgres import new_database

NAME = "join"
THREAD = CATALOG[NAME].thread


@pytest.fixture
def source(tmp_path: Path) -> Iterator[Reader]:
    path = tmp_path / "source.sqlite"
    with stock_saver(str(path)) as saver:
        run_case(CATALOG[NAME], saver)
    reader = open_reader(str(path))
    yield reader
    reader.close()


@pytest.fixture
def target(tmp_path: Path) -> Iterator[Writer]:
    writer = open_writer(str(tmp_path / "debug" / "debug.sqlite"))
    yield writer
    writer.close()


@pytest.fixture
def postgres(fresh_postgres_url: str) -> Iterator[Writer]:
    writer = open_writer(fresh_postgres_url)
    yield writer
    writer.close()


def whole(reader: Reader, as_thread: str = "copy", thread: str = THREAD) -> CopyPlan:
    return for_copy(reader, thread, "", reader.rows(thread)[0].id, "all", as_thread)


def is_empty(writer: Writer) -> bool:
    """Says whether nothing was left: in a file no row, in a database not even a table."""
    if isinstance(writer, PostgresWriter):
        with psycopg.connect(writer.url) as connection:
            return connection.execute("SELECT to_regclass('checkpoints')").fetchone() == (None,)
    return not writer.heads() and not writer.namespaces("copy")


def test_a_thread_that_the_target_has_is_not_written_to(source: Reader, target: Writer) -> None:
    copy(source, target, [whole(source)])
    before = target.rows("copy")
    with pytest.raises(Refused, match="already has a thread copy") as refused:
        copy(source, target, [whole(source, "another"), whole(source)])
    assert refused.value.hint is not None and "--as" in refused.value.hint
    assert target.rows("copy") == before
    assert not target.namespaces("another")


def test_two_plans_for_one_thread_are_refused(source: Reader, target: Writer) -> None:
    with pytest.raises(Refused, match="already has a thread copy"):
        copy(source, target, [whole(source), whole(source)])
    assert is_empty(target)


@pytest.mark.parametrize("kind", ["target", "postgres"])
def test_a_dry_run_counts_what_would_be_written_and_writes_nothing(
    source: Reader, kind: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    writer: Writer = request.getfixturevalue(kind)
    (planned,) = copy(source, writer, [whole(source)], dry_run=True)
    assert not (tmp_path / "debug").exists()
    assert is_empty(writer)
    (done,) = copy(source, writer, [whole(source)])
    assert (planned.n_checkpoints, planned.n_writes) == (done.n_checkpoints, done.n_writes)
    assert (planned.dry_run, planned.verified, done.dry_run, done.verified) == (True, False, False, True)


def test_the_file_of_a_copy_is_for_its_owner_alone_and_opens_with_the_stock_saver(
    source: Reader, target: Writer, tmp_path: Path
) -> None:
    copy(source, target, [whole(source)])
    path = tmp_path / "debug" / "debug.sqlite"
    assert (path.stat().st_mode & 0o777, path.parent.stat().st_mode & 0o777) == (0o600, 0o700)
    with closing(sqlite3.connect(path)) as connection, closing(sqlite3.connect(":memory:")) as stock:
        SqliteSaver(stock).setup()
        schema = "SELECT name, cid, type, [notnull], dflt_value, pk FROM pragma_table_info(?)"
        for table in ("checkpoints", "writes"):
            assert connection.execute(schema, (table,)).fetchall() == stock.execute(schema, (table,)).fetchall()
        assert connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)


def test_the_tables_made_in_postgres_are_those_of_the_stock_saver(postgres_url: str) -> None:
    columns = (
        "SELECT table_name, column_name, data_type, is_nullable, column_default FROM information_schema.columns"
        " WHERE table_schema = 'public'"
    )
    indexes = "SELECT replace(indexdef, 'public.', '') FROM pg_indexes WHERE schemaname = 'public'"
    found = []
    for is_stock in (True, False):
        with new_database(postgres_url) as url:
            if is_stock:
                with stock_saver(url):
                    pass
            else:
                open_writer(url).setup()
            with psycopg.connect(url) as connection:
                migrations = connection.execute("SELECT v FROM checkpoint_migrations").fetchall()
                found.append(
                    [sorted(connection.execute(query).fetchall()) for query in (columns, indexes)]
                    + [sorted(migrations)]
                )
    assert found[0] == found[1]


@pytest.mark.parametrize("kind", ["target", "postgres"])
def test_a_copy_that_fails_half_way_leaves_nothing(
    source: Reader, kind: str, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    writer: Writer = request.getfixturevalue(kind)

    def stop(n_done: int, n_total: int) -> None:
        if n_done > n_total // 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        copy(source, writer, [whole(source), whole(source, "second")], on_progress=stop)
    assert is_empty(writer)
    assert not writer.namespaces("second")


@pytest.mark.parametrize("kind", ["target", "postgres"])
def test_a_copy_that_does_not_read_back_equal_is_taken_back(
    source: Reader, kind: str, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    writer: Writer = request.getfixturevalue(kind)
    from agentctl.stores.postgres.writer import PostgresTransaction

    transaction: Any = SqliteTransaction if kind == "target" else PostgresTransaction
    insert = transaction.insert_writes

    def lossy(self: Any, thread: str, rows: Any) -> None:
        insert(self, thread, (row for row in rows if row[5] != "log"))

    monkeypatch.setattr(transaction, "insert_writes", lossy)
    with pytest.raises(StoreError, match="did not read back"):
        copy(source, writer, [whole(source)])
    assert is_empty(writer)


def test_a_write_of_another_value_is_noticed(source: Reader, target: Writer, monkeypatch: pytest.MonkeyPatch) -> None:
    insert = SqliteTransaction.insert_checkpoints

    def wrong(self: SqliteTransaction, thread: str, rows: Any) -> None:
        insert(self, thread, ((*row[:4], bytes(row[4])[:-1] + b"\xc0", row[5]) for row in rows))

    monkeypatch.setattr(SqliteTransaction, "insert_checkpoints", wrong)
    with pytest.raises(StoreError, match="did not read back"):
        copy(source, target, [whole(source)])
    assert is_empty(target)


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        ("a\x00b", "NUL"),
        (float("nan"), "not JSON"),
        (float("inf"), "not JSON"),
        (1e16, "come back as an integer"),
        (-0.0, "-0.0"),
    ],
)
def test_a_value_that_postgres_cannot_hold_is_named_before_the_first_write(
    tmp_path: Path, postgres: Writer, value: Any, reason: str
) -> None:
    url = str(tmp_path / "odd.sqlite")
    with stock_saver(url) as saver:
        graph = CATALOG["values"].build(saver)
        graph.invoke(
            {"ratio": value} if isinstance(value, float) else {"text": value}, _config("odd"), durability="sync"
        )
        bad = {found.config["configurable"]["checkpoint_id"] for found in saver.list(_config("odd"))}
    reader = open_reader(url)
    with pytest.raises(Refused, match=reason) as refused:
        copy(reader, postgres, [whole(reader, thread="odd")])
    message = refused.value.message
    assert any(one in message for one in bad)
    assert "channel ratio" in message or "channel text" in message or "channel __start__" in message
    assert is_empty(postgres)


def test_a_lone_surrogate_from_another_writer_is_named(source: Reader, postgres: Writer) -> None:
    """Stock Python cannot store one; a file written elsewhere can hold its bytes."""
    lone = b"\xa3\xed\xa0\x80"
    _change_values(source, lambda values: {**values, "note": lone})
    with pytest.raises(Refused, match="channel note"):
        copy(source, postgres, [whole(source)])
    assert is_empty(postgres)


def test_a_value_that_changed_under_one_version_is_refused_by_postgres_and_kept_by_sqlite(
    source: Reader, target: Writer, postgres: Writer
) -> None:
    newest = source.rows(THREAD)[0].id
    _change_values(source, lambda values: {**values, "log": ormsgpack.packb(["changed in place"])}, only=newest)
    version = {one.row.id: one.channel_versions["log"] for one in source.stored(THREAD, "", [newest])}[newest]
    older = next(row.id for row in source.rows(THREAD)[1:])
    _change_versions(source, older, "log", version)
    with pytest.raises(Refused, match="differs from checkpoint"):
        copy(source, postgres, [whole(source)])
    copy(source, target, [whole(source)])


def test_metadata_that_json_cannot_hold_is_named(source: Reader, postgres: Writer) -> None:
    _execute(source, "UPDATE checkpoints SET metadata = ?", (b'{"source": "loop", "step": 1, "score": NaN}',))
    with pytest.raises(Refused, match=r"metadata\.score: number nan"):
        copy(source, postgres, [whole(source)])


def test_an_integer_beyond_64_bits_cannot_go_back_to_sqlite(tmp_path: Path, fresh_postgres_url: str) -> None:
    with stock_saver(fresh_postgres_url) as saver:
        graph = CATALOG["values"].build(saver)
        graph.invoke({"small": 1}, _config("big"), durability="sync")
    with psycopg.connect(fresh_postgres_url) as connection:
        connection.execute(
            "UPDATE checkpoints SET checkpoint = jsonb_set(checkpoint, '{channel_values,small}', '1e30')"
        )
    with closing(open_reader(fresh_postgres_url)) as reader:
        writer = open_writer(str(tmp_path / "new.sqlite"))
        with pytest.raises(Refused, match="channel small: integer beyond 64 bits"):
            copy(reader, writer, [whole(reader, thread="big")])
    assert not (tmp_path / "new.sqlite").exists()


def test_a_thread_id_longer_than_the_index_is_refused(source: Reader, postgres: Writer, target: Writer) -> None:
    long = hashlib.sha512(b"id").hexdigest() * 30
    with pytest.raises(Refused, match="index allows"):
        copy(source, postgres, [whole(source, long)])
    copy(source, target, [whole(source, long)])
    assert target.rows(long)


def test_encrypted_rows_of_sqlite_stay_as_they_are_and_never_become_rows_of_postgres(
    tmp_path: Path, target: Writer, postgres: Writer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The key in the environment must not turn an encrypted row into plain text on the way."""
    monkeypatch.setenv("LANGGRAPH_AES_KEY", "0123456789abcdef")
    path = tmp_path / "secret.sqlite"
    pytest.importorskip("Crypto")
    with closing(sqlite3.connect(path, check_same_thread=False)) as connection:
        saver = SqliteSaver(connection, serde=EncryptedSerializer.from_pycryptodome_aes())
        CATALOG[NAME].run(CATALOG[NAME].build(saver), THREAD)
    reader = open_reader(str(path))
    with pytest.raises(Refused, match="is encrypted"):
        copy(reader, postgres, [whole(reader)])
    copy(reader, target, [whole(reader)])
    assert _raw(path, THREAD) == _raw(tmp_path / "debug" / "debug.sqlite", "copy")


@pytest.mark.parametrize("name", ["values", "subgraph interrupted", "pending sends", "delta"])
def test_encrypted_values_of_postgres_become_encrypted_rows_of_sqlite_with_the_key_alone(
    tmp_path: Path, target: Writer, fresh_postgres_url: str, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    pytest.importorskip("Crypto")
    monkeypatch.delenv("LANGGRAPH_AES_KEY", raising=False)
    case, key = CATALOG[name], "0123456789abcdef"
    serde = EncryptedSerializer.from_pycryptodome_aes(key=key.encode())
    with PostgresSaver.from_conn_string(fresh_postgres_url) as saver:
        saver.serde = serde
        saver.setup()
        case.run(case.build(saver), case.thread)
        expected = without_repeated_snapshots(tuples(saver, case.thread))
    with closing(open_reader(fresh_postgres_url)) as reader:
        with pytest.raises(Refused, match="LANGGRAPH_AES_KEY is not set"):
            copy(reader, target, [whole(reader, thread=case.thread)])
        assert is_empty(target)
        encrypted = {
            stored.row.id
            for ns in reader.namespaces(case.thread)
            for stored in reader.stored(case.thread, ns, [row.id for row in reader.rows(case.thread, ns)])
            if any(map(is_encrypted, stored.values.values()))
        }
        monkeypatch.setenv("LANGGRAPH_AES_KEY", key)
        (report,) = copy(reader, target, [whole(reader, thread=case.thread)])
    assert report.verified
    with closing(sqlite3.connect(tmp_path / "debug" / "debug.sqlite", check_same_thread=False)) as connection:
        sealed = connection.execute("SELECT checkpoint_id FROM checkpoints WHERE type = 'msgpack+aes'").fetchall()
        assert {checkpoint_id for (checkpoint_id,) in sealed} == encrypted != set()
        assert without_repeated_snapshots(tuples(SqliteSaver(connection, serde=serde), "copy")) == expected


def test_encrypted_rows_are_recognised_by_their_type(
    source: Reader, target: Writer, postgres: Writer, tmp_path: Path
) -> None:
    _execute(source, "UPDATE checkpoints SET type = 'msgpack+aes', checkpoint = x'00112233'", ())
    with pytest.raises(Refused, match=r"is encrypted \(msgpack\+aes\)"):
        copy(source, postgres, [whole(source)])
    copy(source, target, [whole(source)])
    assert _raw(Path(source.info.url), THREAD) == _raw(tmp_path / "debug" / "debug.sqlite", "copy")


def test_a_file_without_task_paths_is_copied_with_empty_ones(source: Reader, target: Writer) -> None:
    _execute(source, "ALTER TABLE writes DROP COLUMN task_path", ())
    reader = open_reader(source.info.url)
    copy(reader, target, [whole(reader)])
    assert {write.task_path for write in target.writes("copy", "")} == {""}


def test_a_checkpoint_that_is_not_there_is_not_found(source: Reader) -> None:
    for select in (for_resume, for_replay):
        with pytest.raises(NotFound) as missing:
            select(source, THREAD, "", "1f0", "copy")
        assert missing.value.hint is not None
    with pytest.raises(NotFound):
        for_copy(source, "nobody", "", "1f0", "all", "copy")


def test_n_copies_with_their_own_changes_are_made_in_one_go(source: Reader, target: Writer) -> None:
    head = source.rows(THREAD)[0].id
    plan = replace(for_replay(source, THREAD, "", head, "copy-0"), provenance={"agentctl_from": "here"})
    extra = WriteRow("", head, "task", "~__pregel_pull, end", 0, "log", Stored("msgpack", b"\x90"), 1)
    plans = [plan, replace(plan, as_thread="copy-1"), replace(plan, as_thread="copy-2", extra_writes=(extra,))]
    reports = copy(source, target, plans)
    assert [report.target.thread for report in reports] == ["copy-0", "copy-1", "copy-2"]
    assert [report.n_writes for report in reports] == [0, 0, 1]
    for report in reports:
        (row,) = target.rows(report.target.thread)
        assert row.metadata == {**source.rows(THREAD)[0].metadata, "agentctl_from": "here"}


def test_a_plan_that_edits_what_it_does_not_copy_is_refused(source: Reader, target: Writer) -> None:
    head = source.rows(THREAD)[0].id
    plan = for_replay(source, THREAD, "", head, "copy")
    for edits in ({("", head, "nobody", 0): Stored("null", b"")}, {("", "1f0", "nobody", 0): Stored("null", b"")}):
        with pytest.raises(Refused):
            copy(source, target, [replace(plan, edits=edits)])
        assert is_empty(target)


@pytest.mark.parametrize("kind", ["target", "postgres"])
def test_a_deleted_copy_leaves_no_row_and_spares_the_others(
    source: Reader, kind: str, request: pytest.FixtureRequest
) -> None:
    writer: Writer = request.getfixturevalue(kind)
    copy(source, writer, [whole(source), whole(source, "other")])
    (report,) = copy(source, writer, [whole(source, "third")])
    assert writer.delete_thread("third") == report.n_checkpoints + report.n_writes + report.n_blobs
    assert writer.delete_thread("third") == 0
    assert [head.thread for head in writer.heads()] in (["copy", "other"], ["other", "copy"])


def test_a_role_that_may_only_read_the_source_is_enough_within_one_server(postgres_url: str) -> None:
    """The target's role may not see the source's tables, so the rows take the way over COPY."""
    with ExitStack() as stack:
        url = stack.enter_context(new_database(postgres_url))
        saver = stack.enter_context(stock_saver(url))
        run_case(CATALOG["values"], saver)
        with psycopg.connect(url, autocommit=True) as connection:
            name = "writer_" + hashlib.sha256(url.encode()).hexdigest()[:12]
            connection.execute(f"CREATE ROLE {name} LOGIN")
            connection.execute(f"CREATE SCHEMA debug AUTHORIZATION {name}")
            stack.callback(_drop_role, url, name)
        reader, writer = open_reader(url), open_writer(url.replace("postgres@", f"{name}@"), schema="debug")
        stack.callback(reader.close)
        stack.callback(writer.close)
        thread = CATALOG["values"].thread
        (report,) = copy(reader, writer, [whole(reader, thread=thread)])
        assert report.verified
        copied = {one.row.id: one.values for one in writer.stored("copy", "", [row.id for row in writer.rows("copy")])}
        original = {one.row.id: one.values for one in reader.stored(thread, "", list(copied))}
        assert copied == original
        assert copied and VALUES["text"] in tuples(saver, thread)[-1][4].values()


@pytest.mark.parametrize(
    ("version", "statement"),
    [
        (8, "DELETE FROM checkpoint_migrations WHERE v > 8"),
        (99, "INSERT INTO checkpoint_migrations VALUES (99)"),
    ],
)
def test_older_and_newer_tables_are_not_written(fresh_postgres_url: str, version: int, statement: str) -> None:
    open_writer(fresh_postgres_url).setup()
    with psycopg.connect(fresh_postgres_url) as connection:
        connection.execute(statement)
    with pytest.raises(StoreError, match=f"at migration {version}"):
        open_writer(fresh_postgres_url).setup()


@pytest.mark.real_process
def test_a_copy_that_is_killed_half_way_leaves_nothing(source: Reader, target: Writer) -> None:
    program = f"""
import os, signal
from agentctl.stores.copying.execute import copy
from agentctl.stores.copying.selection import for_copy
from agentctl.stores.open import open_reader, open_writer
reader, writer = open_reader({source.info.url!r}), open_writer({target.info.url!r})
plan = for_copy(reader, {THREAD!r}, "", reader.rows({THREAD!r})[0].id, "all", "copy")
copy(reader, writer, [plan], on_progress=lambda n_done, n_total: os.kill(os.getpid(), signal.SIGKILL))
"""
    done = subprocess.run([sys.executable, "-c", program], check=False, capture_output=True)
    assert done.returncode == -signal.SIGKILL, done.stderr
    assert Path(target.info.url).exists()
    assert is_empty(target)
    copy(source, target, [whole(source)])


def test_opening_a_file_that_must_exist_creates_nothing(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="no such file"):
        SqliteWriter(tmp_path / "none.sqlite", create=False)
    assert list(tmp_path.iterdir()) == []


def _config(thread: str) -> Any:
    return {"configurable": {"thread_id": thread}}


def _execute(reader: Reader, statement: str, parameters: tuple[object, ...]) -> None:
    with closing(sqlite3.connect(reader.info.url)) as connection:
        connection.execute(statement, parameters)
        connection.commit()


def _raw(path: Path, thread: str) -> list[list[tuple[Any, ...]]]:
    with closing(sqlite3.connect(path)) as connection:
        return [
            connection.execute(
                f"SELECT {columns} FROM {table} WHERE thread_id = ? ORDER BY 1, 2, 3, 4", (thread,)
            ).fetchall()
            for table, columns in (
                ("checkpoints", "checkpoint_ns, checkpoint_id, parent_checkpoint_id, type, checkpoint, metadata"),
                ("writes", "checkpoint_ns, checkpoint_id, task_id, idx, task_path, channel, type, value"),
            )
        ]


def _change_values(reader: Reader, change: Any, only: str | None = None) -> None:
    """Rewrites the channel values of stored checkpoints, each given and returned as packed bytes."""
    from agentctl.codec.packed import join_map, split_map

    with closing(sqlite3.connect(reader.info.url)) as connection:
        for id, data in connection.execute("SELECT checkpoint_id, checkpoint FROM checkpoints").fetchall():
            if only is None or id == only:
                parts = split_map(data)
                parts["channel_values"] = join_map(change(split_map(parts["channel_values"])))
                statement = "UPDATE checkpoints SET checkpoint = ? WHERE checkpoint_id = ?"
                connection.execute(statement, (join_map(parts), id))
        connection.commit()


def _change_versions(reader: Reader, id: str, channel: str, version: Any) -> None:
    from agentctl.codec.packed import join_map, split_map

    with closing(sqlite3.connect(reader.info.url)) as connection:
        (data,) = connection.execute("SELECT checkpoint FROM checkpoints WHERE checkpoint_id = ?", (id,)).fetchone()
        parts = split_map(data)
        versions = {**ormsgpack.unpackb(parts["channel_versions"]), channel: version}
        parts["channel_versions"] = ormsgpack.packb(versions)
        connection.execute("UPDATE checkpoints SET checkpoint = ? WHERE checkpoint_id = ?", (join_map(parts), id))
        connection.commit()


def _drop_role(url: str, name: str) -> None:
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(f"DROP OWNED BY {name}")
        connection.execute(f"DROP ROLE {name}")


def test_metadata_is_kept_as_it_is_but_for_the_provenance(source: Reader, postgres: Writer) -> None:
    _execute(source, "UPDATE checkpoints SET metadata = ?", (json.dumps({"thread_id": THREAD, "step": 1}).encode(),))
    copy(source, postgres, [replace(whole(source), provenance={"agentctl_from": "x"})])
    newest, *others = postgres.rows("copy")
    assert newest.metadata == {"thread_id": THREAD, "step": 1, "agentctl_from": "x"}
    assert {json.dumps(dict(row.metadata), sort_keys=True) for row in others} == {
        json.dumps({"step": 1, "thread_id": THREAD}, sort_keys=True)
    }


@pytest.mark.parametrize("kind", ["target", "postgres"])
def test_a_thread_of_any_saver_is_copied(
    source: Reader, kind: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    """A saver hands out no task paths, so those of the copy are empty; values and order stay."""
    writer: Writer = request.getfixturevalue(kind)
    (tmp_path / "given.py").write_text(
        "from langgraph.checkpoint.sqlite import SqliteSaver\n"
        f"def saver():\n    return SqliteSaver.from_conn_string({source.info.url!r})\n"
    )
    with closing(open_reader(f"{tmp_path / 'given.py'}:saver")) as reader:
        (report,) = copy(reader, writer, [whole(reader)])
    assert (report.verified, report.n_checkpoints) == (True, len(source.rows(THREAD)))
    target_url = (
        str(tmp_path / "debug" / "debug.sqlite") if kind == "target" else request.getfixturevalue("fresh_postgres_url")
    )
    with stock_saver(source.info.url) as original, stock_saver(target_url) as copied:
        assert [one[:6] for one in tuples(copied, "copy")] == [one[:6] for one in tuples(original, THREAD)]
