"""The entry of a process: the console script and `python -m agentctl`."""

from __future__ import annotations

import gc
import sys
from typing import Final

from agentctl.errors import INTERRUPTED

_MANY_OBJECTS: Final = 100_000
"""Commands make many records and few cycles: looking for these each 700 objects takes a sixth of their time."""


def run() -> None:
    """Runs the command that the process was started with; Ctrl-C while that is still loaded ends it as later on."""
    gc.set_threshold(_MANY_OBJECTS)
    try:
        from agentctl.cli.main import run as run_command

        run_command()
    except KeyboardInterrupt:
        sys.stderr.write("interrupted\n")
        sys.exit(INTERRUPTED)


if __name__ == "__main__":
    run()
