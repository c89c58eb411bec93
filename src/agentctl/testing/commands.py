"""Commands in this process."""

from __future__ import annotations

import io
import json
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from agentctl.cli.env import Env
from agentctl.cli.main import main


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
