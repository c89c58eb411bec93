"""Names of debug threads that are made later: locked until their process ends, so that no two commands take one.

Postgres holds them as advisory locks of one connection. Beside a SQLite file they are bytes of one empty file: each
name is a place in it. What makes its rows at once, an experiment in the process of its command, asks for no lock.
"""

from __future__ import annotations

import fcntl
import os
import struct
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from agentctl.errors import StoreError
from agentctl.experiments.runs.debug_threads import Kind, free_names
from agentctl.experiments.workflows.thread_locks import forget_snapshot, lock_keys, lock_transaction
from agentctl.stores.base import Writer
from agentctl.stores.urls import hide_password, parse_store_url

Take = Callable[[str], bool]
"""Locks one name; False where somebody else has it."""

_FILE_MODE: Final = 0o600
_FOLDER_MODE: Final = 0o700
_APPLICATION: Final = "agentctl names"


def take_names(writer: Writer, take: Take, thread: str, kind: Kind, n: int) -> tuple[str, ...]:
    """Returns `n` locked thread names `THREAD.KIND-K` that the store does not have.

    Args:
        writer: The debug store.
        take: Locks a name.
        thread: The source thread.
        kind: What the threads are for.
        n: How many.
    """
    names: list[str] = []
    (first,) = free_names(writer, thread, kind, 1)
    stem, _, number = first.rpartition("-")
    at = int(number)
    while len(names) < n:
        name = f"{stem}-{at}"
        if take(name) and not writer.namespaces(name):  # made between the look and the lock, by one that has ended
            names.append(name)
        at += 1
    return tuple(names)


@contextmanager
def name_locks(url: str) -> Iterator[Take]:
    """Gives what locks names in a store; all locks end with the block.

    Args:
        url: The debug store; a file of it may not exist yet.

    Raises:
        StoreError: names cannot be locked there.
    """
    store = parse_store_url(url)
    if store.kind == "postgres":
        with _in_database(store.location) as take:
            yield take
    elif store.kind == "sqlite":
        with _beside(Path(store.location).expanduser().absolute()) as take:
            yield take
    else:
        raise StoreError(f"graphs cannot run on {hide_password(url)}", hint="use a SQLite file or a Postgres database")


@contextmanager
def _beside(database: Path) -> Iterator[Take]:
    path = database.with_name(f"{database.name}-names")
    try:
        path.parent.mkdir(mode=_FOLDER_MODE, parents=True, exist_ok=True)
        handle = os.open(path, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW, _FILE_MODE)
    except OSError as error:
        raise StoreError(f"{path} cannot be locked: {error.strerror}", hint=f"ls -ld '{path.parent}'") from error

    def take(name: str) -> bool:
        high, low = lock_keys(_text(name))
        place = (high & 0x3FFFFFFF) << 32 | low & 0xFFFFFFFF
        try:
            _lock_byte(handle, place)
        except (BlockingIOError, PermissionError):
            return False
        return True

    try:
        yield take
    finally:
        os.close(handle)


def _lock_byte(handle: int, place: int) -> None:
    """Locks one byte of an open file; on Linux for this handle, elsewhere for this process.

    Raises:
        OSError: somebody else has it.
    """
    if sys.platform == "linux":
        fcntl.fcntl(handle, fcntl.F_OFD_SETLK, struct.pack("hhqqi4x", fcntl.F_WRLCK, os.SEEK_SET, place, 1, 0))
    else:
        fcntl.lockf(handle, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, place)


@contextmanager
def _in_database(url: str) -> Iterator[Take]:
    with lock_transaction(url, _APPLICATION) as cursor:

        def take(name: str) -> bool:
            got = cursor.execute("SELECT pg_try_advisory_xact_lock(%s, %s)", lock_keys(_text(name))).fetchone()
            forget_snapshot(cursor)
            return got is not None and bool(got[0])

        yield take


def _text(name: str) -> str:
    return f"agentctl name\0{name}"
