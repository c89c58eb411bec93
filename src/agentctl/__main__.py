"""Runs `python -m agentctl`."""

from agentctl.cli.main import run

if __name__ == "__main__":
    run()
