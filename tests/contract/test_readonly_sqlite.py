"""Looking at a SQLite file changes nothing, whoever else has it open, and sees exactly what is committed."""

from __future__ import annotations

import hashlib
import os
import pwd
import shutil
import sqlite3
import tempfile
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from agentctl.errors import StoreError
from agentctl.stores.open import open_reader
from agentctl.stores.sqlite.opening import SqliteFile, way_to_open
from agentctl.stores.sqlite.reader import SqliteReader
from tests.catalog import CATALOG, sqlite_thread
from tests.support.sqlite_process import SqlProcess

THREAD = CATALOG["linear"].thread


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return sqlite_thread(tmp_path_factory.mktemp("template"), CATALOG["linear"])


@pytest.fixture
def database(tmp_path: Path, template: Path) -> Path:
    """A WAL file at rest, alone in its folder, holding one real thread."""
    folder = tmp_path / "app"
    folder.mkdir()
    return Path(shutil.copy(template, folder / "app.sqlite"))


@pytest.fixture(autouse=True)
def temporary_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Where temporary copies go; it is empty again when a test ends."""
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    yield folder
    assert list(folder.iterdir()) == []


def _insert(thread: str, *, n_bytes: int = 100) -> str:
    """Returns SQL that adds a checkpoint to the tables as they are."""
    return (
        "INSERT INTO checkpoints SELECT "
        f"'{thread}', checkpoint_ns, checkpoint_id, NULL, type, zeroblob({n_bytes}), metadata"
        f" FROM checkpoints WHERE thread_id = '{THREAD}' AND checkpoint_ns = '' ORDER BY checkpoint_id DESC LIMIT 1"
    )


def _to_rollback(database: Path) -> None:
    with closing(sqlite3.connect(database)) as connection:
        assert connection.execute("PRAGMA journal_mode=DELETE").fetchone() == ("delete",)


def _folder(database: Path) -> dict[str, tuple[str, int]]:
    """Returns what the folder holds; of -shm, which readers lock bytes of, only that it is there."""
    return {
        path.name: ("", 0)
        if path.name.endswith("-shm")
        else (hashlib.sha256(path.read_bytes()).hexdigest(), path.stat().st_mtime_ns)
        for path in database.parent.iterdir()
    }


def _look(database: Path) -> list[str]:
    """Calls every method of a fresh reader and returns the threads it saw, sorted."""
    reader = SqliteReader(database)
    try:
        threads = sorted(head.thread for head in reader.heads())
        for thread in threads:
            for ns in reader.namespaces(thread):
                ids = [row.id for row in reader.rows(thread, ns)]
                assert len(list(reader.stored(thread, ns, ids))) == len(ids)
                assert [row.id for row in reader.rows(thread, ns, metadata=False)] == ids
                reader.writes(thread, ns)
        reader.find_run("no such run")
        reader.memory()
    finally:
        reader.close()
    return threads


def _look_twice(database: Path) -> list[str]:
    """Looks twice and asserts that neither time left a trace."""
    before = _folder(database)
    threads = _look(database)
    assert _folder(database) == before
    assert _look(database) == threads
    assert _folder(database) == before
    return threads


def test_a_wal_file_at_rest_stays_alone_in_its_folder(database: Path) -> None:
    assert way_to_open(database) == "immutable"
    assert _look_twice(database) == [THREAD]
    assert [path.name for path in database.parent.iterdir()] == [database.name]


def test_a_rollback_file_at_rest_keeps_its_mode(database: Path) -> None:
    _to_rollback(database)
    assert way_to_open(database) == "read_only"
    assert _look_twice(database) == [THREAD]
    assert database.read_bytes()[18:20] == b"\x01\x01"


def test_a_live_wal_writer_is_read_to_its_last_commit_and_goes_on(database: Path) -> None:
    with SqlProcess(database) as writer:
        writer.run(_insert("t-in-wal"))
        assert way_to_open(database) == "read_only"
        assert _look_twice(database) == ["t-in-wal", THREAD]
        writer.run("BEGIN IMMEDIATE", _insert("t-uncommitted"))
        assert _look_twice(database) == ["t-in-wal", THREAD]
        writer.run("COMMIT", _insert("t-later"))
        assert _look_twice(database) == ["t-in-wal", "t-later", THREAD, "t-uncommitted"]
    assert [path.name for path in database.parent.iterdir()] == [database.name]


def test_what_a_killed_wal_writer_committed_is_read(database: Path) -> None:
    with SqlProcess(database) as writer:
        writer.run(_insert("t-in-wal"), "BEGIN IMMEDIATE", _insert("t-uncommitted"))
        writer.kill()
    assert _look_twice(database) == ["t-in-wal", THREAD]


def test_a_wal_that_lost_its_shm_is_read_from_a_copy(database: Path) -> None:
    with SqlProcess(database) as writer:
        writer.run(_insert("t-in-wal"))
        writer.kill()
    database.with_name(f"{database.name}-shm").unlink()
    assert way_to_open(database) == "copy"
    assert _look_twice(database) == ["t-in-wal", THREAD]


def test_a_copy_is_made_again_when_the_file_changes(database: Path) -> None:
    with SqlProcess(database) as writer:
        writer.run("PRAGMA locking_mode=EXCLUSIVE", _insert("t-1"))
        assert not database.with_name(f"{database.name}-shm").exists()
        with closing(SqliteReader(database)) as reader:
            assert len(reader.heads()) == 2
            writer.run(_insert("t-2"))
            assert len(reader.heads()) == 3


def test_an_empty_wal_without_shm_needs_no_copy(database: Path) -> None:
    database.with_name(f"{database.name}-wal").touch()
    assert way_to_open(database) == "immutable"
    assert _look_twice(database) == [THREAD]


def test_a_live_rollback_writer_is_read_at_its_last_commit_and_can_commit(database: Path) -> None:
    _to_rollback(database)
    with SqlProcess(database) as writer:
        writer.run("BEGIN IMMEDIATE", _insert("t-uncommitted"))
        assert database.with_name(f"{database.name}-journal").exists()
        assert _look_twice(database) == [THREAD]
        writer.run("COMMIT")
        assert _look_twice(database) == [THREAD, "t-uncommitted"]


def test_a_hot_journal_is_rolled_back_in_a_copy_only(database: Path) -> None:
    _to_rollback(database)
    n_committed_bytes = database.stat().st_size
    with SqlProcess(database) as writer:
        writer.run("PRAGMA cache_size=1", "BEGIN IMMEDIATE")
        writer.run(*[_insert(f"t-{n}", n_bytes=20_000) for n in range(20)])
        writer.kill()
    journal = database.with_name(f"{database.name}-journal")
    assert journal.stat().st_size > 0
    assert database.stat().st_size > n_committed_bytes, "nothing uncommitted was spilled into the file"
    with closing(sqlite3.connect(f"{database.as_uri()}?mode=ro", uri=True)) as plain, pytest.raises(sqlite3.Error):
        plain.execute("SELECT 1 FROM checkpoints")
    assert _look_twice(database) == [THREAD]
    assert journal.stat().st_size > 0


def test_reads_beside_a_writer_that_comes_and_goes_see_whole_transactions(database: Path) -> None:
    reader = SqliteReader(database)
    seen = set()
    for n in range(12):
        with SqlProcess(database) as writer:
            writer.run("BEGIN IMMEDIATE", _insert(f"a-{n}", n_bytes=5000), _insert(f"b-{n}", n_bytes=5000))
            seen.add(len(reader.heads()))
            writer.run("COMMIT")
            seen.add(len(reader.heads()))
    assert all(n % 2 == 1 for n in seen)
    assert len(reader.heads()) == 25
    reader.close()
    assert [path.name for path in database.parent.iterdir()] == [database.name]


def test_a_writer_that_runs_during_an_immutable_read_makes_it_run_again(database: Path) -> None:
    file = SqliteFile(database)
    results = []

    def count(connection: sqlite3.Connection) -> int:
        first = connection.execute("SELECT COUNT(*) FROM checkpoints").fetchone()[0]
        if not results:
            with SqlProcess(database) as writer:
                writer.run(_insert("t-meanwhile", n_bytes=50_000))
        results.append(first)
        return int(first)

    assert file.read(count) == results[0] + 1
    assert len(results) == 2
    assert [path.name for path in database.parent.iterdir()] == [database.name]


def _look_as_nobody(database: Path) -> str:
    """Looks in a forked child that, started by root, has become `nobody`; returns what it saw, or its error."""
    read_end, write_end = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            if os.geteuid() == 0:
                nobody = pwd.getpwnam("nobody")
                os.setgroups([])
                os.setgid(nobody.pw_gid)
                os.setuid(nobody.pw_uid)
            answer = str(_look(database))
        except BaseException as error:
            answer = repr(error)
        os.write(write_end, answer.encode())
        os._exit(0)
    os.close(write_end)
    with os.fdopen(read_end) as pipe:
        answer = pipe.read()
    os.waitpid(child, 0)
    return answer


@pytest.mark.parametrize("is_wal", [True, False])
def test_a_folder_that_cannot_be_written_is_read(template: Path, is_wal: bool) -> None:
    with tempfile.TemporaryDirectory(dir="/tmp") as open_folder:  # pytest's own folders are closed to other users
        database = Path(shutil.copy(template, open_folder))
        if not is_wal:
            _to_rollback(database)
        before = _folder(database)
        database.chmod(0o444)
        database.parent.chmod(0o555)
        try:
            assert _look_as_nobody(database) == str([THREAD])
            assert _folder(database) == before
        finally:
            database.parent.chmod(0o755)


def test_a_writers_exclusive_lock_is_an_error_with_a_hint(database: Path) -> None:
    _to_rollback(database)
    with SqlProcess(database) as writer:
        writer.run("BEGIN EXCLUSIVE")
        file = SqliteFile(database, busy_timeout_s=0.01)
        with pytest.raises(StoreError, match="locked by a writer") as caught:
            file.read(lambda connection: connection.execute("SELECT 1 FROM checkpoints").fetchall())
        assert caught.value.exit_code == 4
        assert caught.value.hint


def test_a_missing_file_is_an_error_and_creates_nothing(database: Path) -> None:
    with pytest.raises(StoreError, match=r"no such file: .*ap\.sqlite") as caught:
        open_reader(str(database.with_name("ap.sqlite")))
    assert caught.value.exit_code == 4
    assert str(database) in (caught.value.hint or "")
    assert [path.name for path in database.parent.iterdir()] == [database.name]


def test_a_file_that_vanishes_while_it_is_open_is_an_error_and_creates_nothing(database: Path) -> None:
    reader = SqliteReader(database)
    database.unlink()
    with pytest.raises(StoreError, match="no such file"):
        reader.heads()
    assert list(database.parent.iterdir()) == []


@pytest.mark.parametrize(
    ("content", "message"),
    [(b"", "no table checkpoints"), (b"PK\x03\x04 something else entirely", "not a SQLite database")],
)
def test_a_file_that_is_no_checkpoint_database_is_an_error_and_stays_as_it_is(
    tmp_path: Path, content: bytes, message: str
) -> None:
    path = tmp_path / "file.db"
    path.write_bytes(content)
    with pytest.raises(StoreError, match=message) as caught:
        open_reader(str(path))
    assert caught.value.hint
    assert path.read_bytes() == content
    assert sorted(found.name for found in tmp_path.iterdir()) == ["file.db", "temporary"]


def test_a_database_of_something_else_is_refused_naming_its_tables(tmp_path: Path) -> None:
    path = tmp_path / "other.db"
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE invoices (id TEXT)")
    with pytest.raises(StoreError, match="no LangGraph checkpoints") as caught:
        open_reader(str(path))
    assert "invoices" in (caught.value.hint or "")


def test_a_layout_without_checkpoint_ids_is_refused_naming_the_columns(tmp_path: Path) -> None:
    path = tmp_path / "old.db"
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE checkpoints (thread_id TEXT, thread_ts TEXT, checkpoint BLOB, metadata BLOB)")
    with pytest.raises(StoreError, match="lacks checkpoint_id, checkpoint_ns, parent_checkpoint_id, type"):
        open_reader(str(path))


def test_a_folder_is_refused_naming_a_database_in_it(database: Path) -> None:
    with pytest.raises(StoreError, match="is a folder") as caught:
        open_reader(str(database.parent))
    assert str(database) in (caught.value.hint or "")


def test_a_damaged_file_is_an_error_with_a_hint(database: Path) -> None:
    content = bytearray(database.read_bytes())
    content[100 : 100 + 3000] = b"\xff" * 3000
    database.write_bytes(content)
    with pytest.raises(StoreError, match="is damaged") as caught:
        open_reader(str(database)).heads()
    assert "integrity_check" in (caught.value.hint or "")


def test_a_link_is_followed_to_where_the_wal_lies(database: Path, tmp_path: Path) -> None:
    link = tmp_path / "link.sqlite"
    link.symlink_to(database)
    with SqlProcess(database) as writer:
        writer.run(_insert("t-in-wal"))
        assert _look(link) == ["t-in-wal", THREAD]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["app", "link.sqlite", "temporary"]


def test_names_with_special_characters_are_opened(database: Path) -> None:
    odd = database.rename(database.with_name("what? 100% #1 'é'.sqlite"))
    assert _look_twice(odd) == [THREAD]


def test_a_file_in_no_folder_names_the_next_command(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="no such file") as raised:
        open_reader(str(tmp_path / "nowhere" / "debug.sqlite"))
    assert "agentctl config show" in str(raised.value.hint)
    assert not (tmp_path / "nowhere").exists()
