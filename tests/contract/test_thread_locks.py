"""One run of a thread at a time, on SQLite and Postgres."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import psycopg
import pytest

from agentctl.errors import Refused, StoreError
from agentctl.experiments.workflows.thread_locks import Holder, only_run

AT = datetime(2026, 11, 30, 17, 3, 5, tzinfo=UTC)
MARIA = Holder("maria (root@host-1)", "resume", AT)
ZOE = Holder("zoe (root@host-2)", "run", AT)


@pytest.fixture(params=["sqlite", "postgres"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "postgres":
        return str(request.getfixturevalue("fresh_postgres_url"))
    return str(tmp_path / "threads.sqlite")


def test_the_second_is_told_who_is_first_and_since_when(url: str) -> None:
    with only_run(url, "t", MARIA, target="debug::t"):
        with (
            pytest.raises(Refused, match="debug::t is being run by") as refused,
            only_run(url, "t", ZOE, target="debug::t"),
        ):
            pass
        assert "by maria (root@host-1) since 2026-11-30T17:03:05Z (agentctl resume)" in refused.value.message
        assert refused.value.hint == "agentctl show debug::t, once it ended"
        with only_run(url, "another", ZOE, target="debug::another"):
            pass
    with only_run(url, "t", ZOE, target="debug::t"):
        pass


def test_it_is_free_again_after_an_error(url: str) -> None:
    with pytest.raises(KeyError), only_run(url, "t", MARIA, target="t"):
        raise KeyError("inside")
    with only_run(url, "t", ZOE, target="t"):
        pass


def test_names_that_postgres_cannot_hold_are_shortened(fresh_postgres_url: str) -> None:
    long = Holder("müller " + "x" * 80, "resume", AT)
    with (
        only_run(fresh_postgres_url, "t", long, target="t"),
        pytest.raises(Refused, match=r"by m\?ller x+ since 2026-11-30T17:03:05Z"),
        only_run(fresh_postgres_url, "t", ZOE, target="t"),
    ):
        pass


def test_postgres_keeps_no_row_no_table_and_no_snapshot(fresh_postgres_url: str) -> None:
    with only_run(fresh_postgres_url, "t", MARIA, target="t"), psycopg.connect(fresh_postgres_url) as looking:
        tables = looking.execute("SELECT count(*) FROM pg_class WHERE relnamespace = 'public'::regnamespace").fetchone()
        held = looking.execute(
            "SELECT state, backend_xmin, backend_xid FROM pg_stat_activity WHERE application_name LIKE 'agentctl%'"
        ).fetchall()
    assert tables == (0,)
    assert held == [("idle in transaction", None, None)]


def test_a_lock_file_that_was_left_behind_keeps_nobody_out(tmp_path: Path) -> None:
    database = tmp_path / "threads.sqlite"
    with only_run(str(database), "t", MARIA, target="t"):
        (lock,) = tmp_path.iterdir()
        left = lock.read_bytes()
    assert list(tmp_path.iterdir()) == []
    lock.write_bytes(left)
    with only_run(f"sqlite:///{database}", "t", ZOE, target="t"):
        pass
    assert list(tmp_path.iterdir()) == []


def test_two_ways_to_one_file_are_one_lock(tmp_path: Path) -> None:
    (tmp_path / "threads.sqlite").touch()
    (tmp_path / "link.sqlite").symlink_to(tmp_path / "threads.sqlite")
    with (
        only_run(str(tmp_path / "threads.sqlite"), "t", MARIA, target="t"),
        pytest.raises(Refused),
        only_run(str(tmp_path / "link.sqlite"), "t", ZOE, target="t"),
    ):
        pass


def test_a_store_that_cannot_be_locked_says_so(tmp_path: Path) -> None:
    with (
        pytest.raises(StoreError, match="cannot be locked"),
        only_run(str(tmp_path / "none" / "threads.sqlite"), "t", MARIA, target="t"),
    ):
        pass
    with pytest.raises(StoreError), only_run("postgresql://nobody@127.0.0.1:1/x", "t", MARIA, target="t"):
        pass
    with pytest.raises(StoreError, match="cannot run on"), only_run("app.py:saver", "t", MARIA, target="t"):
        pass
