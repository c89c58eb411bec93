"""The stores that are measured: made when first asked for, with the threads that are asked for."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

import psycopg

Kind = Literal["SQLite", "Postgres"]
KINDS: tuple[Kind, ...] = ("SQLite", "Postgres")

N_SMALL = 15
"""Length of `small`, the thread whose history stands for start-up."""


@dataclass(frozen=True, slots=True)
class Stores:
    """Stores by name in one temporary folder and one Postgres server.

    Attributes:
        folder: Holds the SQLite files.
        server: URL of the Postgres server.
        shorter: Divides the length of threads.
    """

    folder: Path
    server: str
    shorter: int
    _made: set[tuple[str, str]] = field(default_factory=set)
    _outputs: dict[tuple[str, ...], str] = field(default_factory=dict)

    def place(self, kind: Kind, name: str) -> str:
        """Returns the path or URL of a store, with tables and a thread `small` of 15 checkpoints of `chat`."""
        store = f"{self.folder}/{name}.sqlite" if kind == "SQLite" else self.server.replace("/postgres?", f"/{name}?")
        if (kind, name) not in self._made:
            self._made.add((kind, name))
            if kind == "Postgres":
                with psycopg.connect(self.server, autocommit=True) as connection:
                    connection.execute(f"CREATE DATABASE {name}")
            self.write(store, "make", "chat", "small", N_SMALL)
        return store

    def thread(self, store: str, kind: str, length: int) -> str:
        """Returns the name of a thread of `length` checkpoints."""
        name = f"{kind}-{length}"
        self.write(store, "make", kind, name, self.length(length))
        return name

    def length(self, length: int) -> int:
        """Returns a length, shortened where asked."""
        return max(length // self.shorter, 20)

    def write(self, store: str, *arguments: object) -> str:
        """Writes threads by `benchmarks.threads`, the same once; returns what it prints."""
        words = (store, *map(str, arguments))
        if words not in self._outputs:
            command = [sys.executable, "-m", "benchmarks.threads", *words]
            self._outputs[words] = subprocess.run(command, check=True, capture_output=True, text=True).stdout
        return self._outputs[words]

    def drop(self, kind: Kind, name: str) -> None:
        """Removes a store that no other measurement needs."""
        self._made.discard((kind, name))
        if kind == "Postgres":
            with psycopg.connect(self.server, autocommit=True) as connection:
                connection.execute(f"DROP DATABASE IF EXISTS {name} WITH (FORCE)")
        else:
            for path in self.folder.glob(f"{name}.sqlite*"):
                path.unlink()

    def n_bytes(self) -> int:
        """Returns how much disk the stores take now."""
        with psycopg.connect(self.server, autocommit=True) as connection:
            found = connection.execute("SELECT sum(pg_database_size(oid))::bigint FROM pg_database").fetchone()
        return sum(path.stat().st_size for path in self.folder.iterdir() if path.is_file()) + (found[0] if found else 0)
