"""Real processes that run a `dying_*` module until they have killed themselves.

They are forked from one process that has imported what they need and has no threads, so that Python and LangGraph are
loaded once and not again for every test. That process is this module, run with `-m`. A line on its stdin is a JSON list
of a file for stderr, a module of `tests.support` and the arguments of its `main`; a line on its stdout is an exit code.
"""

from __future__ import annotations

import importlib
import json
import os
import signal
import subprocess
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

REPOSITORY = Path(__file__).parents[2]


class Killed:
    """Runs modules in processes of their own, one after the other."""

    def __init__(self) -> None:
        self._parent: subprocess.Popen[str] | None = None

    def __call__(self, module: str, *arguments: str) -> None:
        """Runs `tests.support.MODULE.main(*arguments)` in a process that must end by SIGKILL."""
        if self._parent is None:
            self._parent = _started()
        assert self._parent.stdin is not None and self._parent.stdout is not None
        with TemporaryDirectory() as folder:
            stderr = Path(folder) / "stderr"
            print(json.dumps([str(stderr), module, *arguments]), file=self._parent.stdin, flush=True)
            code = self._parent.stdout.readline()
            printed = stderr.read_text("utf-8") if stderr.exists() else ""
        assert code == f"{-signal.SIGKILL}\n", f"{module} ended with {code!r}\n{printed}"

    def close(self) -> None:
        """Ends the process that they are forked from."""
        if self._parent is not None:
            self._parent.communicate()


def _started() -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "tests.support.killed"],
        cwd=REPOSITORY,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


def _serve() -> None:
    for line in sys.stdin:
        stderr, module, *arguments = json.loads(line)
        main = importlib.import_module(f"tests.support.{module}").main
        child = os.fork()
        if child == 0:
            _become(main, arguments, stderr)
        _, status = os.waitpid(child, 0)
        print(os.waitstatus_to_exitcode(status), flush=True)


def _become(main: Callable[..., Any], arguments: list[str], stderr: str) -> None:
    """Runs in the child, and never returns to the loop that it was forked in."""
    to_file, nothing = os.open(stderr, os.O_CREAT | os.O_WRONLY), os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.dup2(to_file, 1)
    os.dup2(to_file, 2)
    try:
        main(*arguments)
    except BaseException:
        traceback.print_exc()
        os._exit(1)
    os._exit(0)


if __name__ == "__main__":
    _serve()
