"""What a case of the catalog is, and how it is run on a saver."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.checkpoint.sqlite import SqliteSaver

Saver = BaseCheckpointSaver[Any]
Build = Callable[[Saver | None], Any]


@dataclass(frozen=True, slots=True)
class ThreadCase:
    """A real graph and what was done with one thread of it.

    Attributes:
        name: Key in the catalog.
        build: Compiles a fresh graph on a saver; None compiles it without one (the functional API included).
        run: Drives one thread of that graph to its end, every run with durability "sync" unless the case says exit.
        notes: What the case is there for, in one line.
        thread: Thread id to use where the caller has no reason to choose another.
    """

    name: str
    build: Build
    run: Callable[[Any, str], None]
    notes: str
    thread: str


def case(name: str, build: Build, run: Callable[[Any, str], None], notes: str, *, thread: str = "") -> ThreadCase:
    return ThreadCase(name, build, run, notes, thread or f"t-{name.replace(' ', '-')}")


def config_of(thread: str, **configurable: Any) -> dict[str, Any]:
    return {"configurable": {"thread_id": thread, **configurable}}


def go(graph: Any, thread: str, value: Any, *, at: str | None = None) -> Any:
    """Runs the graph with durability "sync", from the head or from checkpoint `at`, and returns its output."""
    where = {"checkpoint_id": at} if at else {}
    return graph.invoke(value, config_of(thread, **where), durability="sync")


def go_failing(graph: Any, thread: str, value: Any) -> None:
    """Runs the graph one task at a time and expects it to raise.

    The task that raises has to be the last of its step: its siblings have then finished for certain.
    """
    with pytest.raises(ValueError):
        graph.invoke(value, config_of(thread) | {"max_concurrency": 1}, durability="sync")


def before(graph: Any, thread: str, node: str) -> Any:
    """Returns the config of the oldest checkpoint about to run `node`."""
    return [s for s in graph.get_state_history(config_of(thread)) if node in s.next][-1].config


def run_case(case: ThreadCase, saver: Saver, thread: str | None = None) -> Any:
    """Builds the case's graph on a stock saver, runs its thread there, and returns the graph."""
    graph = case.build(saver)
    case.run(graph, thread or case.thread)
    return graph


@contextmanager
def sqlite_case(folder: Path, case: ThreadCase, thread: str | None = None) -> Iterator[tuple[Path, Any]]:
    """Lays a case down in a new SQLite file; yields the file and its graph, whose saver is open until the end."""
    path = sqlite_thread(folder, case, thread)
    with SqliteSaver.from_conn_string(str(path)) as saver:
        saver.setup()
        yield path, case.build(saver)


def sqlite_thread(folder: Path, case: ThreadCase, thread: str | None = None) -> Path:
    """Lays a case down in a new SQLite file and returns its path; a case is run once a process, then copied."""
    path = folder / "threads.sqlite"
    path.write_bytes(_content(case, thread or case.thread))
    return path


@cache
def _content(case: ThreadCase, thread: str) -> bytes:
    """Runs a case in a SQLite file of its own and returns what is in the file once it is closed."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / "threads.sqlite"
        with SqliteSaver.from_conn_string(str(path)) as saver:
            saver.setup()
            run_case(case, saver, thread)
        return path.read_bytes()
