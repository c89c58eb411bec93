"""One application in a test: its graph, the store that it checkpoints into, and commands on both."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

import pytest
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver

from agentctl.testing import CliResult, run_cli
from tests.catalog import config_of
from tests.support.copies import stock_saver

RUNNING = frozenset({"replay", "fork", "diagnose", "resume"})
"""Commands that take the graph."""


Apps = Callable[[str], "Application"]
"""From a graph of `tests/field/graphs`, named as `file.py:attr`, to its application on a test's store."""

ON_BOTH_STORES = pytest.mark.parametrize("store", ["sqlite", "postgres"], indirect=True)


@dataclass(frozen=True)
class Application:
    """A graph in a file, threads of it in a store, and a debug store of its own.

    Attributes:
        folder: Where commands run; the debug store is made there.
        store: The store.
        graph: `path.py:attr`, as `--graph` takes it.
    """

    folder: Path
    store: str
    graph: str

    def __call__(self, *words: object, **how: Any) -> CliResult:
        """Runs a command on the application's threads."""
        verb, *_ = words
        given = (*words, "--store", self.store, "--debug-store", self._debug)
        if verb in RUNNING:
            given += ("--graph", self.graph)
        return run_cli(*map(str, given), cwd=self.folder, **how)

    def debug(self, verb: str, thread: str, *words: object, **how: Any) -> CliResult:
        """Looks at a debug thread."""
        return run_cli(verb, f"debug::{thread}", *map(str, words), "--debug-store", self._debug, cwd=self.folder, **how)

    def write(self, name: str, text: str) -> str:
        """Writes a file beside the application and returns its name."""
        (self.folder / name).write_text(text, "utf-8")
        return name

    @property
    def module(self) -> Any:
        """The file of the graph, imported by itself: what commands load is another copy."""
        path = Path(self.graph.rpartition(":")[0])
        name = f"application_{path.stem}"
        if name not in sys.modules:
            spec = spec_from_file_location(name, path)
            assert spec and spec.loader
            sys.modules[name] = module_from_spec(spec)
            spec.loader.exec_module(sys.modules[name])
        return sys.modules[name]

    @contextmanager
    def stock(self) -> Iterator[Any]:
        """Yields the graph on the stock saver of the store; its tools may act while it is open."""
        named = getattr(self.module, self.graph.rpartition(":")[2])
        graph = named if hasattr(named, "invoke") else named()
        with stock_saver(self.store) as saver, self._live():
            yield graph.copy(update={"checkpointer": saver})

    def run(self, *inputs: object, thread: str = "t") -> None:
        """Runs the graph for real, once an input; what it raises is left in the rows."""
        with self.stock() as graph:
            for value in inputs:
                try:
                    graph.invoke(value, config_of(thread) | {"max_concurrency": 1}, durability="sync")
                except ValueError:
                    continue

    def run_async(self, *inputs: object, thread: str = "t") -> None:
        """Runs the graph for real in an event loop, once an input; the store is a SQLite file."""

        async def run() -> None:
            graph = getattr(self.module, self.graph.rpartition(":")[2])
            async with AsyncSqliteSaver.from_conn_string(self.store) as saver:
                for value in inputs:
                    bound = graph.copy(update={"checkpointer": saver})
                    await bound.ainvoke(value, config_of(thread), durability="sync")

        with self._live():
            asyncio.run(run())

    def state(self, thread: str = "t") -> Any:
        """Returns what stock LangGraph says of a thread."""
        with self.stock() as graph:
            return graph.get_state(config_of(thread))

    @contextmanager
    def _live(self) -> Iterator[None]:
        live = getattr(self.module, "LIVE", None)
        token = live.set(True) if live is not None else None
        try:
            yield
        finally:
            if live is not None:
                live.reset(token)

    @property
    def _debug(self) -> str:
        return str(self.folder / "debug" / "debug.sqlite")


def application(folder: Path, store: str, graph: str) -> Application:
    """Returns an application with the folders that it needs."""
    (folder / "debug").mkdir(exist_ok=True)
    return Application(folder, store, graph)
