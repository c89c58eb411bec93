"""Rows that were forged to run code: looked at, and given to a run."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path

import ormsgpack
import psycopg
import pytest

from agentctl.codec.packed import join_map, split_map
from agentctl.testing import run_cli
from tests.support.small_graph import graph_file, small_thread

FORGED = {
    "function": (0, ["os", "system", "touch pwned"]),
    "class": (0, ["subprocess", "Popen", ["touch", "pwned"]]),
    "keywords": (2, ["subprocess", "run", {"args": ["touch", "pwned"]}]),
    "module": (0, ["planted", "Value", "x"]),
    "inside": (0, ["builtins", "set", [1, ormsgpack.Ext(0, ormsgpack.packb(["os", "system", "touch pwned"]))]]),
}


def forged(name: str) -> bytes:
    code, parts = FORGED[name]
    return ormsgpack.packb(ormsgpack.Ext(code, ormsgpack.packb(parts)))


def forge_sqlite(store: Path, value: bytes) -> None:
    """Puts a value into the channel `note` of every checkpoint that has one."""
    with sqlite3.connect(store) as connection:
        for row, data in connection.execute("SELECT rowid, checkpoint FROM checkpoints").fetchall():
            whole = split_map(data)
            channels = split_map(whole["channel_values"])
            if "note" in channels:
                whole["channel_values"] = join_map({**channels, "note": value})
                connection.execute("UPDATE checkpoints SET checkpoint = ? WHERE rowid = ?", (join_map(whole), row))
    connection.close()


def forge_postgres(url: str, value: bytes) -> None:
    """Puts a value into the channel `note` of every checkpoint that has one, as a blob in place of what stood there."""
    with psycopg.connect(url) as connection:
        connection.execute(
            "INSERT INTO checkpoint_blobs (thread_id, checkpoint_ns, channel, version, type, blob)"
            " SELECT DISTINCT thread_id, checkpoint_ns, 'note', checkpoint #>> '{channel_versions,note}', 'msgpack', %b"
            " FROM checkpoints WHERE checkpoint #> '{channel_versions,note}' IS NOT NULL"
            " ON CONFLICT (thread_id, checkpoint_ns, channel, version)"
            " DO UPDATE SET type = 'msgpack', blob = excluded.blob",
            (value,),
        )
        connection.execute("UPDATE checkpoints SET checkpoint = checkpoint #- '{channel_values,note}'")


def store_of(kind: str, folder: Path, postgres_url: str, value: bytes) -> str:
    """Returns a store with the small thread `t`, its notes forged."""
    store = small_thread(folder)
    if kind == "sqlite":
        forge_sqlite(Path(store), value)
        return str(store)
    copied = run_cli("copy", "t", "--only", "all", "--store", store, "--to", postgres_url, "--as", "t", cwd=folder)
    assert copied.code == 0, copied.err
    forge_postgres(postgres_url, value)
    return postgres_url


@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
@pytest.mark.parametrize("name", FORGED)
def test_a_forged_row_is_shown_and_never_given_to_a_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fresh_postgres_url: str, name: str, kind: str
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "planted.py").write_text("from pathlib import Path\nPath('pwned').touch()\nValue = str\n")
    store = store_of(kind, tmp_path, fresh_postgres_url, forged(name))
    seen = run_cli("show", "t", "--channel", "note", "--json", "--store", store, cwd=tmp_path)
    assert seen.code == 0 and "$type" in json.dumps(seen.json["value"])
    for words in (("replay", "t@head~1"), ("fork", "t@head~1", "--set", 'other="x"')):
        refused = run_cli(*words, "--store", store, "--graph", graph_file(tmp_path), cwd=tmp_path)
        assert refused.code == 5, refused.err
        assert ("loading it would call it" in refused.err) != ("a row does not say what is imported" in refused.err)
    assert not (tmp_path / "pwned").exists()
