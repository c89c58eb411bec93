"""Commands in a process in which some packages are not there."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from tests.support.processes import TIMEOUT_S, Finished

_RUN = """
import sys
from importlib.abc import MetaPathFinder

ABSENT = frozenset(sys.argv[1].split(","))


class Absent(MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ABSENT:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)


sys.meta_path.insert(0, Absent())
from agentctl.cli.env import real_env
from agentctl.cli.main import main

sys.exit(main(sys.argv[2:], real_env(sys.argv[2:])))
"""


def run_without(absent: Sequence[str], *args: str, cwd: Path) -> Finished:
    """Runs `agentctl ARGS` where importing a module of `absent`, or one below it, fails as if it were not installed."""
    done = subprocess.run(
        [sys.executable, "-c", _RUN, ",".join(absent), *args],
        cwd=cwd,
        env={**os.environ, "NO_COLOR": "1"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        check=False,
    )
    return Finished(done.returncode, done.stdout, done.stderr)
