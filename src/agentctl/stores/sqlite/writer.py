"""The `Writer` on SQLite: a debug store, or the target of a copy. Rows are written in one transaction or not at all.

The tables are those of the stock saver, so that any LangGraph program can open the file.

Source: `SqliteSaver.setup` (langgraph-checkpoint-sqlite 3.1.2, checkpoint/sqlite/__init__.py).
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from functools import partial
from pathlib import Path
from typing import Any, ClassVar, TypeVar, cast

from agentctl.errors import Refused, StoreError
from agentctl.records.rows import Sliceable, Stored
from agentctl.stores.base import Reader, StoreInfo, StoreKind, WriteKey
from agentctl.stores.delegation import NoThreads, ReadsThrough
from agentctl.stores.large import Chunks
from agentctl.stores.sqlite.opening import SqliteFile, store_error
from agentctl.stores.sqlite.parts import is_large
from agentctl.stores.sqlite.reader import TASK_PATH, SqliteReader
from agentctl.stores.sqlite.unused import remove_unused

T = TypeVar("T")

CREATE_TABLES = (
    """CREATE TABLE IF NOT EXISTS checkpoints (
    thread_id TEXT NOT NULL,
    checkpoint_ns TEXT NOT NULL DEFAULT '',
    checkpoint_id TEXT NOT NULL,
    parent_checkpoint_id TEXT,
    type TEXT,
    checkpoint BLOB,
    metadata BLOB,
    PRIMARY KEY (thread_id, checkpoint_ns, checkpoint_id)
)""",
    """CREATE TABLE IF NOT EXISTS writes (
    thread_id TEXT NOT NULL,
    checkpoint_ns TEXT NOT NULL DEFAULT '',
    checkpoint_id TEXT NOT NULL,
    task_id TEXT NOT NULL,
    task_path TEXT NOT NULL DEFAULT '',
    idx INTEGER NOT NULL,
    channel TEXT NOT NULL,
    type TEXT,
    value BLOB,
    PRIMARY KEY (thread_id, checkpoint_ns, checkpoint_id, task_id, idx)
)""",
)
ADD_TASK_PATH = "ALTER TABLE writes ADD COLUMN task_path TEXT NOT NULL DEFAULT ''"

CHECKPOINT_VALUES = ("checkpoint_ns", "checkpoint_id", "parent_checkpoint_id", "type", "checkpoint", "metadata")
WRITE_VALUES = ("checkpoint_ns", "checkpoint_id", "task_id", "task_path", "idx", "channel", "type", "value")
"""Columns of a row but its thread id, in the order in which raw rows are given and taken."""
METADATA = CHECKPOINT_VALUES[-1]

_BUSY_TIMEOUT_S = 30.0
_FILE_MODE, _FOLDER_MODE = 0o600, 0o700


class SqliteWriter(ReadsThrough):
    """A SQLite checkpoint file open for writing; see `agentctl.stores.base.Writer`.

    Opening touches nothing: a file that does not exist yet reads as empty and is made by `setup()`, with mode 0600 in
    a folder with mode 0700, in WAL mode as the stock saver has it.

    Args:
        path: The file.
        create: False refuses a file that does not exist.
        profile: The name the store was reached by, or ''.

    Raises:
        StoreError: `create` is False and there is no such file.
    """

    def __init__(self, path: Path | str, *, create: bool = True, profile: str = "") -> None:
        self.path = Path(path).expanduser().absolute()
        self.info = StoreInfo(kind="sqlite", url=str(self.path), profile=profile)
        self._reader: SqliteReader | None = None
        if not create and not self.path.exists():
            raise StoreError(f"no such file: {self.path}", hint="check the path")

    def setup(self) -> None:
        """See `Writer.setup`. A file that is there keeps its journal mode and its permissions."""
        self._setup(lambda: None)

    def _setup(self, on_created: Callable[[], None]) -> None:
        try:
            is_new = _create_file(self.path)
            if is_new:
                on_created()
            with closing(self._connect()) as connection:
                if is_new:
                    connection.execute("PRAGMA journal_mode=WAL")
                connection.execute("BEGIN IMMEDIATE")
                for statement in CREATE_TABLES:
                    connection.execute(statement)
                if TASK_PATH not in {record[1] for record in connection.execute("PRAGMA table_info(writes)")}:
                    connection.execute(ADD_TASK_PATH)
                connection.execute("COMMIT")
        except OSError as error:
            raise StoreError(
                f"cannot create {self.path}: {error.strerror or error}", hint="give another file: --to FILE.sqlite"
            ) from error
        except sqlite3.Error as error:
            raise store_error(self.path, error) from error

    def delete_thread(self, thread: str) -> int:
        """See `Writer.delete_thread`."""
        if isinstance(self._reading(), NoThreads):
            return 0
        with self.transaction() as transaction:
            return transaction.delete_thread(thread)

    @contextmanager
    def first_transaction(self) -> Iterator[SqliteTransaction]:
        """Yields a `transaction()` on tables that are made first; where it fails, a file that this made goes again.

        Raises:
            StoreError: See `setup` and `transaction`.
        """
        created: list[Path] = []
        try:
            self._setup(lambda: created.append(self.path))
            with self.transaction() as transaction:
                yield transaction
        except BaseException:
            for path in created:
                remove_unused(path)
            raise

    @contextmanager
    def transaction(self) -> Iterator[SqliteTransaction]:
        """Yields one transaction that ends with this block: committed where it ends well, else rolled back.

        Raises:
            StoreError: The file is locked for longer than 30 s, full, or damaged.
        """
        try:
            with closing(self._connect()) as connection:
                connection.execute("BEGIN IMMEDIATE")
                try:
                    yield SqliteTransaction(connection, self.path, self.info)
                except BaseException:
                    if connection.in_transaction:
                        connection.execute("ROLLBACK")
                    raise
                connection.execute("COMMIT")
        except sqlite3.Error as error:
            raise store_error(self.path, error) from error

    def close(self) -> None:
        """See `Reader.close`."""
        if self._reader is not None:
            self._reader.close()
            self._reader = None

    def _reading(self) -> Reader:
        if self._reader is None:
            if not _has_tables(self.path):
                return NoThreads(self.info)
            self._reader = SqliteReader(self.path, profile=self.info.profile)
        return self._reader

    def _connect(self) -> sqlite3.Connection:
        return sqlite3.connect(self.path, timeout=_BUSY_TIMEOUT_S, isolation_level=None)


class SqliteTransaction:
    """What can be done inside one transaction. It reads its own rows: `SqliteReader(path, file=transaction)`."""

    kind: ClassVar[StoreKind] = "sqlite"

    def __init__(self, connection: sqlite3.Connection, path: Path, info: StoreInfo) -> None:
        self.path = path
        self._connection = connection
        self._info = info

    def read(self, work: Callable[[sqlite3.Connection], T]) -> T:
        """Returns `work(connection)`."""
        return work(self._connection)

    def close(self) -> None:
        """Does nothing: the block that opened the transaction ends it."""

    def reader(self) -> Reader:
        """Returns a reader that sees what this transaction wrote."""
        return SqliteReader(self.path, profile=self._info.profile, file=self)

    def has_thread(self, thread: str) -> bool:
        """Tells whether any table has a row of the thread."""
        return any(
            self._connection.execute(f"SELECT 1 FROM {table} WHERE thread_id = ? LIMIT 1", (thread,)).fetchone()
            for table in ("checkpoints", "writes")
        )

    def insert_checkpoints(self, thread: str, rows: Iterable[Sequence[object]]) -> None:
        """Inserts checkpoints given as `CHECKPOINT_VALUES`."""
        self._insert("checkpoints", CHECKPOINT_VALUES, thread, rows)

    def insert_writes(self, thread: str, rows: Iterable[Sequence[object]]) -> None:
        """Inserts writes given as `WRITE_VALUES`."""
        self._insert("writes", WRITE_VALUES, thread, rows)

    def clone(self, thread: str, as_thread: str, mark: tuple[str, bytes] | None = None) -> None:
        """Inserts every row of one thread again under another thread id; large values a chunk at a time.

        Args:
            thread: The thread.
            as_thread: The other thread id.
            mark: A root checkpoint, and the metadata that it has in the clone; None where it is as it was.
        """
        checkpoints = {name: name for name in CHECKPOINT_VALUES}
        if mark is not None:
            checkpoints[METADATA] = f"CASE WHEN checkpoint_ns = '' AND checkpoint_id = ? THEN ? ELSE {METADATA} END"
        self._clone("checkpoints", "checkpoint", checkpoints, (*(mark or ()), thread), as_thread)
        self._clone("writes", "value", {name: name for name in WRITE_VALUES}, (thread,), as_thread)

    def add_write(self, thread: str, key: WriteKey, task_path: str, channel: str, value: Stored) -> None:
        """Inserts one write.

        Raises:
            Refused: There is a write with that key.
        """
        ns, checkpoint_id, task_id, idx = key
        try:
            self.insert_writes(thread, [(ns, checkpoint_id, task_id, task_path, idx, channel, value.type, value.data)])
        except sqlite3.IntegrityError as error:
            raise Refused(f"checkpoint {checkpoint_id} already has write {idx} of task {task_id}") from error

    def set_write(self, thread: str, key: WriteKey, value: Stored) -> bool:
        """Replaces the value of one write; False where there is none with that key."""
        done = self._connection.execute(
            "UPDATE writes SET type = ?, value = ? WHERE thread_id = ? AND checkpoint_ns = ? AND checkpoint_id = ?"
            " AND task_id = ? AND idx = ?",
            (value.type, value.data, thread, *key),
        )
        return done.rowcount == 1

    def delete_thread(self, thread: str) -> int:
        """Deletes every row of a thread; returns how many there were."""
        return sum(
            self._connection.execute(f"DELETE FROM {table} WHERE thread_id = ?", (thread,)).rowcount
            for table in ("checkpoints", "writes")
        )

    def keys(self, thread: str) -> set[tuple[str, str]]:
        """Returns namespace and id of every checkpoint of the thread that is there, if only with writes."""
        keys: set[tuple[str, str]] = set()
        for table in ("checkpoints", "writes"):
            query = f"SELECT DISTINCT checkpoint_ns, checkpoint_id FROM {table} WHERE thread_id = ?"
            keys.update(self._connection.execute(query, (thread,)))
        return keys

    def count(self, thread: str) -> tuple[int, int, int, int]:
        """Returns how many checkpoints, writes and blobs the thread has, and the bytes of their values."""
        checkpoints = self._total("SELECT count(*), sum(length(checkpoint)) FROM checkpoints", thread)
        writes = self._total("SELECT count(*), sum(length(value)) FROM writes", thread)
        return checkpoints[0], writes[0], 0, checkpoints[1] + writes[1]

    def _total(self, query: str, thread: str) -> tuple[int, int]:
        n_rows, n_bytes = self._connection.execute(f"{query} WHERE thread_id = ?", (thread,)).fetchone()
        return n_rows, n_bytes or 0

    def _clone(
        self, table: str, value: str, selected: Mapping[str, str], parameters: Sequence[object], thread: str
    ) -> None:
        """Inserts rows of a table again under another thread id.

        Args:
            table: It.
            value: The column that may be large.
            selected: The columns, and the SQL of what they become.
            parameters: Of that SQL, and the thread id of the rows.
            thread: The other thread id.
        """
        names = ", ".join(selected)
        n_rows = self._total(f"SELECT count(*), 0 FROM {table}", str(parameters[-1]))[0]
        inserted = self._connection.execute(
            f"INSERT INTO {table} (thread_id, {names}) SELECT ?, {', '.join(selected.values())} FROM {table}"
            f" WHERE thread_id = ? AND NOT ({is_large(value)})",
            (thread, *parameters),
        )
        if inserted.rowcount == n_rows:
            return
        lean = ", ".join({**selected, value: f"length({value})"}.values())
        query = f"SELECT {lean}, rowid FROM {table} WHERE thread_id = ? AND {is_large(value)}"
        at = list(selected).index(value)
        for *row, rowid in self._connection.execute(query, parameters).fetchall():
            row[at] = Chunks(row[at], partial(self._read, table, value, rowid))
            self._insert(table, tuple(selected), thread, [row])

    def _read(self, table: str, column: str, rowid: int, start: int, n_bytes: int) -> bytes:
        with self._connection.blobopen(table, column, rowid, readonly=True) as blob:
            return cast(Sliceable, blob)[start : start + n_bytes]

    def _insert(self, table: str, columns: Sequence[str], thread: str, rows: Iterable[Sequence[Any]]) -> None:
        into = f"INSERT INTO {table} (thread_id, {', '.join(columns)}) VALUES"
        marks = ", ".join("?" * (1 + len(columns)))
        large: list[Sequence[Any]] = []

        def small() -> Iterator[tuple[Any, ...]]:
            for row in rows:
                if any(isinstance(value, Chunks) for value in row):
                    large.append(row)
                else:
                    yield (thread, *row)

        self._connection.executemany(f"{into} ({marks})", small())
        for row in large:
            self._insert_in_chunks(into, table, columns, (thread, *row))

    def _insert_in_chunks(self, into: str, table: str, columns: Sequence[str], row: Sequence[Any]) -> None:
        """Inserts a row whose large value is written to the room that is made for it.

        The bytes of other columns are, too: SQLite holds room in memory that something else comes after in the record.
        """
        marks = ", ".join("zeroblob(?)" if isinstance(value, Chunks | bytes) else "?" for value in row)
        lengths = [len(value) if isinstance(value, Chunks | bytes) else value for value in row]
        rowid = self._connection.execute(f"{into} ({marks})", lengths).lastrowid
        for column, value in zip(("thread_id", *columns), row, strict=True):
            if isinstance(value, Chunks | bytes) and len(value) and rowid is not None:
                with self._connection.blobopen(table, column, rowid) as blob:
                    for window in value.windows() if isinstance(value, Chunks) else (value,):
                        blob.write(window)


def _create_file(path: Path) -> bool:
    """Creates an empty file that only its owner can read; False where it was there."""
    path.parent.mkdir(mode=_FOLDER_MODE, parents=True, exist_ok=True)
    try:
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR, _FILE_MODE))
    except FileExistsError:
        return path.stat().st_size == 0
    return True


def _has_tables(path: Path) -> bool:
    if not path.exists():
        return False
    with closing(SqliteFile(path)) as file:
        found = file.read(
            lambda connection: connection.execute(
                "SELECT count(*) FROM sqlite_master WHERE type = 'table' AND name IN ('checkpoints', 'writes')"
            ).fetchone()
        )
    return bool(found[0] == 2)
