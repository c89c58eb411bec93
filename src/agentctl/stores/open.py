"""From the text of `--store` to an open store. Each kind's code, and its driver, is imported only when it is needed."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from agentctl.errors import Refused, StoreError
from agentctl.stores.base import Reader, Writer
from agentctl.stores.urls import StoreUrl, parse_store_url


def open_reader(
    url: str, *, profile: str = "", schema: str | None = None, warn: Callable[[str], None] = lambda text: None
) -> Reader:
    """Returns a store open for looking; nothing is written, created or set up.

    Args:
        url: A path, `sqlite:///file`, `postgresql://...`, `https://host` or `path.py:attr`.
        profile: The name it was reached by, for messages; '' for none.
        schema: Postgres schema of the tables; None takes the search path.
        warn: Told while reading what an Agent Server does not give.

    Raises:
        StoreError: It cannot be opened, or is no LangGraph store.
    """
    target = parse_store_url(url)
    _refuse_schema(target, schema)
    match target.kind:
        case "sqlite":
            from agentctl.stores.sqlite.reader import SqliteReader

            return SqliteReader(Path(target.location), profile=profile)
        case "postgres":
            from agentctl.stores.postgres.reader import PostgresReader

            return PostgresReader(target.location, schema=schema, profile=profile)
        case "saver":
            from agentctl.stores.saver import SaverReader

            return SaverReader(Path(target.location), target.attribute, profile=profile)
        case "server":
            from agentctl.stores.server.reader import ServerReader

            return ServerReader(target.location, profile=profile, warn=warn)


def open_writer(url: str, *, profile: str = "", schema: str | None = None) -> Writer:
    """Returns a store open for writing. Its tables are made by `setup()`, not by opening it.

    Raises:
        StoreError: It cannot be opened.
        Refused: It is a store that can only be read.
    """
    target = parse_store_url(url)
    _refuse_schema(target, schema)
    match target.kind:
        case "sqlite":
            from agentctl.stores.sqlite.writer import SqliteWriter

            return SqliteWriter(Path(target.location), profile=profile)
        case "postgres":
            from agentctl.stores.postgres.writer import PostgresWriter

            return PostgresWriter(target.location, schema=schema, profile=profile)
        case "saver":
            raise Refused(
                f"{url} can be read, not written: a saver has no way to put whole rows",
                hint="copy into a SQLite file or a Postgres database: --to FILE.sqlite",
            )
        case "server":
            raise Refused(
                f"{target.location} can be read, not written: an Agent Server takes no stored rows",
                hint="copy into a SQLite file or a Postgres database: --to FILE.sqlite",
            )


def _refuse_schema(target: StoreUrl, schema: str | None) -> None:
    if schema is not None and target.kind != "postgres":
        raise StoreError("only Postgres has schemas", hint="leave --schema out")
