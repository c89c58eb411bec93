"""What a child and its parent say to each other.

The child asks, tells and answers in records that are read by their type (`wire`). What it is given are values of the
parent, which it may trust: the job, rows, errors.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from agentctl.errors import (
    AgentctlError,
    Ambiguous,
    Blocked,
    ConfigError,
    DecodeError,
    Escaped,
    GraphFailed,
    MissingExtra,
    NotFound,
    Refused,
    RevisionSyntaxError,
    StoreError,
    UsageError,
)
from agentctl.experiments.experiment import Target
from agentctl.experiments.isolated.wire import Forged, decoded, parse, to_text
from agentctl.experiments.runs.debug_threads import Kind
from agentctl.experiments.settings import GraphSource, Settings
from agentctl.experiments.works import Work
from agentctl.records.runs import Plan
from agentctl.stores.base import RowPick, StoreInfo


@dataclass(frozen=True, slots=True)
class Job:
    """What a child is to do; the only thing that it is told unasked.

    Attributes:
        work: The work.
        target: Its checkpoint.
        graph: The application.
        settings: What a person chose.
        checks: The values of `--check`, which may name code of the user.
        branch: Tip of the branch whose recorded answers come first, or None.
        source: Which store the rows come from.
        debug: Which store the debug threads will be in, as places name it.
        debug_profile: The name that reaches it.
        scratch: The file that they are in while they run.
        isolation: What plan and report say of the isolation.
        path: Where the parent finds modules.
    """

    work: Work[Any]
    target: Target
    graph: GraphSource
    settings: Settings
    checks: tuple[str, ...]
    branch: str | None
    source: StoreInfo
    debug: str
    debug_profile: str
    scratch: Path
    isolation: str
    path: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Held:
    """The child is confined, by these layers."""

    layers: str


@dataclass(frozen=True, slots=True)
class AskNamespaces:
    """`Reader.namespaces`."""

    thread: str


@dataclass(frozen=True, slots=True)
class AskRows:
    """`Reader.rows`."""

    thread: str
    ns: str
    ids: tuple[str, ...] | None
    metadata: bool


@dataclass(frozen=True, slots=True)
class AskStored:
    """`Reader.stored`; the answer is a number to ask `AskMore` with."""

    thread: str
    ns: str
    ids: tuple[str, ...]
    channels: tuple[str, ...] | None
    value_bytes: int | None


@dataclass(frozen=True, slots=True)
class AskMore:
    """The next checkpoints of an `AskStored`; none where there are no more."""

    number: int


@dataclass(frozen=True, slots=True)
class Enough:
    """No more of an `AskStored` are wanted."""

    number: int


@dataclass(frozen=True, slots=True)
class AskWrites:
    """`Reader.writes`."""

    thread: str
    ns: str
    ids: tuple[str, ...] | None
    value_bytes: int | None
    channels: tuple[str, ...] | None


@dataclass(frozen=True, slots=True)
class AskMemory:
    """`Reader.memory`."""

    prefix: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class AskPicked:
    """A file with these rows, for a copy; the answer is its path and what to know about it."""

    thread: str
    picks: tuple[RowPick, ...]


@dataclass(frozen=True, slots=True)
class AskNames:
    """Names for debug threads that are about to be made."""

    kind: Kind
    n: int


@dataclass(frozen=True, slots=True)
class Planned:
    """The plan, before anything is copied or run."""

    plan: Plan


@dataclass(frozen=True, slots=True)
class Stopped:
    """An attempt to reach what may not be reached."""

    what: str


@dataclass(frozen=True, slots=True)
class Done:
    """The work is done. The report is read by the type that the work answers with."""

    report: object
    recording: Mapping[str, object]


@dataclass(frozen=True, slots=True)
class Failed:
    """The work ended with an error of agentctl's, or, of no kind, with one that is a fault of agentctl."""

    error: str
    message: str
    hint: str | None = None
    candidates: tuple[Mapping[str, object], ...] = ()
    traceback: str = ""
    text: str = ""
    span: tuple[int, int] = field(default=(0, 0))


Asked = AskNamespaces | AskRows | AskStored | AskMore | AskWrites | AskMemory | AskPicked | AskNames
Told = Held | Enough | Planned | Stopped | Done | Failed

_MESSAGES: Final[Mapping[str, type[Any]]] = {type_.__name__: type_ for type_ in (*Asked.__args__, *Told.__args__)}
_ERRORS: Final[Mapping[str, type[AgentctlError]]] = {
    type_.__name__: type_
    for type_ in (
        UsageError,
        RevisionSyntaxError,
        NotFound,
        Ambiguous,
        StoreError,
        ConfigError,
        DecodeError,
        MissingExtra,
        Refused,
        Blocked,
        Escaped,
        GraphFailed,
    )
}


def write_message(message: Asked | Told) -> bytes:
    """Returns a message of a child."""
    return b'{"is":"%s","it":%s}' % (type(message).__name__.encode(), to_text(message))


def read_message(data: bytes) -> Asked | Told:
    """Returns the message of a child.

    Raises:
        Forged: it is none.
    """
    document = parse(data)
    name = document.get("is")
    type_ = _MESSAGES.get(name) if isinstance(name, str) else None
    if type_ is None or document.keys() != {"is", "it"}:
        raise Forged("a message of no kind")
    if type_ is Done:
        return _read_done(document["it"])
    message: Asked | Told = decoded(type_, document["it"])
    return message


def _read_done(fields: object) -> Done:
    """Returns the message with the report as it was parsed: its type is known to who gave the work."""
    if not isinstance(fields, dict) or fields.keys() != {"report", "recording"}:
        raise Forged("the fields of no Done")
    return Done(fields["report"], decoded(Mapping[str, object], fields["recording"]))  # type: ignore[type-abstract]


def as_failed(error: AgentctlError) -> Failed:
    """Returns an error as a message."""
    known = next((type_.__name__ for type_ in type(error).__mro__ if type_.__name__ in _ERRORS), Refused.__name__)
    text, span = (error.text, error.span) if isinstance(error, RevisionSyntaxError) else ("", (0, 0))
    return Failed(
        known,
        error.message,
        error.hint,
        error.candidates,
        error.traceback if isinstance(error, GraphFailed) else "",
        text,
        span,
    )


def as_error(failed: Failed) -> Exception:
    """Returns the error that a message tells of; one of no kind is a fault of agentctl, with the child's traceback."""
    type_ = _ERRORS.get(failed.error)
    if type_ is None:
        return RuntimeError(f"in the process of the experiment: {failed.message}\n{failed.traceback}")
    if type_ is RevisionSyntaxError:
        return RevisionSyntaxError(failed.message, text=failed.text, span=failed.span, hint=failed.hint)
    if type_ is GraphFailed:
        return GraphFailed(failed.message, traceback=failed.traceback, hint=failed.hint)
    return type_(failed.message, hint=failed.hint, candidates=failed.candidates)
