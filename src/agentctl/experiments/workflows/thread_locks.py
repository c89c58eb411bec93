"""One run of a thread at a time: a lock that ends with its process, in the database or beside its file.

Postgres holds it as an advisory lock of a transaction that stays open and idle while the run goes on: that works behind
a pooler of transactions too, makes no table and no row, and ends with the connection. Beside a SQLite file it is a file
of its own that the kernel unlocks when its process ends, however that ends. No row of LangGraph's is touched.

What does not take the lock is not kept out: an application that answers through its own API while `agentctl` does.
"""

from __future__ import annotations

import errno
import fcntl
import hashlib
import json
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from agentctl.errors import AgentctlError, Refused, StoreError
from agentctl.records.copies import command
from agentctl.stores.urls import hide_password, parse_store_url

if TYPE_CHECKING:
    from psycopg import Cursor
    from psycopg.rows import TupleRow

_FILE_MODE = 0o600
_APPLICATION = "agentctl"
_MAX_NAME_BYTES = 63
"""Postgres cuts `application_name` here (NAMEDATALEN - 1)."""
_AT = "%Y%m%dT%H%M%SZ"

_SETTINGS = {
    "idle_in_transaction_session_timeout": "0",
    "transaction_timeout": "0",
    "tcp_keepalives_idle": "30",
    "tcp_keepalives_interval": "10",
    "tcp_keepalives_count": "3",
}
"""For the lock's own transaction, where the server knows them: it may idle, and a machine that is gone is noticed."""


@dataclass(frozen=True, slots=True)
class Holder:
    """Who runs a thread: `who` as messages name them, the command, and since when."""

    who: str
    verb: str
    at: datetime

    def __str__(self) -> str:
        return f"{self.who} since {self.at:%Y-%m-%dT%H:%M:%SZ} (agentctl {self.verb})"


@contextmanager
def only_run(url: str, thread: str, holder: Holder, *, target: str) -> Iterator[None]:
    """Keeps other `run` and `resume` commands off a thread for the time of the block.

    Args:
        url: The store, which must exist.
        thread: Thread id.
        holder: Who asks, for the message that others get.
        target: The thread as the command line names it.

    Raises:
        Refused: somebody else runs it; the message says who and since when. Nothing is waited for.
        StoreError: the lock cannot be made.
    """
    store = parse_store_url(url)
    match store.kind:
        case "postgres":
            lock = _advisory_lock(store.location, thread, holder, target)
        case "sqlite":
            lock = _lock_file(Path(store.location), thread, holder, target)
        case _:
            raise StoreError(
                f"graphs cannot run on {hide_password(url)}", hint="use a SQLite file or a Postgres database"
            )
    with lock:
        yield


def _taken(target: str, holder: Holder | None) -> AgentctlError:
    by = f"by {holder}" if holder else "by another command"
    return Refused(
        f"{target} is being run {by}, and one run at a time goes on", hint=f"{command('show', target)}, once it ended"
    )


@contextmanager
def _lock_file(database: Path, thread: str, holder: Holder, target: str) -> Iterator[None]:
    database = database.resolve()
    digest = hashlib.sha256(thread.encode("utf-8", "surrogatepass")).hexdigest()[:16]
    path = database.with_name(f"{database.name}-run-{digest}")
    try:
        handle = _locked(path, target)
    except OSError as error:
        raise StoreError(f"{path} cannot be locked: {error.strerror}", hint=f"ls -ld '{database.parent}'") from error
    try:
        os.ftruncate(handle, 0)
        os.pwrite(handle, json.dumps([holder.who, holder.verb, holder.at.strftime(_AT)]).encode(), 0)
        yield
    finally:
        path.unlink(missing_ok=True)
        os.close(handle)


def _locked(path: Path, target: str) -> int:
    """Returns the handle of the lock file that lies at the path now, locked."""
    while True:
        handle = os.open(path, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK, _FILE_MODE)
        try:
            found = os.fstat(handle)
            if not stat.S_ISREG(found.st_mode) or found.st_nlink > 1:
                raise OSError(errno.ELOOP, "another file stands in its place")
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if _is_at(path, handle):
                return handle
        except BlockingIOError:
            holder = _written(os.pread(handle, 4096, 0))
            os.close(handle)
            raise _taken(target, holder) from None
        except BaseException:
            os.close(handle)
            raise
        os.close(handle)  # the one before took its file away meanwhile: what lies there now is another


def _is_at(path: Path, handle: int) -> bool:
    try:
        return os.path.samestat(path.lstat(), os.fstat(handle))
    except FileNotFoundError:
        return False


def _written(data: bytes) -> Holder | None:
    try:
        who, verb, at = json.loads(data)
        return Holder(who, verb, _time(at))
    except (ValueError, TypeError):  # it is being written
        return None


@contextmanager
def _advisory_lock(url: str, thread: str, holder: Holder, target: str) -> Iterator[None]:
    with lock_transaction(url, _application_name(holder)) as cursor:
        high, low = lock_keys(f"agentctl run\0{thread}")
        got = cursor.execute("SELECT pg_try_advisory_xact_lock(%s, %s)", (high, low)).fetchone()
        if got is None or not got[0]:
            named = cursor.execute(_HOLDER, (high, low)).fetchone()
            raise _taken(target, _named(named[0]) if named else None)
        forget_snapshot(cursor)
        yield


def lock_keys(text: str) -> tuple[int, int]:
    """Returns the two keys of an advisory lock that stands for a text."""
    digest = hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()
    return int.from_bytes(digest[:4], signed=True), int.from_bytes(digest[4:8], signed=True)


@contextmanager
def lock_transaction(url: str, application_name: str) -> Iterator[Cursor[TupleRow]]:
    """Gives a cursor in a transaction that may idle for as long as locks are to be held in it.

    Raises:
        StoreError: the database cannot be reached, or is lost meanwhile.
    """
    import psycopg

    from agentctl.stores.postgres.opening import connection_text, store_error

    try:
        connection = psycopg.connect(connection_text(url), autocommit=True, prepare_threshold=None)
    except psycopg.Error as error:
        raise store_error(hide_password(url), error) from error
    try:
        with connection.cursor() as cursor:
            cursor.execute("BEGIN")
            settings = {**_SETTINGS, "application_name": application_name}
            cursor.execute(
                "SELECT set_config(name, setting.value, true) FROM pg_settings"
                " JOIN unnest(%s::text[], %s::text[]) AS setting (key, value) ON name = setting.key",
                (list(settings), list(settings.values())),
            )
            yield cursor
    except psycopg.Error as error:
        raise store_error(hide_password(url), error) from error
    finally:
        connection.close()


def forget_snapshot(cursor: Cursor[TupleRow]) -> None:
    """Ends the statement before: one without parameters does, and its snapshot would keep vacuum from its work."""
    cursor.execute("SELECT 1")


_HOLDER = """
SELECT application_name FROM pg_locks JOIN pg_stat_activity USING (pid)
WHERE locktype = 'advisory' AND granted AND objsubid = 2
AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
AND classid::bigint = (%s::bigint + 4294967296) %% 4294967296
AND objid::bigint = (%s::bigint + 4294967296) %% 4294967296
"""
"""Postgres shows the name of a session to every role. Its lock tables hold the two keys as unsigned numbers."""


def _application_name(holder: Holder) -> str:
    text = f"{_APPLICATION} {holder.verb} {holder.at.strftime(_AT)} {holder.who}"
    return text.encode("ascii", "replace")[:_MAX_NAME_BYTES].decode()


def _named(application_name: str) -> Holder | None:
    words = application_name.split(" ", 3)
    if len(words) != 4 or words[0] != _APPLICATION:
        return None
    try:
        return Holder(words[3], words[1], _time(words[2]))
    except ValueError:
        return None


def _time(text: str) -> datetime:
    return datetime.strptime(text, _AT).replace(tzinfo=UTC)
