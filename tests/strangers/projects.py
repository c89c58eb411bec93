"""A project of an application that knows nothing of agentctl, and threads that its graphs really ran."""

from __future__ import annotations

import asyncio
import shutil
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from langchain_core.messages import HumanMessage
from langgraph.checkpoint.postgres.aio import AsyncPostgresSaver
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver

from agentctl.sandbox.loading import load_graph
from agentctl.testing import CliResult, run_cli

SPECS = {
    "keyed": "graph",
    "inside": "make",
    "lazy": "builder",
    "lazynode": "builder",
    "handoff": "make",
    "workflow": "graph",
    "nested": "make",
    "deep": "make",
    "remote": "builder",
}
"""Graphs of `desk_app` by module, with the attribute that holds them."""

KEY = "DESK_KEY=a-key"
REGION = '{"region": "EU"}'
ASKED = {"messages": [HumanMessage("where is my order?")]}
WHERE: Any = {"configurable": {"thread_id": "t"}}
_SYNC_ONLY = "keyed"


@dataclass
class Project:
    """`desk_app` in a folder of its own.

    Attributes:
        folder: The project; `desk_app` is a package in it.
        really: What the threads' own runs did outside, by graph.
    """

    folder: Path
    really: dict[str, list[str]] = field(default_factory=dict)

    @classmethod
    def copied_to(cls, folder: Path) -> Project:
        source = Path(__file__).with_name("desk_app")
        shutil.copytree(source, folder / source.name, ignore=shutil.ignore_patterns("__pycache__"))
        return cls(folder)

    def world(self) -> list[str]:
        """What really happened outside since the last thread was made."""
        log = self.folder / "desk_app" / "world.log"
        return log.read_text("utf-8").splitlines() if log.exists() else []

    def spec(self, name: str) -> str:
        return f"desk_app/{name}.py:{SPECS[name]}"

    def store(self, name: str) -> Path:
        return self.folder / f"{name}.sqlite"

    def record(self, name: str) -> None:
        """Makes the thread `t` of a graph with its own tools, once."""
        (self.folder / "desk_app" / "world.log").unlink(missing_ok=True)
        if name not in self.really:
            with load_graph(self.spec(name), cwd=self.folder, env=dict([KEY.split("=")])) as loaded:
                context = {"context": {"region": "EU"}} if loaded.context_fields else {}
                _run(loaded.graph, str(self.store(name)), sync=name == _SYNC_ONLY, **context)
            self.really[name] = self.world()
            (self.folder / "desk_app" / "world.log").unlink()

    def record_on_postgres(self, name: str, url: str) -> None:
        """Makes the thread of a graph in a Postgres database."""

        async def run(graph: Any) -> None:
            async with AsyncPostgresSaver.from_conn_string(url) as saver:
                await saver.setup()
                await graph.copy(update={"checkpointer": saver}).ainvoke(ASKED, WHERE, durability="sync")

        with load_graph(self.spec(name), cwd=self.folder) as loaded:
            asyncio.run(run(loaded.graph))
        (self.folder / "desk_app" / "world.log").unlink()

    def __call__(self, verb: str, *words: str, graph: str) -> CliResult:
        """Runs a command about the thread of a graph."""
        given = ("--graph", self.spec(graph), "--env", KEY, "--store", str(self.store(graph)), "--json")
        context = ("--context", REGION) if graph == "inside" else ()
        return run_cli(verb, *words, *given, *context, cwd=self.folder)


def _run(graph: Any, store: str, *, sync: bool, **context: Any) -> None:
    async def run() -> None:
        async with AsyncSqliteSaver.from_conn_string(store) as saver:
            await graph.copy(update={"checkpointer": saver}).ainvoke(ASKED, WHERE, durability="sync", **context)

    if not sync:
        asyncio.run(run())
        return
    with SqliteSaver.from_conn_string(store) as saver:
        graph.copy(update={"checkpointer": saver}).invoke(ASKED, WHERE, durability="sync", **context)
