"""Helpers for tests of agentctl and of applications that use it: commands in process, threads, a scripted model."""

from __future__ import annotations

import io
import json
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agentctl.cli.env import Env
from agentctl.cli.main import main

if TYPE_CHECKING:
    from langgraph.graph.state import CompiledStateGraph


@dataclass(frozen=True, slots=True)
class CliResult:
    """What a command printed and how it ended."""

    out: str
    err: str
    code: int

    @property
    def json(self) -> Any:
        """The JSON document on stdout.

        Raises:
            ValueError: stdout is not one JSON document.
        """
        return json.loads(self.out)

    @property
    def rows(self) -> list[list[str]]:
        """The tab-separated cells of each line on stdout."""
        return [line.split("\t") for line in self.out.splitlines()]


def run_cli(
    *args: str | Path,
    environ: Mapping[str, str] | None = None,
    cwd: Path | None = None,
    stdin: str = "",
    terminal: bool = False,
    width: int = 100,
    now: Callable[[], datetime] | None = None,
) -> CliResult:
    """Runs `agentctl ARGS` in this process and returns what it printed.

    Args:
        args: The command line after `agentctl`.
        environ: Environment variables; this process's own without it.
        cwd: The folder that the command runs in, for configuration and relative paths.
        stdin: Text on standard input.
        terminal: Whether stdout is a terminal: tables instead of tab-separated lines.
        width: The terminal's columns.
        now: The clock.
    """
    out, err = io.StringIO(), io.StringIO()
    argv = [str(arg) for arg in args]
    env = Env(
        stdin=io.StringIO(stdin),
        stdout=out,
        stderr=err,
        environ=dict(os.environ if environ is None else environ),
        cwd=cwd or Path.cwd(),
        is_terminal=terminal,
        err_is_terminal=False,
        width=width,
        now=now or (lambda: datetime.now(UTC)),
        as_json="--json" in argv,
        argv=tuple(argv),
    )
    code = main(argv, env)
    return CliResult(out.getvalue(), err.getvalue(), code)


def build_thread(
    graph: CompiledStateGraph[Any, Any, Any, Any],
    database: Path,
    thread: str,
    *inputs: object,
    metadata: Mapping[str, str] | None = None,
) -> None:
    """Runs a graph on a SQLite checkpoint file, once an input, in one thread.

    Args:
        graph: A compiled graph; its checkpointer is replaced.
        database: The SQLite file, created where it is missing.
        thread: Thread id.
        inputs: State updates, `Command`s, or None to go on.
        metadata: Kept with every checkpoint.
    """
    from langgraph.checkpoint.sqlite import SqliteSaver

    with SqliteSaver.from_conn_string(str(database)) as saver:
        bound = graph.copy(update={"checkpointer": saver})
        config: Any = {"configurable": {"thread_id": thread}, "metadata": dict(metadata or {})}
        for value in inputs:
            bound.invoke(value, config, durability="sync")
