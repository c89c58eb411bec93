"""Rows that today's Python saver did not write: old versions, LangGraph.js, encrypted ones, damaged ones."""

from __future__ import annotations

import json
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import msgpack  # type: ignore[import-untyped]
import pytest
from langgraph.checkpoint.serde.encrypted import EncryptedSerializer
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.store.sqlite import SqliteStore

from agentctl.codec.values import decode
from agentctl.records.rows import Stored
from agentctl.stores.sqlite.reader import SqliteReader
from tests.catalog import CATALOG, run_case, sqlite_thread
from tests.support.javascript import SQLITE_TABLES

THREAD = CATALOG["linear"].thread
KEY = "0123456789abcdef"


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return sqlite_thread(tmp_path_factory.mktemp("template"), CATALOG["linear"])


@pytest.fixture
def database(tmp_path: Path, template: Path) -> Path:
    return Path(shutil.copy(template, tmp_path))


@pytest.fixture
def javascript(tmp_path: Path) -> Iterator[sqlite3.Connection]:
    with closing(sqlite3.connect(tmp_path / "js.sqlite", isolation_level=None)) as connection:
        for statement in SQLITE_TABLES:
            connection.execute(statement)
        yield connection


def _change(path: Path, statement: str, *parameters: object) -> None:
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        assert connection.execute(statement, parameters).rowcount != 0


def _head(reader: SqliteReader) -> str:
    return reader.rows(THREAD)[0].id


def _packed_checkpoint(**fields: object) -> bytes:
    packed: bytes = msgpack.packb(fields)
    return packed


def test_text_that_is_not_utf8_is_read_with_what_can_be_read_of_it(database: Path) -> None:
    _change(database, "UPDATE writes SET channel = CAST(x'61ff62' AS TEXT) WHERE idx = 0")
    with closing(SqliteReader(database)) as reader:
        assert "a\ufffdb" in {write.channel for write in reader.writes(THREAD, "")}


def test_a_file_from_before_task_paths_is_read_without_them(database: Path) -> None:
    _change(database, "ALTER TABLE writes DROP COLUMN task_path")
    writes = SqliteReader(database).writes(THREAD, "")
    assert {write.task_path for write in writes} == {None}
    assert [write.channel for write in writes if write.channel == "log"]
    with closing(sqlite3.connect(database)) as connection:
        assert "task_path" not in [column[1] for column in connection.execute("PRAGMA table_info(writes)")]


@pytest.mark.parametrize(("type_", "as_text"), [("json", False), ("Checkpoint", True)])
def test_rows_of_langgraph_js_are_read(
    javascript: sqlite3.Connection, tmp_path: Path, type_: str, as_text: bool
) -> None:
    checkpoint = {
        "v": 4,
        "id": "1f1ecc84-b5d8-6182-8002-02cb0e6a8a3c",
        "ts": "2026-09-01T10:00:00.000Z",
        "channel_values": {"question": "où?", "n": 3},
        "channel_versions": {"question": 2, "n": 2},
        "versions_seen": {"agent": {"__start__": 1}},
    }
    state, metadata, value = json.dumps(checkpoint), json.dumps({"source": "loop", "step": 1}), "3"
    stored_as = str if as_text else str.encode
    javascript.execute(
        "INSERT INTO checkpoints VALUES ('js', '', ?, '', ?, ?, ?)",
        (checkpoint["id"], type_, stored_as(state), stored_as(metadata)),
    )
    javascript.execute(
        "INSERT INTO writes VALUES ('js', '', ?, 'task-1', 0, 'n', ?, ?)", (checkpoint["id"], type_, stored_as(value))
    )
    reader = SqliteReader(tmp_path / "js.sqlite")
    (row,) = reader.rows("js")
    assert (row.parent, row.step, row.source) == (None, 1, "loop")
    (stored,) = reader.stored("js", "", [row.id])
    assert {name: decode(value) for name, value in stored.values.items()} == checkpoint["channel_values"]
    assert (stored.format, stored.ts) == (4, checkpoint["ts"])
    assert stored.channel_versions == checkpoint["channel_versions"]
    assert stored.versions_seen == checkpoint["versions_seen"]
    (write,) = reader.writes("js", "")
    assert (write.task_path, write.value) == (None, Stored(type_, b"3"))


def test_maps_that_a_writer_left_out_are_empty(javascript: sqlite3.Connection, tmp_path: Path) -> None:
    javascript.execute("INSERT INTO checkpoints VALUES ('js', '', 'id-1', NULL, 'json', '{\"v\": 1}', NULL)")
    reader = SqliteReader(tmp_path / "js.sqlite")
    (stored,) = reader.stored("js", "", ["id-1"])
    assert stored.damage is None
    assert (stored.row.metadata, stored.row.metadata_error) == ({}, None)
    assert (stored.values, stored.channel_versions, stored.versions_seen) == ({}, {}, {})


def test_pending_sends_of_old_formats_become_the_channel_they_are_now(database: Path) -> None:
    sends = [{"node": "read", "arg": 1}]
    data = _packed_checkpoint(
        v=1, ts="", id="x", channel_values={"n": 1}, channel_versions={"n": 2}, pending_sends=sends
    )
    reader = SqliteReader(database)
    _change(database, "UPDATE checkpoints SET checkpoint = ? WHERE checkpoint_id = ?", data, _head(reader))
    (stored,) = reader.stored(THREAD, "", [_head(reader)])
    assert stored.format == 1
    assert {name: decode(value) for name, value in stored.values.items()} == {"n": 1, "__pregel_tasks": sends}
    (chosen,) = reader.stored(THREAD, "", [_head(reader)], channels=["n"])
    assert list(chosen.values) == ["n"]


@pytest.mark.parametrize(
    ("type_", "data", "why"),
    [
        ("msgpack", b"\x85\xa1v", "damaged"),
        ("msgpack", b"\x93\x01\x02\x03", "damaged"),
        ("msgpack", b"", "damaged"),
        ("json", b'{"v": 1', "damaged"),
        ("pickle", b"\x80\x04N.", "pickle"),
        ("msgpack+aes", b"\x00" * 64, "LANGGRAPH_AES_KEY"),
    ],
)
def test_a_row_that_cannot_be_read_says_why_and_the_others_are_read(
    database: Path, type_: str, data: bytes, why: str
) -> None:
    reader = SqliteReader(database)
    ids = [row.id for row in reader.rows(THREAD)]
    _change(database, "UPDATE checkpoints SET type = ?, checkpoint = ? WHERE checkpoint_id = ?", type_, data, ids[1])
    found = {stored.row.id: stored for stored in reader.stored(THREAD, "", ids)}
    assert list(found) == ids
    assert why in (found[ids[1]].damage or "")
    assert found[ids[1]].values == {}
    assert all(found[id_].damage is None and found[id_].values for id_ in ids if id_ != ids[1])


def test_one_damaged_value_leaves_the_others_readable(database: Path) -> None:
    data = _packed_checkpoint(v=4, channel_values={"good": [1, 2], "bad": "text"}).replace(b"text", b"t\xffxt")
    reader = SqliteReader(database)
    _change(database, "UPDATE checkpoints SET checkpoint = ? WHERE checkpoint_id = ?", data, _head(reader))
    (stored,) = reader.stored(THREAD, "", [_head(reader)])
    assert stored.damage is None
    assert decode(stored.values["good"]) == [1, 2]


def test_metadata_that_is_no_json_object_is_empty_with_the_reason(database: Path) -> None:
    reader = SqliteReader(database)
    head = _head(reader)
    _change(database, "UPDATE checkpoints SET metadata = ? WHERE checkpoint_id = ?", b"\x80not json", head)
    row, *others = reader.rows(THREAD)
    assert (row.id, row.metadata) == (head, {})
    assert "not JSON" in (row.metadata_error or "")
    assert all(other.metadata_error is None for other in others)


def test_encrypted_rows_are_read_with_the_key_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("Crypto")
    path = tmp_path / "encrypted.sqlite"
    with SqliteSaver.from_conn_string(str(path)) as saver:
        saver.serde = EncryptedSerializer.from_pycryptodome_aes(key=KEY.encode())
        run_case(CATALOG["linear"], saver)
    reader = SqliteReader(path)
    (locked,) = reader.stored(THREAD, "", [_head(reader)])
    assert "LANGGRAPH_AES_KEY" in (locked.damage or "")
    monkeypatch.setenv("LANGGRAPH_AES_KEY", KEY)
    (opened,) = reader.stored(THREAD, "", [_head(reader)])
    assert decode(opened.values["log"]) == ["input", "collect", "decide", "answer"]


def test_the_memory_store_beside_the_checkpoints_is_read_by_prefix(database: Path) -> None:
    with SqliteStore.from_conn_string(str(database)) as store:
        store.setup()
        store.put(("users", "u-1"), "language", {"value": "fr"})
        store.put(("users2",), "language", {"value": "de"})
        store.put(("us*rs",), "language", {"value": "it"})
    reader = SqliteReader(database)
    assert [item.namespace for item in reader.memory()] == [("us*rs",), ("users", "u-1"), ("users2",)]
    (item,) = reader.memory(("users",))
    assert (item.namespace, item.key, item.value) == (("users", "u-1"), "language", {"value": "fr"})
    assert item.created_at is not None
    assert item.created_at.utcoffset() is not None
    assert list(reader.memory(("users", "u-1"))) == [item]
    assert [found.namespace for found in reader.memory(("us*rs",))] == [("us*rs",)]
    assert list(reader.memory(("user",))) == []


def test_many_checkpoints_are_read_in_batches_and_in_the_order_asked(database: Path) -> None:
    with closing(sqlite3.connect(database, isolation_level=None)) as connection:
        connection.execute(
            "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 1203)"
            " INSERT INTO checkpoints SELECT 'many', '', printf('id-%05d', i), printf('id-%05d', i - 1), c.type,"
            " c.checkpoint, c.metadata FROM n JOIN (SELECT * FROM checkpoints LIMIT 1) c"
        )
    reader = SqliteReader(database)
    rows = reader.rows("many")
    ids = [row.id for row in rows]
    assert ids == [f"id-{n:05}" for n in range(1203, 0, -1)]
    assert list(reader.rows("many", metadata=False, ids=ids[:700])) == [
        type(row)(row.thread, row.ns, row.id, row.parent, {}) for row in rows[:700]
    ]
    assert [stored.row.id for stored in reader.stored("many", "", ids[::-1])] == ids[::-1]
