"""The world a command runs in: streams, terminal, clock, environment, configuration. Tests pass their own."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import TextIO


@dataclass(slots=True)
class Env:
    """Everything a command may touch outside its arguments.

    `width` is the terminal's columns; `is_terminal` and `err_is_terminal` decide between tables and plain lines.
    """

    stdin: TextIO
    stdout: TextIO
    stderr: TextIO
    environ: Mapping[str, str]
    cwd: Path
    is_terminal: bool
    err_is_terminal: bool
    width: int
    now: Callable[[], datetime]
    as_json: bool = False
    argv: tuple[str, ...] = field(default=())

    @property
    def colour(self) -> bool:
        """Whether the answer may be coloured: a terminal, and NO_COLOR not set."""
        return self.is_terminal and not self.environ.get("NO_COLOR")


def real_env(argv: list[str]) -> Env:
    """Returns the process's own world."""
    out_tty, err_tty = sys.stdout.isatty(), sys.stderr.isatty()
    return Env(
        stdin=sys.stdin,
        stdout=sys.stdout,
        stderr=sys.stderr,
        environ=os.environ,
        cwd=Path.cwd(),
        is_terminal=out_tty,
        err_is_terminal=err_tty,
        width=shutil.get_terminal_size((80, 24)).columns,
        now=lambda: datetime.now(UTC),
        as_json="--json" in argv,
        argv=tuple(argv),
    )
