"""Where a copy reads from: the rows themselves where the kind of store gives them, else the `Reader` protocol."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from agentctl.stores.base import Reader
from agentctl.stores.sqlite.keys import ThreadKeys
from agentctl.stores.sqlite.opening import Readable, SqliteFile
from agentctl.stores.sqlite.reader import SqliteReader

if TYPE_CHECKING:
    from agentctl.stores.postgres.layout import Layout
    from agentctl.stores.postgres.snapshots import Snapshot


@dataclass(frozen=True, slots=True)
class Origin:
    """A source at one moment.

    Attributes:
        reader: It.
        file: The file of a SQLite source.
        keys: The rows that are seen in it, by thread.
        snapshot: What is seen of a Postgres source, with the connection that sees it.
        layout: Where its tables are.
    """

    reader: Reader
    file: Readable | None = None
    keys: Mapping[str, ThreadKeys] = field(default_factory=dict)
    snapshot: Snapshot | None = None
    layout: Layout | None = None


@contextmanager
def origin_of(reader: Reader) -> Iterator[Origin]:
    """Yields the source that a reader of one moment is open on; of a masked one nothing but what the reader gives."""
    if reader.info.masked:
        yield Origin(reader)
    elif reader.info.kind == "sqlite":
        file = SqliteFile(Path(reader.info.url))
        try:
            yield Origin(reader, file=file, keys=reader.keys if isinstance(reader, SqliteReader) else {})
        finally:
            file.close()
    elif reader.info.kind == "postgres":
        yield _postgres(reader)
    else:
        yield Origin(reader)


def _postgres(reader: Reader) -> Origin:
    from agentctl.stores.postgres.reader import PostgresReader

    if isinstance(reader, PostgresReader):
        return Origin(reader, snapshot=reader.snapshot, layout=reader.layout)
    return Origin(reader)
