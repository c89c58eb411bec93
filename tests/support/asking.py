"""Commands about a seeded production store, each with a debug store of the test's own, answered as documents."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from agentctl.testing import run_cli


class Ask:
    """Runs commands in a project folder.

    Args:
        folder: The folder with the configuration.
        state: Where debug store and cases go.
        environ: Variables beside those of the process.
    """

    def __init__(self, folder: Path, state: Path, environ: Mapping[str, str] | None = None) -> None:
        self._folder = folder
        self._environ = {**os.environ, "XDG_STATE_HOME": str(state), **(environ or {})}

    def __call__(self, *words: str, code: int = 0) -> Any:
        done = run_cli(*words, "--json", cwd=self._folder, environ=self._environ)
        assert done.code == code, done.out
        return done.json

    def values(self, target: str) -> Mapping[str, Any]:
        """The state at a target."""
        values: Mapping[str, Any] = self("show", target)["values"]
        return values

    def run(self, *words: str) -> Mapping[str, Any]:
        """The only run of a replay or fork."""
        (run,) = self(*words)["runs"]
        assert isinstance(run, Mapping)
        return run


def called(run: Mapping[str, Any]) -> list[str]:
    """The tools that a run called, in order."""
    return [call["name"] for call in run["tool_calls"]]
