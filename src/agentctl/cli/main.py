"""The one place where a command line becomes a command, and errors become exit codes."""

from __future__ import annotations

import errno
import io
import os
import sys
from collections.abc import Sequence
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import replace
from pathlib import Path

import typer

from agentctl.cli.commands import build
from agentctl.cli.env import Env, real_env, with_own_stdout
from agentctl.cli.output import fail, fail_internal
from agentctl.errors import INTERRUPTED, AgentctlError, GraphFailed, StoreError, UsageError

CLOSED_PIPE, OUR_BUG = 141, 70

_KEPT_BYTES = 16 * 1024 * 1024


def main(argv: Sequence[str], env: Env) -> int:
    """Runs one command in `env` and returns its exit code (docs/exit-codes.md); never raises.

    What code of others prints meanwhile goes to the same two streams.
    """
    try:
        with redirect_stdout(env.stdout), redirect_stderr(env.stderr):
            return _run(list(argv), env)
    except BrokenPipeError:
        return CLOSED_PIPE


def _run(argv: list[str], env: Env) -> int:
    # Not by calling the app: that makes a closed pipe exit 1, and Ctrl-C an exit without a word.
    try:
        command = typer.main.get_command(build(argv))
        with command.make_context(
            "agentctl", argv or ["--help"], obj=env, terminal_width=min(env.width, 100)
        ) as context:
            code = command.invoke(context)
    except typer.Exit as done:
        return int(done.exit_code)
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
        raise
    except OSError as error:
        if error.errno not in (errno.ENOSPC, errno.EDQUOT):
            fail_internal(env, error)
            return OUR_BUG
        full = StoreError(f"cannot write: {error.strerror}", hint="make room where the output or the debug store goes")
        fail(replace(env, as_json=False), full)
        return full.exit_code
    except UnicodeEncodeError as error:
        if not any("\ud800" <= letter <= "\udfff" for word in argv for letter in word):
            fail_internal(env, error)
            return OUR_BUG
        fail(env, UsageError("the command line is not UTF-8", hint="ids and names are text; a file may be renamed"))
        return UsageError.exit_code
    except SystemExit as error:
        ended = GraphFailed(f"the code that was run ended the command: SystemExit: {error.code}")
        fail(env, ended)
        return ended.exit_code
    except BaseException as error:
        fail_internal(env, error)
        return OUR_BUG
    return code if isinstance(code, int) else 0


def _usage(error: typer.TyperException) -> UsageError:
    context = getattr(error, "ctx", None)
    path = context.command_path if context else "agentctl"
    message = error.format_message().rstrip(".")
    return UsageError(message[:1].lower() + message[1:], hint=f"{path} --help")


def run() -> None:
    """Runs the command line of the process and ends it."""
    # glibc raises its thresholds to what was freed last (mallopt(3), M_MMAP_THRESHOLD). Else it gives the memory of a
    # batch of rows back to the system and asks for it again, page by page: half the time of reading a batch.
    bytes(_KEPT_BYTES)
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:  # the process was started without it
            setattr(sys, name, Path(os.devnull).open(mode))  # noqa: SIM115 - for as long as the process
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    env = with_own_stdout(real_env(sys.argv[1:]))
    code = main(sys.argv[1:], env)
    try:
        env.stdout.flush()
    except BrokenPipeError:
        code = CLOSED_PIPE
    except OSError:
        code = StoreError.exit_code
    if code in (CLOSED_PIPE, StoreError.exit_code):
        os.dup2(os.open(os.devnull, os.O_WRONLY), env.stdout.fileno())
    sys.exit(code)
