"""What the tools answered in the source thread, and handing those answers out again in order."""

from __future__ import annotations

import base64
import threading
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, TypeGuard, get_args

from agentctl.codec.values import pack, unpack
from agentctl.errors import StoreError
from agentctl.records.messages import CallSite
from agentctl.records.rows import Stored
from agentctl.sandbox.calls import Call, CallKey, as_text, canonical_args

SCHEMA = "agentctl.recording/1"

Kind = Literal["message", "command", "handoff", "partial"]


@dataclass(frozen=True, slots=True)
class Recorded:
    """One recorded answer.

    Attributes:
        name: Tool name.
        args: Arguments as recorded.
        id: Call id, '' where the model gave none.
        ns: Namespace that the call was made in.
        pending_at: Checkpoint (in `ns`) where the call waited.
        answered_at: First checkpoint that holds the answer; None where it is only a pending write.
        content: Content of the answering message, as stored.
        status: `error` for a recorded error, else `success`.
        artifact: Artifact of the message, inert.
        message: The whole ToolMessage as stored, for exact revival; None where only the inert form is known.
        kind: `message`; `command` where the tool wrote more than its message; `handoff` where what it wrote went to the
            parent graph; `partial` where more was written and it cannot be told which of several calls wrote it: never
            given as an answer.
        writes: All channel writes of a `command` or `handoff`, in order.
        goto: Nodes that the owning task led to, plain edges included.
        shared: Whether the task that wrote the answer also answered other calls.
    """

    name: str
    args: object
    id: str
    ns: str
    pending_at: str
    answered_at: str | None
    content: object
    status: str = "success"
    artifact: object = None
    message: Stored | None = None
    kind: Kind = "message"
    writes: tuple[tuple[str, Stored], ...] = ()
    goto: tuple[str, ...] = ()
    shared: bool = False

    @property
    def key(self) -> CallKey:
        """What the answer is looked up by."""
        return self.name, canonical_args(self.args)

    @property
    def text(self) -> str:
        """The answer as text."""
        return as_text(self.content)


@dataclass(frozen=True, slots=True)
class Recording:
    """The recorded answers of a whole thread: the branch in question first, in order, then what only others hold."""

    entries: tuple[Recorded, ...] = ()
    _by_key: Mapping[CallKey, tuple[Recorded, ...]] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        by_key: dict[CallKey, list[Recorded]] = {}
        for entry in self.entries:
            by_key.setdefault(entry.key, []).append(entry)
        object.__setattr__(self, "_by_key", {key: tuple(entries) for key, entries in by_key.items()})

    @classmethod
    def of(cls, calls: Iterable[CallSite], *others: Iterable[CallSite]) -> Recording:
        """Returns the recording of calls read from state.

        Args:
            calls: Call sites of the branch in question, in order; unanswered ones are left out.
            others: Call sites of other branches; they count only for calls that `calls` does not hold at all.
        """
        return cls.merged(_answered(calls), *(_answered(group) for group in others))

    @classmethod
    def merged(cls, entries: Iterable[Recorded], *others: Iterable[Recorded]) -> Recording:
        """Returns `entries`, then those of each further group whose key no earlier group holds."""
        merged = list(entries)
        for group in others:
            known = {entry.key for entry in merged}
            merged.extend(entry for entry in group if entry.key not in known)
        return cls(tuple(merged))

    def answers(self, key: CallKey) -> tuple[Recorded, ...]:
        """Returns the recorded answers of one call, in order."""
        return self._by_key.get(key, ())

    def example(self, name: str) -> Recorded | None:
        """Returns the latest recorded answer of a tool, whatever its arguments: the shape of its results."""
        return next((entry for entry in reversed(self.entries) if entry.name == name), None)

    @property
    def names(self) -> frozenset[str]:
        """Tools that have at least one recorded answer."""
        return frozenset(entry.name for entry in self.entries)

    def cursor(self, after: str | Collection[str] | None = None, *, kept: Collection[str] = ()) -> Cursor:
        """Starts handing answers out for one run.

        Args:
            after: Where the run starts: a checkpoint id of the source thread (answers at or before it are past: ids
                are time-ordered), or the ids of all checkpoints at or above it in every namespace. None starts at
                the beginning.
            kept: Call ids whose answers are pending writes that the run keeps, so past as well.
        """
        return Cursor(self, after, frozenset(kept))

    def to_json(self) -> dict[str, object]:
        """Returns the recording as JSON values."""
        return {"schema": SCHEMA, "entries": [_entry_to_json(entry) for entry in self.entries]}

    @classmethod
    def from_json(cls, document: Mapping[str, object]) -> Recording:
        """Reads what `to_json` wrote.

        Raises:
            StoreError: the document is not a recording, or of another version.
        """
        entries = document.get("entries")
        if document.get("schema") != SCHEMA or not isinstance(entries, list):
            raise StoreError(f"not a recording of this version: {document.get('schema')!r}, expected {SCHEMA}")
        try:
            return cls(tuple(_entry_from_json(entry) for entry in entries))
        except (KeyError, TypeError, ValueError) as error:
            raise StoreError(f"the recording is damaged: {error}") from error


@dataclass(frozen=True, slots=True)
class Given:
    """An answer handed out; `again` where the recording had run out and a read got its last answer once more."""

    entry: Recorded
    again: bool


class Cursor:
    """One run's place in a recording. Safe to use from many threads."""

    def __init__(self, recording: Recording, after: str | Collection[str] | None, kept: frozenset[str]) -> None:
        self.recording = recording
        self._after = after
        self._kept = kept
        self._left: dict[CallKey, list[Recorded]] = {}
        self._lock = threading.Lock()

    def take(self, call: Call, *, repeat: bool) -> Given | None:
        """Returns the next answer of a call, or None.

        An answer with the call's own id comes before the next in order, so that equal calls of one message keep their
        pairing. `repeat` says whether a call beyond the recorded ones gets the last answer.
        """
        recorded = self.recording.answers(call.key)
        if not recorded:
            return None
        with self._lock:
            left = self._left.setdefault(call.key, [entry for entry in recorded if not self._past(entry)])
            if left:
                own = next((at for at, entry in enumerate(left) if call.id and entry.id == call.id), 0)
                return Given(left.pop(own), again=False)
        return Given(recorded[-1], again=True) if repeat else None

    def _past(self, entry: Recorded) -> bool:
        if entry.id and entry.id in self._kept:
            return True
        if self._after is None or entry.answered_at is None:
            return False
        if isinstance(self._after, str):
            return entry.answered_at <= self._after
        return entry.answered_at in self._after


def _answered(calls: Iterable[CallSite]) -> Sequence[Recorded]:
    return [recorded_of(site) for site in calls if is_answered(site)]


def is_answered(site: CallSite) -> bool:
    """Returns whether a site is an answered tool call; @task calls, whose arguments are not stored, are none."""
    return site.answer is not None and site.answer.status != "unreadable" and isinstance(site.args, Mapping)


def recorded_of(site: CallSite) -> Recorded:
    """Returns the recorded answer of an answered call site, as a plain message."""
    answer = site.answer
    if answer is None:
        raise ValueError(f"the call {site.name} ({site.id}) is not answered")
    return Recorded(
        name=site.name,
        args=site.args,
        id=site.id,
        ns=site.ns,
        pending_at=site.pending_at,
        answered_at=site.answered_at,
        content=answer.content,
        status=answer.status or "success",
        artifact=(answer.raw or {}).get("artifact"),
    )


def plainly_stored(value: Stored) -> Stored:
    """Returns a value without encryption, so that the case can be read where the key is not."""
    return pack(unpack(value)) if "+" in value.type else value


def _entry_to_json(entry: Recorded) -> dict[str, object]:
    return {
        "name": entry.name,
        "args": entry.args,
        "id": entry.id,
        "ns": entry.ns,
        "pending_at": entry.pending_at,
        "answered_at": entry.answered_at,
        "content": entry.content,
        "status": entry.status,
        "artifact": entry.artifact,
        "message": _stored_to_json(entry.message) if entry.message else None,
        "kind": entry.kind,
        "writes": [[channel, _stored_to_json(value)] for channel, value in entry.writes],
        "goto": list(entry.goto),
        "shared": entry.shared,
    }


def _entry_from_json(data: Mapping[str, object]) -> Recorded:
    kind, writes, goto, message = data["kind"], data["writes"], data["goto"], data["message"]
    if not _is_kind(kind) or not isinstance(writes, list) or not isinstance(goto, list):
        raise ValueError(f"entry of {data['name']!r}")
    answered_at = data["answered_at"]
    return Recorded(
        name=str(data["name"]),
        args=data["args"],
        id=str(data["id"]),
        ns=str(data["ns"]),
        pending_at=str(data["pending_at"]),
        answered_at=None if answered_at is None else str(answered_at),
        content=data["content"],
        status=str(data["status"]),
        artifact=data["artifact"],
        message=None if message is None else _stored_from_json(message),
        kind=kind,
        writes=tuple((str(channel), _stored_from_json(value)) for channel, value in writes),
        goto=tuple(str(node) for node in goto),
        shared=bool(data["shared"]),
    )


def _is_kind(value: object) -> TypeGuard[Kind]:
    return value in get_args(Kind)


def _stored_to_json(value: Stored) -> dict[str, str]:
    return {"type": value.type, "base64": base64.b64encode(value.data).decode("ascii")}


def _stored_from_json(value: object) -> Stored:
    if not isinstance(value, Mapping):
        raise TypeError("a stored value is not an object")
    return Stored(str(value["type"]), base64.b64decode(str(value["base64"]), validate=True))
