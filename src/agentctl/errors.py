"""Every error that agentctl raises on purpose: what kind it is, how the process ends, what to try next.

Exit codes: 0 done, 1 the answer is no, 2 command line or revision syntax, 3 not found or ambiguous, 4 store or
configuration, 5 refused, blocked or escaped, 6 the user's graph raised, 70 our bug, 130 Ctrl-C, 141 closed pipe.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar, Final, Literal

INTERRUPTED: Final = 130

Kind = Literal[
    "usage",
    "syntax",
    "not_found",
    "ambiguous",
    "store",
    "config",
    "decode",
    "extra",
    "refused",
    "blocked",
    "escaped",
    "graph_failed",
    "internal",
]


class AgentctlError(Exception):
    """The root of the tree; never raised itself.

    Args:
        message: One sentence that names what was wrong, without a full stop after an id.
        hint: The next command to try, or None.
        candidates: What the user may have meant, as flat records in the order to show them.
    """

    kind: ClassVar[Kind] = "internal"
    exit_code: ClassVar[int] = 70

    def __init__(
        self, message: str, *, hint: str | None = None, candidates: Sequence[Mapping[str, object]] = ()
    ) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
        self.candidates = tuple(candidates)


class UsageError(AgentctlError):
    """The command line does not make sense: an unknown channel, node, flag value or combination."""

    kind: ClassVar[Kind] = "usage"
    exit_code = 2


class RevisionSyntaxError(UsageError):
    """A target or revision cannot be parsed; `span` is the half-open range of `text` to underline."""

    kind: ClassVar[Kind] = "syntax"

    def __init__(self, message: str, *, text: str, span: tuple[int, int], hint: str | None = None) -> None:
        super().__init__(message, hint=hint)
        self.text = text
        self.span = span


class NotFound(AgentctlError):
    """A thread, checkpoint, namespace, call, node occurrence, case or dataset does not exist."""

    kind: ClassVar[Kind] = "not_found"
    exit_code = 3


class Ambiguous(AgentctlError):
    """A name stands for more than one thing; `candidates` lists them."""

    kind: ClassVar[Kind] = "ambiguous"
    exit_code = 3


class StoreError(AgentctlError):
    """A store cannot be opened, read or written."""

    kind: ClassVar[Kind] = "store"
    exit_code = 4


class StrangeRow(StoreError):
    """A row holds what no saver writes, so it cannot be looked at."""


class ConfigError(AgentctlError):
    """agentctl.yaml, langgraph.json or the environment is wrong."""

    kind: ClassVar[Kind] = "config"
    exit_code = 4


class DecodeError(AgentctlError):
    """Stored bytes cannot be read: damaged, encrypted without a key, or of a kind that is never loaded."""

    kind: ClassVar[Kind] = "decode"
    exit_code = 4


class MissingExtra(AgentctlError):
    """A package that this command needs is not installed; the message names the extra."""

    kind: ClassVar[Kind] = "extra"
    exit_code = 4


class Refused(AgentctlError):
    """agentctl could do it and will not: a rule of safety, or an experiment that would not mean what it says."""

    kind: ClassVar[Kind] = "refused"
    exit_code = 5


class ThreadExists(Refused):
    """The thread that a copy would make is there already; copies never mix with other rows."""


class IsolationFailed(Refused):
    """The process of an experiment cannot be held to what it may do; nothing of the graph was loaded."""


class Blocked(AgentctlError):
    """A tool call had no answer, so the run stopped there and nothing ran."""

    kind: ClassVar[Kind] = "blocked"
    exit_code = 5


class Escaped(AgentctlError):
    """A tool ran for real during an experiment."""

    kind: ClassVar[Kind] = "escaped"
    exit_code = 5


class GraphFailed(AgentctlError):
    """The user's graph or its import raised; `traceback` is theirs, as text."""

    kind: ClassVar[Kind] = "graph_failed"
    exit_code = 6

    def __init__(self, message: str, *, traceback: str = "", hint: str | None = None) -> None:
        super().__init__(message, hint=hint)
        self.traceback = traceback


def is_of_called_code(error: BaseException) -> bool:
    """Says whether an error is of the code that was called, whatever its class: all but Ctrl-C and being cancelled.

    Ctrl-C is raised in the main thread alone; elsewhere a KeyboardInterrupt is what code raised itself.
    """
    import asyncio
    import threading

    if isinstance(error, KeyboardInterrupt):
        return threading.current_thread() is not threading.main_thread()
    return not isinstance(error, asyncio.CancelledError | GeneratorExit)
