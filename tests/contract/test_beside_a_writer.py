"""Commands beside an application that writes: they finish, see states that were, and keep nobody waiting.

The application is a real graph. It writes in a process of its own, or in this one a super-step at each read that
agentctl makes of the store, which is the worst that a writer can do to it.
"""

from __future__ import annotations

import fcntl
import io
import os
import sqlite3
import subprocess
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import psycopg
import pytest
from langgraph.graph import START, StateGraph
from langgraph.types import Command, interrupt
from typing_extensions import TypedDict

from agentctl.cli.env import Env
from agentctl.cli.main import main
from agentctl.stores.open import open_reader
from agentctl.stores.postgres.opening import PostgresDatabase
from agentctl.stores.postgres.reader import PostgresReader
from agentctl.stores.postgres.snapshots import Snapshot
from agentctl.stores.sqlite.opening import SqliteFile
from agentctl.stores.sqlite.reader import SqliteReader
from agentctl.testing import CliResult, run_cli
from tests.support.postgres import EmptyDatabases
from tests.support.processes import MODULE
from tests.support.sqlite_process import SqlProcess
from tests.support.stored import is_postgres
from tests.support.stores import saver_at
from tests.support.writing import N_STEPS, THREAD, Writer, late_puts, steps, writing

STORES = ("sqlite wal", "sqlite rollback", "postgres")
LOOKING: tuple[tuple[str, ...], ...] = (
    ("history", THREAD, "--all"),
    ("threads",),
    ("show", THREAD),
    ("show", THREAD, "--messages"),
    ("resolve", f"{THREAD}@before:agent"),
    ("diff", f"{THREAD}@root", THREAD),
    ("size", THREAD, "--by", "channel"),
    ("doctor", THREAD),
    ("doctor", "--all"),
    ("export", THREAD, "--dataset", "live", "--check", "reply contains done"),
)
Keys = dict[str, set[tuple[Any, ...]]]
_ASKED: Any = {"configurable": {"thread_id": "asked"}}
_KEY = "checkpoint_ns, checkpoint_id"


class _Log(TypedDict):
    log: list[str]


@contextmanager
def _store(kind: str, folder: Path, databases: EmptyDatabases) -> Iterator[str]:
    """Gives the address of a store that is set up and holds two turns."""
    if kind == "postgres":
        with databases.lend() as url:
            _fill(url)
            yield url
        return
    url = str(folder / f"{kind.replace(' ', '-')}.sqlite")
    _fill(url)
    if kind == "sqlite rollback":
        with closing(sqlite3.connect(url)) as connection:
            assert connection.execute("PRAGMA journal_mode=DELETE").fetchone() == ("delete",)
    yield url


def _fill(url: str) -> None:
    with saver_at(url) as saver:
        saver.setup()
        with closing(steps(saver)) as turn:
            for _ in range(2 * N_STEPS):
                next(turn)


@pytest.fixture(scope="module", params=STORES)
def writer(
    request: pytest.FixtureRequest, empty_databases: EmptyDatabases, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Writer]:
    """A process that writes all the while; in the end none of its statements has failed or waited in vain."""
    folder = tmp_path_factory.mktemp("live")
    with _store(request.param, folder, empty_databases) as url:
        with writing(url, folder) as writer:
            yield writer
        assert writer.failures() == []
        if request.param == "sqlite rollback":
            assert Path(url).read_bytes()[18:20] == b"\x01\x01"


@contextmanager
def _each_read_meets_a_step(url: str, *, late: bool = False) -> Iterator[list[int]]:
    """Lets an application write a super-step before each read of its store, for three turns.

    Args:
        url: The store.
        late: A checkpoint is stored after the writes that belong to it, as without durability "sync" it may be.

    Yields:
        A list with an item for each step that was written.
    """
    written: list[int] = []
    with saver_at(url) as saver, closing(steps(late_puts(saver) if late else saver)) as turn:

        def stepping(read: Callable[..., Any]) -> Callable[..., Any]:
            def stepped(self: Any, work: Any) -> Any:
                if len(written) < 3 * N_STEPS and url.endswith(str(getattr(self, "path", url))):
                    written.append(1)
                    next(turn)
                return read(self, work)

            return stepped

        with pytest.MonkeyPatch.context() as patched:
            for kind in (SqliteFile, PostgresDatabase, Snapshot):
                patched.setattr(kind, "read", stepping(kind.read))
            yield written


def _asks_twice(saver: Any) -> Any:
    """A graph with a node that asks two questions, the second in the place of the first."""

    def ask(state: Any) -> dict[str, list[str]]:
        return {"log": [interrupt("first?"), interrupt("second?")]}

    graph = StateGraph(_Log)
    graph.add_node("ask", ask)
    graph.add_edge(START, "ask")
    return graph.compile(checkpointer=saver)


@contextmanager
def _once_still(happens: Callable[[], object], n_times: int = 1) -> Iterator[list[int]]:
    """Lets something happen whenever a command has begun to look at a store as it stands at one moment.

    Yields:
        A list with an item for each such moment.
    """
    moments: list[int] = []

    def disturbed(still: Any) -> Any:
        @contextmanager
        def begun(self: Any, threads: Any) -> Iterator[Any]:
            with still(self, threads) as reader:
                if reader is not self:
                    moments.append(1)
                    if len(moments) <= n_times:
                        happens()
                yield reader

        return begun

    with pytest.MonkeyPatch.context() as patched:
        for kind in (SqliteReader, PostgresReader):
            patched.setattr(kind, "still", disturbed(kind.still))
        yield moments


def _written(url: str, thread: str) -> list[tuple[Any, ...]]:
    """Returns the writes of a thread with their values."""
    with closing(open_reader(url)) as reader:
        return [tuple(write._replace(n_bytes=0)) for write in reader.writes(thread, "")]


def _cli(writer: Writer | str, *words: str, cwd: Path) -> CliResult:
    url = writer if isinstance(writer, str) else writer.url
    return run_cli(*words, "--store", url, cwd=cwd, environ={})


@pytest.mark.parametrize("words", LOOKING, ids=" ".join)
def test_a_command_finishes_while_the_thread_is_written(writer: Writer, words: tuple[str, ...], tmp_path: Path) -> None:
    done = _cli(writer, *words, cwd=tmp_path)
    writer.goes_on(1)

    assert done.code == 0, done.err
    assert done.out or words[0] == "doctor"


@pytest.mark.parametrize("scope", ["lineage", "all", "point"])
def test_a_copy_of_a_thread_that_is_written_is_a_state_that_was(writer: Writer, scope: str, tmp_path: Path) -> None:
    target = str(tmp_path / "copy.sqlite")
    done = _cli(writer, "copy", THREAD, "--only", scope, "--to", target, "--as", "c", cwd=tmp_path)

    assert done.code == 0, done.err
    _assert_was_once(writer.url, target, is_whole=scope != "point")
    assert _cli(target, "doctor", "c", cwd=tmp_path).code == 0


@pytest.mark.parametrize("kind", ["sqlite wal", "postgres"])
@pytest.mark.parametrize("into", ["the same store", "sqlite", "postgres"])
def test_a_copy_is_of_one_moment_though_each_of_its_reads_meets_a_new_step(
    kind: str, into: str, tmp_path: Path, empty_databases: EmptyDatabases
) -> None:
    with _store(kind, tmp_path, empty_databases) as url, empty_databases.lend() as other:
        target = {"the same store": url, "sqlite": str(tmp_path / "copy.sqlite"), "postgres": other}[into]
        with _each_read_meets_a_step(url) as written:
            done = _cli(url, "copy", THREAD, "--only", "all", "--to", target, "--as", "c", cwd=tmp_path)

        assert done.code == 0, done.err
        assert len(written) >= N_STEPS // 2
        _assert_was_once(url, target, is_whole=True)


@pytest.mark.parametrize(
    ("kind", "into", "mask"),
    [
        ("sqlite wal", "the same store", ()),
        ("sqlite wal", "sqlite", ()),
        ("sqlite wal", "postgres", ()),
        ("sqlite wal", "sqlite", ("--mask",)),
        ("sqlite rollback", "the same store", ("--mask",)),
        ("postgres", "sqlite", ()),
        ("postgres", "postgres", ()),
    ],
)
def test_a_copy_of_a_question_that_is_answered_meanwhile_holds_no_answer_of_another_moment(
    kind: str, into: str, mask: tuple[str, ...], tmp_path: Path, empty_databases: EmptyDatabases
) -> None:
    with _store(kind, tmp_path, empty_databases) as url, empty_databases.lend() as other, saver_at(url) as saver:
        target = {"the same store": url, "sqlite": str(tmp_path / "copy.sqlite"), "postgres": other}[into]
        graph = _asks_twice(saver)
        graph.invoke({"log": []}, _ASKED, durability="sync")
        before = _written(url, "asked")
        with _once_still(lambda: graph.invoke(Command(resume="first"), _ASKED, durability="sync")) as moments:
            done = _cli(url, "copy", "asked", "--only", "all", "--to", target, "--as", "c", *mask, cwd=tmp_path)
        after = _written(url, "asked")

        assert done.code == 0, done.err
        assert before != after and _written(target, "c") in (before, after)
        assert len(moments) == (1 if kind == "postgres" else 2)


def test_a_thread_that_never_stays_as_it_was_is_not_copied(tmp_path: Path, empty_databases: EmptyDatabases) -> None:
    target = tmp_path / "copy.sqlite"
    with _store("sqlite wal", tmp_path, empty_databases) as url, saver_at(url) as saver:
        _asks_twice(saver).invoke({"log": []}, _ASKED, durability="sync")
        head = saver.get_tuple(_ASKED)
        task, channel, value = head.pending_writes[-1]
        with _once_still(lambda: saver.put_writes(head.config, [(channel, value)], task), n_times=9) as moments:
            done = _cli(url, "copy", "asked", "--to", str(target), cwd=tmp_path)

    assert (done.code, done.out, len(moments)) == (4, "", 3)
    assert "written anew" in done.err and "hint: run the command again" in done.err
    assert list(tmp_path.glob("copy*")) == []


@pytest.mark.parametrize("kind", ["sqlite wal", "postgres"])
@pytest.mark.parametrize("late", [False, True], ids=["in order", "checkpoints after their writes"])
def test_doctor_takes_nothing_for_a_fault_that_is_only_being_written(
    kind: str, late: bool, tmp_path: Path, empty_databases: EmptyDatabases
) -> None:
    with _store(kind, tmp_path, empty_databases) as url, _each_read_meets_a_step(url, late=late) as written:
        done = _cli(url, "doctor", THREAD, cwd=tmp_path)

    assert (done.code, done.rows) == (0, []), done.err
    assert len(written) > N_STEPS


@pytest.mark.parametrize("kind", STORES)
@pytest.mark.parametrize("words", [*LOOKING[:1], *LOOKING[7:9]], ids=" ".join)
@pytest.mark.parametrize("as_json", [False, True], ids=["", "json"])
def test_while_a_pager_waits_nothing_of_the_store_is_held(
    kind: str, words: tuple[str, ...], as_json: bool, tmp_path: Path, empty_databases: EmptyDatabases
) -> None:
    with _store(kind, tmp_path, empty_databases) as url, _would_wait_for(url) as nobody_waits:
        pager = _Pager(nobody_waits)
        code = _paged([*words, "--store", url, *(["--json"] if as_json else [])], pager, tmp_path)

        assert code == 0
        assert pager.n_parts > (0 if words[0] == "doctor" and not as_json else 1) - as_json


def test_a_process_whose_output_nobody_reads_lets_the_application_write(writer: Writer, tmp_path: Path) -> None:
    read_end, write_end = os.pipe()
    fcntl.fcntl(write_end, fcntl.F_SETPIPE_SZ, 4096)
    command = [*MODULE, "history", THREAD, "--all", "--store", writer.url]
    with os.fdopen(read_end, "rb") as unread:
        child = subprocess.Popen(command, stdout=write_end, stderr=subprocess.PIPE, cwd=tmp_path)
        os.close(write_end)
        assert unread.read(1)  # it prints, and goes no further than the pipe is long
        writer.goes_on(2)
        assert child.poll() is None
    _, error = child.communicate()
    assert (child.returncode, error) == (141, b"")


def _keys(url: str, thread: str) -> tuple[Keys, Keys]:
    """Returns the ids of checkpoints by namespace, and the tasks' writes by checkpoint."""
    writes = "checkpoint_writes" if is_postgres(url) else "writes"
    mark = "%s" if is_postgres(url) else "?"
    checkpoints: Keys = {}
    tasks: Keys = {}
    with closing(psycopg.connect(url) if is_postgres(url) else sqlite3.connect(url)) as connection:
        cursor: Any = connection.cursor()
        cursor.execute(f"SELECT {_KEY}, parent_checkpoint_id FROM checkpoints WHERE thread_id = {mark}", (thread,))
        for ns, id, parent in cursor.fetchall():
            checkpoints.setdefault(ns, set()).add((id, parent))
        cursor.execute(f"SELECT {_KEY}, task_id, idx, channel FROM {writes} WHERE thread_id = {mark}", (thread,))
        for ns, id, *write in cursor.fetchall():
            tasks.setdefault((ns, id), set()).add(tuple(write))
    return checkpoints, tasks


def _assert_was_once(source: str, target: str, *, is_whole: bool) -> None:
    """Asserts that a copy has the rows that its source had at some moment: nothing later without all that was before.

    Args:
        source: Where the thread lives, and has been written on.
        target: Where its copy `c` is.
        is_whole: Whether the copy has every row of that moment on the way to its head.
    """
    has, had = _keys(target, "c"), _keys(source, THREAD)
    for ns, rows in has[0].items():
        parents = {parent for _, parent in rows if parent}
        newest = max(id for id, _ in rows)
        assert rows <= had[0][ns]
        if is_whole:
            assert parents <= {id for id, _ in rows}, f"a parent is missing in {ns!r}"
            assert {row for row in had[0][ns] if row[0] <= newest} == rows
        # LangGraph stores a task's writes beside the next checkpoint, not before it: those of the last step may be late
        # here as well.
        last = {parent for id, parent in rows if id == newest}
        for id in parents & {id for id, _ in rows} - last:
            assert has[1].get((ns, id)) == had[1].get((ns, id)), "a step that was over lacks writes"
    for key, found in has[1].items():
        assert found <= had[1][key]
    with saver_at(target) as saver:
        for found in saver.list({"configurable": {"thread_id": "c"}}):
            missing = found.checkpoint["channel_versions"].keys() - found.checkpoint["channel_values"].keys()
            assert "messages" not in missing or found.metadata["step"] == -1


class _Pager(io.StringIO):
    """An output that asks, at each part that it is given, whether anybody would have to wait."""

    def __init__(self, ask: Callable[[], None]) -> None:
        super().__init__()
        self._ask = ask
        self.n_parts = 0

    def write(self, text: str) -> int:
        self.n_parts += 1
        self._ask()
        return super().write(text)


def _paged(words: list[str], pager: _Pager, cwd: Path) -> int:
    is_json = "--json" in words
    return main(
        words,
        Env(
            stdin=io.StringIO(),
            stdout=pager,
            stderr=io.StringIO(),
            environ={},
            cwd=cwd,
            is_terminal=not is_json,
            err_is_terminal=False,
            width=80,
            now=lambda: datetime.now(UTC),
            as_json=is_json,
            argv=tuple(words),
        ),
    )


@contextmanager
def _would_wait_for(url: str) -> Iterator[Callable[[], None]]:
    """Gives what fails where another connection holds a lock or a transaction on a store."""
    if is_postgres(url):
        with psycopg.connect(url, autocommit=True) as connection:
            yield lambda: _assert_idle(connection)
        return
    with SqlProcess(Path(url)) as application:
        application.run("PRAGMA busy_timeout=0")
        yield lambda: _assert_free(application)


def _assert_idle(connection: psycopg.Connection[Any]) -> None:
    others = "datname = current_database() AND pid <> pg_backend_pid()"
    states = connection.execute(f"SELECT state FROM pg_stat_activity WHERE {others}").fetchall()
    assert {state for (state,) in states} <= {"idle"}
    held = f"SELECT * FROM pg_locks WHERE pid IN (SELECT pid FROM pg_stat_activity WHERE {others})"
    assert connection.execute(held).fetchall() == []


def _assert_free(application: SqlProcess) -> None:
    application.run("BEGIN EXCLUSIVE", "UPDATE checkpoints SET type = type", "COMMIT")
    assert application.run("PRAGMA wal_checkpoint(TRUNCATE)") == 1
