"""The root command and the one place where errors become exit codes."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from typing import Annotated

import typer

from agentctl import __version__
from agentctl.cli.env import Env, real_env
from agentctl.cli.output import emit_text, fail
from agentctl.errors import AgentctlError, UsageError

CLOSED_PIPE, INTERRUPTED, OUR_BUG = 141, 130, 70

app = typer.Typer(
    name="agentctl",
    help="Operations and time travel for LangGraph agents. Looking never writes; experiments run on copies.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _version(ctx: typer.Context, value: bool) -> None:
    if value:
        emit_text(ctx.obj, f"agentctl {__version__}")
        raise typer.Exit


@app.callback()
def root(
    version: Annotated[
        bool, typer.Option("--version", help="Print the version and exit.", is_eager=True, callback=_version)
    ] = False,
) -> None:
    """Operations and time travel for LangGraph agents. Looking never writes; experiments run on copies."""


def _register() -> None:
    from agentctl.cli import commands

    commands.register(app)


def main(argv: Sequence[str], env: Env) -> int:
    """Runs one command in `env` and returns its exit code (docs/exit-codes.md); never raises for a known cause."""
    if not app.registered_commands:
        _register()
    try:
        code = app(list(argv), prog_name="agentctl", standalone_mode=False, obj=env)
    except AgentctlError as error:
        fail(env, error)
        return error.exit_code
    except typer.TyperException as error:
        fail(env, _usage(error))
        return UsageError.exit_code
    except (KeyboardInterrupt, typer.Abort):
        env.stderr.write("interrupted\n")
        return INTERRUPTED
    except BrokenPipeError:
        return CLOSED_PIPE
    return code if isinstance(code, int) else 0


def _usage(error: typer.TyperException) -> UsageError:
    context = getattr(error, "ctx", None)
    path = context.command_path if context else "agentctl"
    return UsageError(error.format_message(), hint=f"{path} --help")


def run() -> None:
    """Runs the process: the console script's entry."""
    env = real_env(sys.argv[1:])
    try:
        code = main(sys.argv[1:], env)
    except Exception:
        import traceback

        traceback.print_exc()
        env.stderr.write("error: this is a bug in agentctl; please report it with the lines above\n")
        code = OUR_BUG
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        code = CLOSED_PIPE
    if code == CLOSED_PIPE:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    sys.exit(code)
