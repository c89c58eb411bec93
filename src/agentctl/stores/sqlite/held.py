"""A SQLite file that nobody writes any more, read on one connection: many reads of it cost one opening."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TypeVar

from agentctl.stores.sqlite.opening import SqliteFile, done_on, store_error

T = TypeVar("T")


class HeldFile:
    """See `agentctl.stores.sqlite.opening.Readable`. Its transaction goes on from one read to the next."""

    def __init__(self, path: Path, connection: sqlite3.Connection) -> None:
        self.path = path
        self._connection = connection

    def read(self, work: Callable[[sqlite3.Connection], T]) -> T:
        """Returns `work(connection)`; it may run more than once.

        Raises:
            StoreError: The file is damaged, or no SQLite database.
        """
        try:
            return done_on(self._connection, work)
        except sqlite3.Error as error:
            raise store_error(self.path, error) from error

    def close(self) -> None:
        """Does nothing: the block that opened the file ends it."""


@contextmanager
def held(path: Path) -> Iterator[HeldFile]:
    """Gives a file whose writer has ended, for the time of the block. Nothing is written to it.

    Raises:
        StoreError: It is missing, still being written, or no SQLite database.
    """
    with closing(SqliteFile(path)) as file:
        try:
            connection = sqlite3.connect(file.at_rest(), uri=True, isolation_level=None)
        except sqlite3.Error as error:
            raise store_error(file.path, error) from error
        with closing(connection):
            read = HeldFile(file.path, connection)
            read.read(lambda opened: opened.execute("BEGIN"))
            yield read
