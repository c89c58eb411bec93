"""The checkpointer of the served graphs: the stock saver on the database that DATABASE names."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any


@asynccontextmanager
async def make() -> AsyncIterator[Any]:
    """Yields the saver, set up."""
    database = os.environ["DATABASE"]
    if database.startswith("postgres"):
        from langgraph.checkpoint.postgres.aio import AsyncPostgresSaver

        async with AsyncPostgresSaver.from_conn_string(database) as saver:
            await saver.setup()
            yield saver
    else:
        from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver

        async with AsyncSqliteSaver.from_conn_string(database) as saver:
            await saver.setup()
            yield saver
