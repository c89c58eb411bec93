"""The world a command runs in: streams, terminal, clock, environment, configuration. Tests pass their own."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

if TYPE_CHECKING:
    from agentctl.cli.output import Answer

_COMMAND = re.compile(
    r"\bagentctl (?P<verb>"
    r"threads|history|show|resolve|diff|size|doctor|prune|copy|replay|fork|diagnose|export|run|resume|case \w+)"
    r"\b(?P<rest>[^\n;]*)"
)
_STORE_FLAGS = ("--store", "--schema", "--debug-store", "--ticket")
_MASK = "--mask"
_MASKING = ("copy", "replay", "fork", "diagnose")
_DEBUG_TARGET = re.compile(r"(?:^|[\s'])debug::")


@dataclass(slots=True)
class Env:
    """Everything a command may touch outside its arguments.

    `width` is the terminal's columns; `is_terminal` and `err_is_terminal` decide between tables and plain lines.
    `warnings` are those told so far, which the JSON document carries.
    `on_answer` gets the answer in place of stdout, for a command that is run by another one.
    `ticket` and `reason` are why a store is looked at, as the command line gave them.
    """

    stdin: TextIO
    stdout: TextIO
    stderr: TextIO
    environ: Mapping[str, str]
    cwd: Path
    is_terminal: bool
    err_is_terminal: bool
    width: int
    now: Callable[[], datetime]
    as_json: bool = False
    argv: tuple[str, ...] = field(default=())
    warnings: list[str] = field(default_factory=list)
    on_answer: Callable[[Answer], None] | None = None
    ticket: str = ""
    reason: str = ""

    def pasteable(self, text: str) -> str:
        """Returns text with every `agentctl` command in it saying which stores this command used, and masked or not.

        A target without a profile is looked for in `--store`, and `debug::` in `--debug-store`; where these or a
        `--ticket` were given, the printed commands give them too, so that they work when pasted. Where `--mask` was,
        what is copied by a printed command is masked too.
        """
        flags, masks = store_flags(self.argv), _MASK in self.argv
        return _COMMAND.sub(lambda match: _with_flags(match, flags, masks), text) if flags or masks else text

    @property
    def styled(self) -> bool:
        """Whether the answer may be coloured: a terminal that is not dumb, and NO_COLOR not set."""
        return self.is_terminal and self._may_style

    @property
    def err_styled(self) -> bool:
        """Whether stderr may be coloured."""
        return self.err_is_terminal and self._may_style

    @property
    def _may_style(self) -> bool:
        return not self.environ.get("NO_COLOR") and self.environ.get("TERM") != "dumb"


def store_flags(argv: Sequence[str]) -> dict[str, str]:
    """Returns the flags of a command line that say which stores are meant, and for which ticket they are read."""
    found: dict[str, str] = {}
    for i, word in enumerate(argv):
        name, equals, value = word.partition("=")
        if name in _STORE_FLAGS:
            found[name] = value if equals else next(iter(argv[i + 1 :]), "")
    return found


def _with_flags(match: re.Match[str], flags: Mapping[str, str], masks: bool) -> str:
    verb, rest = match["verb"], match["rest"]
    words = [f"{name} {shlex.quote(flags[name])}" for name in _wanted(verb, rest) if name in flags and name not in rest]
    if masks and verb in _MASKING and not (_MASK in rest or "--help" in rest or _DEBUG_TARGET.search(rest)):
        words.append(_MASK)
    return " ".join(["agentctl", verb, *words]) + rest


def _wanted(verb: str, rest: str) -> tuple[str, ...]:
    """Returns the flags that a printed command needs to mean the same stores; asking for help needs none."""
    if "--help" in rest:
        return ()
    if verb.startswith("case") or (_DEBUG_TARGET.search(rest) and verb != "diff"):
        return ("--debug-store",)
    return ("--store", "--debug-store", "--ticket") if verb == "run" else _STORE_FLAGS


def real_env(argv: list[str]) -> Env:
    """Returns the process's own world."""
    out_tty, err_tty = sys.stdout.isatty(), sys.stderr.isatty()
    return Env(
        stdin=sys.stdin,
        stdout=sys.stdout,
        stderr=sys.stderr,
        environ=os.environ,
        cwd=Path.cwd(),
        is_terminal=out_tty,
        err_is_terminal=err_tty,
        width=shutil.get_terminal_size((80, 24)).columns,
        now=lambda: datetime.now(UTC),
        as_json="--json" in argv,
        argv=tuple(argv),
    )


def with_own_stdout(env: Env) -> Env:
    """Returns a world whose stdout has a descriptor of its own; descriptor 1 leads to stderr from now on.

    What a graph's extensions and subprocesses write past Python is then no part of the answer. A process that lacks
    one of the two descriptors stays as it is.
    """
    try:
        env.stdout.flush()
        own = os.dup(1)
        os.dup2(2, 1)
    except (OSError, ValueError, AttributeError):
        return env
    encoding = getattr(env.stdout, "encoding", None) or "utf-8"
    return replace(env, stdout=os.fdopen(own, "w", encoding=encoding, errors="backslashreplace"))
