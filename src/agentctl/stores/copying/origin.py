"""Where a copy reads from: the rows themselves where the kind of store gives them, else the `Reader` protocol."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from agentctl.stores.base import Reader
from agentctl.stores.sqlite.opening import Readable, SqliteFile


@dataclass(frozen=True, slots=True)
class Origin:
    """A source. `file` is there for SQLite, `url` (password included) and `schema` for Postgres."""

    reader: Reader
    file: Readable | None = None
    url: str | None = None
    schema: str | None = None


@contextmanager
def origin_of(reader: Reader) -> Iterator[Origin]:
    """Yields the source that a reader or writer is open on."""
    if reader.info.kind == "sqlite":
        file = SqliteFile(Path(reader.info.url))
        try:
            yield Origin(reader, file=file)
        finally:
            file.close()
    elif reader.info.kind == "postgres":
        yield _postgres(reader)
    else:
        yield Origin(reader)


def _postgres(reader: Reader) -> Origin:
    from agentctl.stores.postgres.reader import PostgresReader
    from agentctl.stores.postgres.writer import PostgresWriter

    if isinstance(reader, PostgresReader):
        return Origin(reader, url=reader.url, schema=reader.layout.schema)
    if isinstance(reader, PostgresWriter):
        return Origin(reader, url=reader.url, schema=reader.schema)
    return Origin(reader)
