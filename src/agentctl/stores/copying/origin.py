"""Where a copy reads from: the rows themselves where the kind of store gives them, else the `Reader` protocol."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, cast

from agentctl.errors import StoreError
from agentctl.stores.base import Reader
from agentctl.stores.moments import Moved
from agentctl.stores.same import uncovered
from agentctl.stores.sqlite.keys import ThreadKeys, is_as_it_was
from agentctl.stores.sqlite.opening import Readable, SqliteFile
from agentctl.stores.sqlite.reader import SqliteReader
from agentctl.stores.sqlite.writer import SqliteTransaction

if TYPE_CHECKING:
    from agentctl.stores.postgres.layout import Layout
    from agentctl.stores.postgres.snapshots import Snapshot
    from agentctl.stores.postgres.writer import PostgresTransaction


@dataclass(frozen=True, slots=True)
class Origin:
    """A source at one moment.

    Attributes:
        reader: It.
        file: The file of a SQLite source whose rows may be taken as they lie; None of a masked one.
        below: The file of a SQLite source, masked or not.
        keys: The rows that are seen in it, by thread.
        snapshot: What is seen of a Postgres source, with the connection that sees it.
        layout: Where its tables are.
    """

    reader: Reader
    file: Readable | None = None
    below: Readable | None = None
    keys: Mapping[str, ThreadKeys] = field(default_factory=dict)
    snapshot: Snapshot | None = None
    layout: Layout | None = None

    @contextmanager
    def unmoved(self, target: SqliteTransaction | PostgresTransaction) -> Iterator[None]:
        """Makes sure that the rows which the block reads were all there at the moment of the source.

        Args:
            target: The transaction that the block writes to. Inside that of its own file nobody else can write to it.

        Raises:
            Moved: Rows were replaced or deleted, whether or not the block took notice.
        """
        if self.below is None:
            yield
            return
        is_inside = isinstance(target, SqliteTransaction) and is_same_file(self.below, target)
        through = cast(Readable, target) if is_inside else self.below
        try:
            yield
        except StoreError as error:
            if self._has_moved(through):
                raise self._moved() from error
            raise
        if self._has_moved(through):
            raise self._moved()

    def _has_moved(self, file: Readable) -> bool:
        return any(not file.read(partial(is_as_it_was, thread=t, keys=k)) for t, k in self.keys.items())

    def _moved(self) -> Moved:
        return Moved(
            f"what was read in {self.reader.info.url} was answered, deleted or written anew meanwhile",
            hint="run the command again: nothing was copied",
        )


@contextmanager
def origin_of(reader: Reader) -> Iterator[Origin]:
    """Yields the source that a reader of one moment is open on."""
    bottom = uncovered(reader)
    if isinstance(bottom, SqliteReader):
        yield Origin(reader, file=None if reader.info.masked else bottom.file, below=bottom.file, keys=bottom.keys)
    elif reader.info.kind == "sqlite":
        with closing(SqliteFile(Path(reader.info.url))) as file:
            yield Origin(reader, file=None if reader.info.masked else file, below=file)
    elif reader.info.kind == "postgres" and not reader.info.masked:
        yield _postgres(reader)
    else:
        yield Origin(reader)


def is_same_file(first: Readable, second: Readable) -> bool:
    """Tells whether two open databases are one file."""
    try:
        return first.path.samefile(second.path)
    except OSError as error:
        raise StoreError(f"cannot read {first.path}: {error.strerror or error}", hint="check the file") from error


def _postgres(reader: Reader) -> Origin:
    from agentctl.stores.postgres.reader import PostgresReader

    if isinstance(reader, PostgresReader):
        return Origin(reader, snapshot=reader.snapshot, layout=reader.layout)
    return Origin(reader)
