"""Whether two open stores are one: the same file, or the same tables of a database."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

from agentctl.config.places import same_store
from agentctl.stores.base import Reader, Writer


@runtime_checkable
class Covering(Reader, Protocol):
    """A reader around another one, whose rows it gives in another form."""

    @property
    def covered(self) -> Reader:
        """The other one."""
        ...


def uncovered(reader: Reader) -> Reader:
    """Returns the reader that is at the bottom of one that may cover another."""
    while isinstance(reader, Covering):
        reader = reader.covered
    return reader


def same_tables(source: Reader, target: Writer) -> bool:
    """Returns whether what is written to one store appears in the other. Two schemas of a database are two stores."""
    source = uncovered(source)
    if not same_store(source.info.url, target.info.url):
        return False
    if source.info.kind != "postgres":
        return True
    from agentctl.stores.postgres.reader import PostgresReader
    from agentctl.stores.postgres.writer import PostgresWriter

    if not (isinstance(source, PostgresReader) and isinstance(target, PostgresWriter)):
        return True
    return target.found_schema() in (None, source.layout.schema)
