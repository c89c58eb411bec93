"""One copy of a thread, by agentctl or by bare SQL, in a process of its own; prints what it took.

Usage: python -m benchmarks.copies agentctl|bare SOURCE TARGET THREAD
"""

from __future__ import annotations

import json
import resource
import sqlite3
import sys
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import Any
from unittest.mock import patch
from uuid import uuid4

import psycopg

from benchmarks.threads import POSTGRES_TABLES, TABLES


def by_agentctl(source: str, target: str, thread: str, name: str) -> tuple[float, float]:
    """Returns the seconds of a copy but for comparing, and those of comparing.

    Planned, looked for what would be refused, written, counted and committed. What is imported and connected before is
    start-up, as it is of bare SQL, and so is the look for the newest checkpoint, which bare SQL is not asked for.
    """
    from agentctl.stores.copying.execute import copy
    from agentctl.stores.copying.selection import for_copy
    from agentctl.stores.moments import at_one_moment
    from agentctl.stores.open import open_reader, open_writer

    with closing(open_reader(source)) as reader, closing(open_writer(target)) as writer, _comparing() as spent:
        head = max(row.id for row in reader.rows(thread, metadata=False))
        writer.heads()
        began = time.perf_counter()
        with at_one_moment(reader, [thread]) as still:
            copy(still, writer, [for_copy(still, thread, "", head, "all", name)])
        taken = time.perf_counter() - began
    return taken - sum(spent), sum(spent)


@contextmanager
def _comparing() -> Iterator[list[float]]:
    """Gives the seconds that reading back and comparing takes, one number a thread."""
    from agentctl.stores.copying import execute, postgres_same  # imported before the clock runs

    assert postgres_same
    compare, spent = execute._compare, []

    def timed(*arguments: Any) -> None:
        began = time.perf_counter()
        compare(*arguments)
        spent.append(time.perf_counter() - began)

    with patch.object(execute, "_compare", timed):
        yield spent


def bare(source: str, target: str, thread: str, name: str) -> float:
    """Returns the seconds that the same rows take by `INSERT ... SELECT`, or by COPY to another database."""
    if not source.startswith("postgresql://"):
        return _between_files(source, target, thread, name)
    with psycopg.connect(target) as writing, psycopg.connect(source) as reading:
        began = time.perf_counter()
        for table, columns in POSTGRES_TABLES.items():
            names = ", ".join(columns)
            selected = f"SELECT %s::text, {names} FROM {table} WHERE thread_id = %s"
            if source == target:
                writing.execute(f"INSERT INTO {table} (thread_id, {names}) {selected}", (name, thread))
                continue
            with (
                reading.cursor().copy(f"COPY ({selected}) TO STDOUT (FORMAT BINARY)", (name, thread)) as rows,
                writing.cursor().copy(f"COPY {table} (thread_id, {names}) FROM STDIN (FORMAT BINARY)") as into,
            ):
                for block in rows:
                    into.write(block)
        writing.commit()
        return time.perf_counter() - began


def _between_files(source: str, target: str, thread: str, name: str) -> float:
    with closing(sqlite3.connect(target)) as connection:
        connection.execute("ATTACH ? AS source", (source,))
        began = time.perf_counter()
        for table, columns in TABLES.items():
            names = ", ".join(columns)
            connection.execute(
                f"INSERT INTO main.{table} (thread_id, {names}) SELECT ?, {names} FROM source.{table}"
                " WHERE thread_id = ?",
                (name, thread),
            )
        connection.commit()
        return time.perf_counter() - began


def main() -> None:
    """Makes one copy under a new name."""
    way, source, target, thread = sys.argv[1:]
    name = f"{thread}-{uuid4().hex}"
    if way == "agentctl":
        seconds, verify_s = by_agentctl(source, target, thread, name)
    else:
        seconds, verify_s = bare(source, target, thread, name), 0.0
    peak_mb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(json.dumps({"seconds": seconds, "verify_s": verify_s, "peak_mb": peak_mb}))


if __name__ == "__main__":
    main()
