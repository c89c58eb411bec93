"""The entry of a process: the console script and `python -m agentctl`."""

from __future__ import annotations

import sys

from agentctl.errors import INTERRUPTED


def run() -> None:
    """Runs the command that the process was started with; Ctrl-C while that is still loaded ends it as later on."""
    try:
        from agentctl.cli.main import run as run_command

        run_command()
    except KeyboardInterrupt:
        sys.stderr.write("interrupted\n")
        sys.exit(INTERRUPTED)


if __name__ == "__main__":
    run()
