"""The list of commands, in the order that help shows them."""

from __future__ import annotations

import typer


def register(app: typer.Typer) -> None:
    """Adds every command to the root."""
    from agentctl.cli import case, config, copy, diagnose, diff, fork, history, replay, resolve, show, threads

    app.command("threads")(threads.threads)
    app.command("history")(history.history)
    app.command("show")(show.show)
    app.command("diff")(diff.diff)
    app.command("resolve")(resolve.resolve)
    app.command("copy")(copy.copy)
    app.command("replay")(replay.replay)
    app.command("fork")(fork.fork)
    app.command("diagnose")(diagnose.diagnose)
    app.add_typer(case.app, name="case", no_args_is_help=True)
    app.add_typer(config.app, name="config", no_args_is_help=True)
