"""Real `agentctl` processes."""

from __future__ import annotations

import json
import os
import shlex
import signal
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

TIMEOUT_S = 120.0
MODULE = (sys.executable, "-m", "agentctl")


@dataclass(frozen=True)
class Finished:
    """A process that ended."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """The document on stdout."""
        return json.loads(self.out)

    def ok(self) -> Finished:
        """Returns itself where the process ended well."""
        assert self.code == 0, f"exit {self.code}\n{self.out}\n{self.err}"
        return self


@dataclass(frozen=True)
class Shell:
    """A folder and an environment in which commands are typed; `agentctl` in them is `program`."""

    cwd: Path
    program: tuple[str, ...] = MODULE
    variables: Mapping[str, str] = field(default_factory=dict)

    def type(self, command: str) -> Finished:
        """Runs one command line, such as `agentctl history THREAD`, and waits for its end."""
        done = subprocess.run(
            self.words(command),
            cwd=self.cwd,
            env=self.environ,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=TIMEOUT_S,
            check=False,
        )
        return Finished(done.returncode, done.stdout, done.stderr)

    def start(self, command: str) -> subprocess.Popen[str]:
        """Starts a command line with its output in pipes."""
        return subprocess.Popen(
            self.words(command),
            preexec_fn=obey_ctrl_c,
            cwd=self.cwd,
            env=self.environ,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    @property
    def environ(self) -> dict[str, str]:
        """This process's environment, as the test fixtures left it, and the shell's own variables."""
        return {**os.environ, **self.variables}

    def words(self, command: str) -> list[str]:
        """Splits a command line as a shell does."""
        name, *rest = shlex.split(command)
        assert name == "agentctl"
        return [*self.program, *rest]


def obey_ctrl_c() -> None:
    """A test run in the background of a shell ignores SIGINT, and its children would too."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
