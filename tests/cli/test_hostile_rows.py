"""Rows that were forged to run code: looked at, and given to a run."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path

import ormsgpack
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


def forge(store: Path, name: str) -> None:
    """Puts a forged value into the channel `note` of every checkpoint that has one."""
    code, parts = FORGED[name]
    value = ormsgpack.packb(ormsgpack.Ext(code, ormsgpack.packb(parts)))
    with sqlite3.connect(store) as connection:
        for row, data in connection.execute("SELECT rowid, checkpoint FROM checkpoints").fetchall():
            whole = split_map(data)
            channels = split_map(whole["channel_values"])
            if "note" in channels:
                whole["channel_values"] = join_map({**channels, "note": value})
                connection.execute("UPDATE checkpoints SET checkpoint = ? WHERE rowid = ?", (join_map(whole), row))
    connection.close()


@pytest.mark.parametrize("name", FORGED)
def test_a_forged_row_is_shown_and_never_given_to_a_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "planted.py").write_text("from pathlib import Path\nPath('pwned').touch()\nValue = str\n")
    store = small_thread(tmp_path)
    forge(store, name)
    seen = run_cli("show", "t", "--channel", "note", "--json", "--store", store, cwd=tmp_path)
    assert seen.code == 0 and "$type" in json.dumps(seen.json["value"])
    for words in (("replay", "t@head~1"), ("fork", "t@head~1", "--set", 'other="x"')):
        refused = run_cli(*words, "--store", store, "--graph", graph_file(tmp_path), cwd=tmp_path)
        assert refused.code == 5, refused.err
        assert ("loading it would call it" in refused.err) != ("a row does not say what is imported" in refused.err)
    assert not (tmp_path / "pwned").exists()
