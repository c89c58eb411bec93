"""A file that was made for a copy goes with it where the copy fails, unless somebody else uses it by then."""

from __future__ import annotations

import sqlite3
from contextlib import ExitStack, closing
from pathlib import Path

import pytest

from agentctl.stores.sqlite.writer import SqliteWriter

_ROW = ("", "1", None, "msgpack", b"\x80", b"{}")


class _Failed(Exception):
    """What ends a copy."""


def _fail(path: Path) -> None:
    with closing(SqliteWriter(path)) as writer, pytest.raises(_Failed), writer.first_transaction() as transaction:
        transaction.insert_checkpoints("c", [_ROW])
        raise _Failed


def test_a_file_that_a_failed_copy_made_is_gone(tmp_path: Path) -> None:
    _fail(tmp_path / "copy.sqlite")

    assert list(tmp_path.iterdir()) == []


def test_a_file_that_was_there_stays_though_it_is_empty(tmp_path: Path) -> None:
    path = tmp_path / "copy.sqlite"
    with closing(SqliteWriter(path)) as writer:
        writer.setup()
    _fail(path)

    assert path.exists()


def test_a_file_that_somebody_else_has_open_by_then_stays_and_can_be_written(tmp_path: Path) -> None:
    path = tmp_path / "copy.sqlite"
    writer = SqliteWriter(path)
    with ExitStack() as opened:
        with pytest.raises(_Failed), writer.first_transaction() as transaction:
            transaction.insert_checkpoints("c", [_ROW])
            other = opened.enter_context(closing(sqlite3.connect(path, isolation_level=None)))
            assert other.execute("SELECT count(*) FROM checkpoints").fetchone() == (0,)
            raise _Failed
        other.execute("INSERT INTO checkpoints (thread_id, checkpoint_id) VALUES ('t', '1')")

    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)
        assert connection.execute("SELECT thread_id FROM checkpoints").fetchall() == [("t",)]
