"""The list of commands, in the order that help shows them, and the root that runs one of them.

A command's module is imported only when the command is named: `agentctl history` does not pay for what `diagnose`
needs, and the list of commands pays for none of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from typing import Annotated, Final

import typer

from agentctl import __version__

COMMANDS: Final = (
    ("threads", "agentctl.cli.threads:threads", "Find threads by user, time, status or text."),
    ("history", "agentctl.cli.history:history", "List a thread's checkpoints and branches."),
    ("show", "agentctl.cli.show:show", "Show a checkpoint, a conversation or a tool call."),
    ("diff", "agentctl.cli.diff:diff", "Show what differs between two checkpoints."),
    ("resolve", "agentctl.cli.resolve:resolve", "Say which checkpoint a target names, and why."),
    ("size", "agentctl.cli.size:size", "Show what a store or a thread takes, and what takes it."),
    ("doctor", "agentctl.cli.doctor:doctor", "Say what is wrong with stored threads, and what helps."),
    ("prune", "agentctl.cli.prune:prune", "Take old checkpoints or whole threads away."),
    ("copy", "agentctl.cli.copy:copy", "Copy checkpoints into a new thread."),
    ("replay", "agentctl.cli.replay:replay", "Run from a checkpoint again, on copies."),
    ("fork", "agentctl.cli.fork:fork", "Run on with something changed, on a copy."),
    ("diagnose", "agentctl.cli.diagnose:diagnose", "Replay, fork, compare, and give a verdict."),
    ("export", "agentctl.cli.export:export", "Add a branch to a dataset of examples."),
    ("run", "agentctl.cli.run:run", "Run a workflow on a thread of its own."),
    ("resume", "agentctl.cli.resume:resume", "Answer what a thread waits for, and run on."),
    ("sandbox", "agentctl.cli.sandbox:app", "Start a registry of sandbox tools, and check it."),
    ("tour", "agentctl.cli.tour:tour", "Walk real incidents from customer to verdict."),
    ("case", "agentctl.cli.case:app", "Open, list, show and close cases."),
    ("audit", "agentctl.cli.audit:app", "Show and check who looked at what, and why."),
    ("config", "agentctl.cli.config:app", "Show what is configured, and where."),
)
"""Name; where the command or the group of commands (a `typer.Typer`) is; what the list of commands says of it."""


def build(argv: Sequence[str] = ()) -> typer.Typer:
    """Returns the root with the command that a command line names; where it names none, with a list of all of them."""
    app = typer.Typer(
        name="agentctl",
        add_completion=False,
        pretty_exceptions_enable=False,
        rich_markup_mode=None,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    app.callback()(_root)
    first = next((word for word in argv if not word.startswith("-")), None)
    named = next((entry for entry in COMMANDS if entry[0] == first), None)
    if named is not None:
        _add(app, *named)
        return app
    for name, _, in_short in COMMANDS:
        app.command(name, short_help=in_short)(_listed)
    return app


def _add(app: typer.Typer, name: str, place: str, in_short: str) -> None:
    """Imports a command or a group of commands, and adds it."""
    module, _, attribute = place.partition(":")
    command = getattr(import_module(module), attribute)
    if isinstance(command, typer.Typer):
        app.add_typer(command, name=name, short_help=in_short)
    else:
        app.command(name, short_help=in_short)(command)


def _listed() -> None:
    """Stands for a command that is listed, and suggested for a mistyped name, but not run."""


def _version(value: bool) -> None:
    if value:
        typer.echo(f"agentctl {__version__}")
        raise typer.Exit


def _root(
    version: Annotated[
        bool, typer.Option("--version", help="Print the version and exit.", is_eager=True, callback=_version)
    ] = False,
) -> None:
    """Operations and time travel for LangGraph agents. Looking never writes; experiments run on copies."""
