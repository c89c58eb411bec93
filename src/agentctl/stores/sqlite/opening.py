"""Reading a SQLite file without leaving a trace: its bytes and the folder's listing stay what they were.

No single way of opening does that. `mode=ro` on a WAL file nobody has open leaves `-wal` and `-shm` beside it;
`immutable=1` misses what a `-wal` holds and, beside a writer that comes and goes, mixes old pages with new ones. So the
way is chosen at each read, from what lies beside the file, and a read that raced with a writer is done again.

Source: www.sqlite.org/uri.html, wal.html#readonly and fileformat2.html (offsets 18 and 19); measured on SQLite 3.40.1.
"""

from __future__ import annotations

import difflib
import shutil
import sqlite3
import tempfile
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Literal, Protocol, TypeVar
from urllib.parse import quote

from agentctl.errors import StoreError

T = TypeVar("T")

_MAGIC = b"SQLite format 3\x00"
_WAL_FORMAT = 2
_N_ATTEMPTS = 40
_CACHE_KB = 256
"""A read passes most pages once: a cache that fits into the processor's own takes half the time of SQLite's 2 MB."""
_PAUSE_S = 0.005
_LONGEST_PAUSE_S = 0.1
_DATABASE_SUFFIXES = frozenset({".db", ".sqlite", ".sqlite3"})

_PICKLES = ".langgraph_api"
"""The folder of `langgraph dev` (langgraph-runtime-inmem)."""

_FileState = tuple[int, int, int] | None
_State = tuple[_FileState, _FileState, _FileState]
Way = Literal["immutable", "read_only", "copy"]


class Readable(Protocol):
    """What reads a database file: work done on a connection that nothing else uses meanwhile."""

    path: Path

    def read(self, work: Callable[[sqlite3.Connection], T]) -> T:
        """Returns `work(connection)`; it may run more than once."""
        ...

    def close(self) -> None:
        """Ends the reading. Safe to call twice."""
        ...


class SqliteFile:
    """A database file that is only ever looked at.

    Args:
        path: The file; it must exist and be a SQLite database.
        busy_timeout_s: How long a read waits for a writer's lock.

    Raises:
        StoreError: The file is missing, unreadable or no SQLite database. Nothing is created.
    """

    def __init__(self, path: Path, *, busy_timeout_s: float = 5.0) -> None:
        _require_file(path)
        self.path = path.resolve()  # SQLite puts -wal and -journal beside the file a link points to
        self._busy_timeout_s = busy_timeout_s
        self._copy: tuple[_State, tempfile.TemporaryDirectory[str]] | None = None
        _require_magic(self.path)

    def read(self, work: Callable[[sqlite3.Connection], T]) -> T:
        """Returns `work(connection)`, run inside one short read transaction on a connection of its own.

        Args:
            work: Fetches all it needs before it returns; it may run more than once.

        Raises:
            StoreError: The file is gone, locked for longer than the timeout, damaged, or no SQLite database.
        """
        try:
            return self._read(work)
        except sqlite3.Error as error:
            raise store_error(self.path, error) from error
        except FileNotFoundError as error:
            raise _missing(self.path) from error
        except OSError as error:
            raise _unreadable(self.path, error) from error

    def at_rest(self) -> str:
        """Returns the URI of the file, or of a private copy where a writer that was killed left something beside it.

        Raises:
            StoreError: It is still being written, or cannot be read.
        """
        try:
            way = way_to_open(self.path)
            path, parameters = self._immutable_or_copied("copy" if way == "read_only" else way, _state(self.path))
        except _Changed:
            raise StoreError(f"{self.path} is still being written", hint="run the command again") from None
        except OSError as error:
            raise _unreadable(self.path, error) from error
        return _uri(path, parameters)

    def close(self) -> None:
        """Deletes the temporary copy, where one was needed. Safe to call twice."""
        if self._copy is not None:
            self._copy[1].cleanup()
            self._copy = None

    def _read(self, work: Callable[[sqlite3.Connection], T]) -> T:
        for attempt in range(_N_ATTEMPTS):
            before = _state(self.path)
            way = way_to_open(self.path)
            if way == "read_only":
                return self._read_only_or_copy(work)
            try:
                result = self._query(*self._immutable_or_copied(way, before), work)
            except _Changed:
                pass
            except sqlite3.DatabaseError:
                # Pages that move under an immutable read look like damage; a file at rest really is damaged.
                if _state(self.path) == before:
                    raise
            else:
                if _state(self.path) == before:
                    return result
            time.sleep(min(_PAUSE_S * (attempt + 1), _LONGEST_PAUSE_S))
        # A writer that opens and closes all the time also clears away what this leaves beside the file.
        return self._read_only_or_copy(work)

    def _immutable_or_copied(self, way: Way, state: _State) -> tuple[Path, str]:
        """Returns the file to open and how."""
        return (self._copied(state), "mode=rw") if way == "copy" else (self.path, "mode=ro&immutable=1")

    def _read_only_or_copy(self, work: Callable[[sqlite3.Connection], T]) -> T:
        """Reads with `mode=ro`; where that would have to write first (hot journal, lost `-shm`), from a copy."""
        try:
            return self._query(self.path, "mode=ro", work)
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode & 0xFF not in (sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN):
                raise
        try:
            return self._query(self._copied(_state(self.path)), "mode=rw", work)
        except _Changed:
            return self._query(self.path, "mode=ro", work)

    def _query(self, path: Path, parameters: str, work: Callable[[sqlite3.Connection], T]) -> T:
        connection = sqlite3.connect(
            _uri(path, parameters), uri=True, timeout=self._busy_timeout_s, isolation_level=None
        )
        with closing(connection):
            connection.execute(f"PRAGMA cache_size = -{_CACHE_KB}")
            connection.execute("BEGIN")
            result = done_on(connection, work)
            connection.execute("ROLLBACK")
            return result

    def _copied(self, state: _State) -> Path:
        """Returns a private copy of the database and its `-wal` or `-journal`, made again when they change."""
        if self._copy is not None and self._copy[0] == state:
            return Path(self._copy[1].name) / self.path.name
        self.close()
        folder = tempfile.TemporaryDirectory(prefix="agentctl-")
        target = Path(folder.name) / self.path.name
        for suffix in ("", "-wal", "-journal"):
            source = _beside(self.path, suffix)
            if source.exists():
                shutil.copyfile(source, _beside(target, suffix))
        if _state(self.path) != state:
            folder.cleanup()
            raise _Changed
        self._copy = (state, folder)
        return target


class _Changed(Exception):
    """The file changed while it was copied."""


def done_on(connection: sqlite3.Connection, work: Callable[[sqlite3.Connection], T]) -> T:
    """Returns `work(connection)`, done again where the file has text that is not UTF-8."""
    try:
        return work(connection)
    except sqlite3.OperationalError as error:
        if getattr(error, "sqlite_errorcode", None) is not None:
            raise
        # Raised by the driver, not by SQLite: text that is not UTF-8. The lenient way is slow on long lists.
        connection.text_factory = _text
        return work(connection)


def _uri(path: Path, parameters: str) -> str:
    return f"file:{quote(str(path))}?{parameters}"


def way_to_open(path: Path) -> Way:
    """Returns how a database can be read without a trace, from its header and what lies beside it.

    `read_only`: SQLite's own locks do (a rollback file; a WAL file that has its `-wal` and `-shm`). `immutable`: a WAL
    file at rest. `copy`: a `-wal` whose `-shm` would have to be made.
    """
    wal = _file_state(_beside(path, "-wal"))
    if wal is not None and _beside(path, "-shm").exists():
        return "read_only"
    if wal is not None and wal[1] > 0:
        return "copy"
    # Closing a file drops this process's POSIX locks on it, so the header is read only where no WAL connection of
    # ours can hold one: those keep a -wal beside the file.
    with path.open("rb") as file:
        header = file.read(20)
    if header[18:19] == bytes([_WAL_FORMAT]):
        return "immutable"
    return "read_only"


def store_error(path: Path, error: sqlite3.Error) -> StoreError:
    """Returns the error to show for one of SQLite's."""
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF
    if not path.exists():
        return _missing(path)
    if code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
        return StoreError(f"{path} is locked by a writer", hint="run the command again once the writer has committed")
    if code == sqlite3.SQLITE_NOTADB:
        return _not_a_database(path)
    if code in (sqlite3.SQLITE_FULL, sqlite3.SQLITE_READONLY):
        return StoreError(
            f"{path} cannot be written: {error}", hint=f"is there room, and may you write there? df -h '{path.parent}'"
        )
    if code == sqlite3.SQLITE_IOERR:
        return StoreError(
            f"{path} cannot be read or written: {error}", hint=f"is there room, and is the disk well? df -h '{path}'"
        )
    if code == sqlite3.SQLITE_CORRUPT:
        return StoreError(f"{path} is damaged: {error}", hint=f"sqlite3 '{path}' 'PRAGMA integrity_check'")
    return StoreError(f"cannot read {path}: {error}", hint=f"check the file and its folder: ls -l '{path}'")


def _require_file(path: Path) -> None:
    if path.is_dir():
        if path.name == _PICKLES:
            raise _pickled(path)
        raise StoreError(f"{path} is a folder, not a SQLite file", hint=_nearby(path / "checkpoints.sqlite"))
    try:
        found = path.exists()
    except OSError as error:
        raise _unreadable(path, error) from error
    if not found:
        raise _missing(path)
    if not path.is_file():  # opening a pipe waits for whoever writes into it
        raise _not_a_database(path)
    if path.suffix == ".pckl":
        raise _pickled(path)


def _require_magic(path: Path) -> None:
    """Refuses what is no SQLite file. Not read while `-wal` is there: see `way_to_open` on locks."""
    if _beside(path, "-wal").exists():
        return
    try:
        with path.open("rb") as file:
            magic = file.read(len(_MAGIC))
    except OSError as error:
        raise _unreadable(path, error) from error
    if magic and magic != _MAGIC:
        raise _not_a_database(path)


def _missing(path: Path) -> StoreError:
    return StoreError(f"no such file: {path}", hint=_nearby(path) or "check the path given to --store")


def _pickled(path: Path) -> StoreError:
    return StoreError(
        f"{path} is what `langgraph dev` keeps in pickles, and loading a pickle runs code: it is never loaded",
        hint="ask the server while it runs: --store http://127.0.0.1:2024",
    )


def _not_a_database(path: Path) -> StoreError:
    return StoreError(f"{path} is not a SQLite database", hint="give --store the file the SqliteSaver was opened with")


def _unreadable(path: Path, error: OSError) -> StoreError:
    return StoreError(
        f"cannot read {path}: {error.strerror or error}", hint=f"check the file and its folder: ls -l '{path}'"
    )


def _nearby(path: Path) -> str | None:
    """Returns a hint: the database file in the same folder that looks most like `path`, or what to look at."""
    folder = path.parent
    if not folder.exists():
        return f"there is no folder {folder} either; stores by name: agentctl config show"
    try:
        names = [entry.name for entry in folder.iterdir() if entry.is_file()]
    except OSError:
        return f"its folder cannot be listed: ls -ld '{folder}'"
    databases = [name for name in names if Path(name).suffix in _DATABASE_SUFFIXES]
    close = difflib.get_close_matches(path.name, names, n=1) or sorted(databases)[:1]
    return f"did you mean --store '{folder / close[0]}'?" if close else None


def _state(path: Path) -> _State:
    return _file_state(path), _file_state(_beside(path, "-wal")), _file_state(_beside(path, "-journal"))


def _file_state(path: Path) -> _FileState:
    try:
        found = path.stat()
    except FileNotFoundError:
        return None
    return found.st_ino, found.st_size, found.st_mtime_ns


def _beside(path: Path, suffix: str) -> Path:
    return path.with_name(path.name + suffix)


def _text(data: bytes) -> str:
    return data.decode("utf-8", "replace")
