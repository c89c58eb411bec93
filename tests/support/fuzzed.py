"""Commands on rows that may hold anything: what they may do, and what none may."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from agentctl.testing import run_cli
from tests.support.damage import Rows

THREAD = "t"
FORGED = "a_module_that_only_a_row_names"
LOOKING: tuple[tuple[str, ...], ...] = (
    ("threads",),
    ("threads", "--grep", "a"),
    ("history", THREAD, "--all"),
    ("show", THREAD),
    ("show", THREAD, "--messages"),
    ("doctor", THREAD),
    ("doctor", "--all"),
    ("size", THREAD, "--by", "channel"),
    ("diff", f"{THREAD}@root", THREAD),
    ("export", THREAD, "--dataset", "d", "--check", "reply contains x", "--dry-run"),
)


@dataclass(slots=True)
class Imports:
    """A finder that finds nothing, and remembers every module that it was asked for."""

    seen: list[str]

    def find_spec(self, name: str, path: object = None, target: object = None) -> None:
        self.seen.append(name)


def assert_told(url: str, *words: str) -> str:
    """Runs a command, asserts that it ends as documented and never as a fault of ours, and returns what it said."""
    done = run_cli(words[0], "--store", url, *words[1:], environ={}, cwd=Path("/"))
    assert done.code in range(6), f"{' '.join(words)}\n{done.err}"
    assert "Traceback" not in done.err, f"{' '.join(words)}\n{done.err}"
    return done.out + done.err


@contextmanager
def damaged_thread(rows: Rows) -> Iterator[str]:
    """Gives a thread with writes, to be damaged, and takes away what became of it."""
    tables = ["checkpoints", "{writes}", *(["checkpoint_blobs"] if rows.kind == "postgres" else [])]
    rows.run("half done", THREAD)
    try:
        yield THREAD
    finally:
        for table in tables:
            rows.sql(f"DELETE FROM {table}")
