"""A file whose writer has ended, read on one connection."""

from __future__ import annotations

import shutil
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from agentctl.errors import StoreError
from agentctl.stores.sqlite.held import held


def _count(connection: sqlite3.Connection) -> Any:
    return connection.execute("SELECT count(*) FROM t").fetchone()[0]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A WAL file at rest with one row."""
    path = tmp_path / "runs" / "runs.sqlite"
    path.parent.mkdir()
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("CREATE TABLE t (x TEXT)")
        connection.execute("INSERT INTO t VALUES ('a')")
    return path


def test_many_reads_are_made_on_one_connection_and_leave_the_folder_as_it_was(path: Path) -> None:
    before = path.read_bytes()
    with held(path) as file:
        connections = {file.read(id), file.read(id)}
        assert file.read(_count) == 1

    assert len(connections) == 1
    assert path.read_bytes() == before
    assert [found.name for found in path.parent.iterdir()] == [path.name]


def test_what_a_killed_writer_committed_is_seen_and_its_files_are_left_as_they_are(path: Path, tmp_path: Path) -> None:
    killed = tmp_path / "killed"
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("INSERT INTO t VALUES ('b')")
        shutil.copytree(path.parent, killed)
    before = {found.name: found.read_bytes() for found in killed.iterdir()}

    with held(killed / path.name) as file:
        assert file.read(_count) == 2

    assert before.keys() == {path.name, f"{path.name}-wal", f"{path.name}-shm"}
    assert {found.name: found.read_bytes() for found in killed.iterdir()} == before


def test_a_file_in_rollback_mode_is_read_too(path: Path) -> None:
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA journal_mode = DELETE")

    with held(path) as file:
        assert file.read(_count) == 1


def test_text_that_is_no_utf_8_is_read_with_marks_for_it(path: Path) -> None:
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("INSERT INTO t VALUES (CAST(x'66ff' AS TEXT))")

    with held(path) as file:
        found = file.read(lambda connection: connection.execute("SELECT x FROM t").fetchall())

    assert [text[:1] for (text,) in found] == ["a", "f"]


def test_nothing_can_be_written_through_it(path: Path) -> None:
    with held(path) as file, pytest.raises(StoreError, match="readonly"):
        file.read(lambda connection: connection.execute("INSERT INTO t VALUES ('b')"))


def test_a_damaged_file_is_named(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:100] + b"\xff" * 8092)

    with pytest.raises(StoreError, match=str(path)), held(path) as file:
        file.read(_count)
