"""Every column of every table with what no saver writes in it: each command names it, or shows all else."""

from __future__ import annotations

from pathlib import Path

import msgpack  # type: ignore[import-untyped]
import pytest

from agentctl.codec.packed import join_map, split_map
from agentctl.testing import run_cli
from tests.support.damage import Rows
from tests.support.fuzzed import FORGED, LOOKING, THREAD, assert_told, damaged_thread

pytestmark = pytest.mark.usefixtures("imports")

COMMANDS = (
    *LOOKING,
    ("size", THREAD, "--by", "message"),
    ("size", "--by", "thread"),
    ("size", THREAD, "--by", "row"),
    ("resolve", f"{THREAD}@call:x"),
    ("prune", THREAD, "--keep-turns", "1"),
    ("prune", "--older-than", "1d", "--delete"),
)
"""All that look, and plans of what takes away."""


def _nested(code: int, depth: int) -> bytes:
    data = b"\x01"
    for _ in range(depth):
        data = msgpack.packb(msgpack.ExtType(code, data))
    return data


def _typed(*parts: object) -> bytes:
    return bytes(msgpack.packb(msgpack.ExtType(5, msgpack.packb(list(parts)))))


PACKED = (
    b"\xdd\xff\xff\xff\xff",
    b"\xdf\xff\xff\xff\xff\xa1a",
    b"\xc6\xff\xff\xff\xff",
    b"\xc9\xff\xff\xff\xff\x05\x93",
    b"\x91" * 600 + b"\x01",
    _nested(7, 3_000),
    _typed(FORGED, "X", {"a": 1})[:-4],
    _typed(1, 2, 3),
    _typed(
        "langchain_core.messages.ai", "AIMessage", {"content": {"a": 1}, "tool_calls": [{"name": None, "id": 5}, 1]}
    ),
    b"",
)


FEW = (("threads",), ("history", THREAD, "--all"), ("doctor", THREAD), ("size", THREAD, "--by", "channel"))


@pytest.mark.parametrize(
    ("table", "column", "value"),
    [
        ("checkpoints", "thread_id", b"t"),
        ("checkpoints", "checkpoint_ns", b"abc"),
        ("checkpoints", "checkpoint_id", b"abc"),
        ("checkpoints", "parent_checkpoint_id", b"abc"),
        ("{writes}", "checkpoint_ns", b"abc"),
        ("{writes}", "checkpoint_id", b"abc"),
        ("{writes}", "task_id", b"abc"),
        ("{writes}", "idx", "first"),
        ("{writes}", "channel", b"abc"),
    ],
)
def test_a_key_that_is_no_text_is_named_by_its_column(sqlite: Rows, table: str, column: str, value: object) -> None:
    with damaged_thread(sqlite):
        found = sqlite.sql(f"SELECT max(rowid) FROM {table}")[0][0]
        sqlite.sql(f"UPDATE {table} SET {column} = ? WHERE rowid = ?", value, found)
        told = [assert_told(sqlite.url, *words) for words in FEW]
        assert any(f"the {column} {value!r}" in said for said in told), told


@pytest.mark.parametrize("column", ["thread_id", "checkpoint_ns", "checkpoint_id"])
def test_a_key_that_is_no_utf_8_is_passed_once(sqlite: Rows, column: str) -> None:
    with damaged_thread(sqlite):
        newest = "WHERE rowid = (SELECT max(rowid) FROM checkpoints)"
        sqlite.sql(f"UPDATE checkpoints SET {column} = CAST(x'ff41' AS TEXT) {newest}")
        for words in (*COMMANDS[3:10], ("size", "--by", "channel"), ("prune", "--older-than", "1d", "--delete")):
            assert_told(sqlite.url, *words)


@pytest.mark.parametrize("column", ["type", "checkpoint", "metadata"])
def test_a_state_of_another_storage_class_is_told(sqlite: Rows, column: str) -> None:
    with damaged_thread(sqlite):
        sqlite.sql(f"UPDATE checkpoints SET {column} = 1.5 WHERE checkpoint_id = ?", sqlite.ids(THREAD)[-1])
        for words in FEW:
            assert_told(sqlite.url, *words)


def test_values_that_declare_more_than_there_is_or_are_nested_without_end_are_told(rows: Rows, tmp_path: Path) -> None:
    values = {f"value {n}": data for n, data in enumerate(PACKED)}
    with damaged_thread(rows):
        newest = rows.ids(THREAD)[-1]
        _write_values(rows, newest, values)
        for words in COMMANDS:
            assert_told(rows.url, *words)
        target = str(tmp_path / "c.sqlite")
        assert_told(rows.url, "copy", THREAD, "--to", target, "--as", "c", "--only", "all", "--dry-run")


def _write_values(rows: Rows, id: str, values: dict[str, bytes]) -> None:
    """Adds channels to a checkpoint, and a pending write to each."""
    where = "thread_id = 't' AND checkpoint_id = ?"
    for n, (channel, data) in enumerate(values.items()):
        columns = "thread_id, checkpoint_ns, checkpoint_id, task_id, idx, channel, type, {value}"
        row = (id, "other task", n, channel, "msgpack", data)
        rows.sql(f"INSERT INTO {{writes}} ({columns}) VALUES ('t', '', ?, ?, ?, ?, ?, ?)", *row)
    if rows.kind == "postgres":
        for channel, data in values.items():
            rows.sql(
                "UPDATE checkpoints SET checkpoint = jsonb_set(checkpoint, ARRAY['channel_versions', ?::text], '\"1\"')"
                f" WHERE {where}",
                channel,
                id,
            )
            rows.sql("INSERT INTO checkpoint_blobs VALUES ('t', '', ?, '1', 'msgpack', ?)", channel, data)
        return
    packed = rows.sql(f"SELECT checkpoint FROM checkpoints WHERE {where}", id)[0][0]
    parts = split_map(packed)
    parts["channel_values"] = join_map(split_map(parts["channel_values"]) | values)
    rows.sql(f"UPDATE checkpoints SET checkpoint = ? WHERE {where}", join_map(parts), id)


_DEEP = "[" * 3_000 + "]" * 3_000


@pytest.mark.parametrize(
    "text", ["null", _DEEP, f'{{"v": [], "channel_values": {_DEEP}}}'], ids=["null", "deep", "odd"]
)
@pytest.mark.parametrize("column", ["checkpoint", "metadata"])
def test_json_of_another_form_or_nested_without_end_is_told(rows: Rows, column: str, text: str) -> None:
    with damaged_thread(rows):
        where = "thread_id = 't' AND checkpoint_id = ?"
        if rows.kind == "sqlite":
            rows.sql(
                f"UPDATE checkpoints SET type = 'json', {column} = ? WHERE {where}", text.encode(), rows.ids("t")[-1]
            )
        else:
            rows.sql(f"UPDATE checkpoints SET {column} = ?::jsonb WHERE {where}", text, rows.ids("t")[-1])
        for words in FEW:
            assert_told(rows.url, *words)


@pytest.mark.parametrize("state", [b"{", b"\xff\xfe"], ids=repr)
def test_a_blob_of_json_that_is_none_is_refused_by_its_channel_on_its_way_into_a_file(
    postgres: Rows, state: bytes, tmp_path: Path
) -> None:
    with damaged_thread(postgres):
        postgres.sql("UPDATE checkpoint_blobs SET type = 'json', blob = ?", state)
        target = tmp_path / "copy.sqlite"
        copied = run_cli("copy", THREAD, "--store", postgres.url, "--to", target, "--as", "c", "--only", "all")
        assert (copied.code, "channel" in copied.err) == (5, True), copied.err
        assert not target.exists()
