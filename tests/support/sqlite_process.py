"""Another process with a SQLite file open: the application that writes while agentctl looks."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from types import TracebackType

_CODE = """
import sqlite3, sys
connection = sqlite3.connect(sys.argv[1], isolation_level=None)
for line in sys.stdin:
    rows = connection.execute(line).fetchall()
    print(len(rows), flush=True)
"""


class SqlProcess:
    """A child that runs SQL statements, one line each, on one connection of its own."""

    def __init__(self, path: Path) -> None:
        self._child = subprocess.Popen(
            [sys.executable, "-c", _CODE, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def __enter__(self) -> SqlProcess:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.end()

    def run(self, *statements: str) -> int:
        """Runs statements and returns how many rows the last one gave; each is done when this returns."""
        assert self._child.stdin is not None
        assert self._child.stdout is not None
        n_rows = 0
        for statement in statements:
            self._child.stdin.write(statement.replace("\n", " ") + "\n")
            self._child.stdin.flush()
            answer = self._child.stdout.readline()
            assert answer, f"the process died of: {statement}"
            n_rows = int(answer)
        return n_rows

    def kill(self) -> None:
        """Ends it as a crash does: nothing is rolled back, checkpointed or deleted."""
        self._child.kill()
        self._wait()

    def end(self) -> None:
        """Closes its input, on which it closes the database and ends."""
        if self._child.stdin is not None and not self._child.stdin.closed:
            self._child.stdin.close()
        self._wait()

    def _wait(self) -> None:
        self._child.wait()
        for pipe in (self._child.stdin, self._child.stdout):
            if pipe is not None and not pipe.closed:
                pipe.close()
