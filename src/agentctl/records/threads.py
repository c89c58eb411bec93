"""What the looking commands show: threads, histories, checkpoints. Field names are those of the JSON documents."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Literal, NamedTuple

from agentctl.records.messages import ConversationTurn, Message

ThreadStatus = Literal["done", "pending", "interrupted", "error", "empty"]

UNKNOWN = "?"
"""Stands in `next` and `wrote` for what stored rows cannot tell; `--graph` can."""


@dataclass(frozen=True, slots=True)
class ThreadQuery:
    """Filters of `threads`. `where` compares metadata values as text; times are UTC and inclusive."""

    since: datetime | None = None
    until: datetime | None = None
    status: ThreadStatus | None = None
    where: tuple[tuple[str, str], ...] = ()
    grep: str | None = None
    limit: int | None = 20


@dataclass(frozen=True, slots=True)
class ThreadSummary:
    """One listed thread. `hit` is the matching text of `--grep`, cut around the match.

    `n_checkpoints` is None where the store does not count them; `head` is '' for a thread without a checkpoint.
    """

    thread: str
    n_checkpoints: int | None
    head: str
    created_at: datetime | None
    updated_at: datetime | None
    status: ThreadStatus
    error: str | None
    metadata: Mapping[str, object]
    hit: str | None = None


class Interrupt(NamedTuple):
    """A question a task asked. `id` is LangGraph's interrupt id; `task` the asking task's id."""

    id: str | None
    value: object
    task: str
    node: str


class Task(NamedTuple):
    """One task of the step that runs from a checkpoint.

    `result` holds the channel writes of a finished task, in order; `error` is the stored exception as text, which stays
    stored when an error handler, the node `handled_by`, took care of it; `caught` says that a handler was given it, and
    runs in the node's place when the thread goes on; `ns` is the namespace of the subgraph it ran, or None.
    """

    id: str
    name: str
    path: str
    finished: bool
    error: str | None = None
    interrupts: tuple[Interrupt, ...] = ()
    result: tuple[tuple[str, object], ...] | None = None
    ns: str | None = None
    caught: bool = False
    handled_by: str | None = None

    @property
    def settled(self) -> bool:
        """Whether nothing of it is open: it finished, or its error was handled."""
        return self.finished or self.handled_by is not None


class HistoryRow(NamedTuple):
    """One checkpoint in a list.

    `wrote` and `next` are node names with multiplicity (`?` where rows cannot tell); `branch` is 0 for the branch of
    the head, 1, 2 ... for others in order of their tips, newest first; `summary` is one line of what happened.
    """

    id: str
    parent: str | None
    ns: str
    step: int | None
    source: str
    at: datetime | None
    wrote: tuple[str, ...]
    next: tuple[str, ...]
    channels: tuple[str, ...]
    interrupts: tuple[Interrupt, ...]
    error: str | None
    branch: int
    is_head: bool
    summary: str
    as_node: str | None = None


@dataclass(frozen=True, slots=True)
class History:
    """A page of a thread's checkpoints, newest first.

    `n_total` counts what could be listed: the whole namespace or thread, or the branch or range that was asked for.
    `all_ids` are the ids of the whole listed namespaces, so that a short id names one checkpoint of the thread.
    """

    store: str
    thread: str
    head: str
    status: ThreadStatus
    items: tuple[HistoryRow, ...]
    n_total: int
    n_branches: int
    truncated: bool
    notes: tuple[str, ...] = ()
    all_ids: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Listing:
    """The same as a `History` whose rows are read while they are asked for; `notes` are known after the last row."""

    store: str
    thread: str
    head: str
    status: ThreadStatus
    rows: Iterator[HistoryRow]
    n_total: int
    n_branches: int
    truncated: bool
    notes: Callable[[], tuple[str, ...]]
    all_ids: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class CheckpointView:
    """One checkpoint in full. `values` are inert (`codec`); `unreadable` maps a channel to why it cannot be shown."""

    store: str
    thread: str
    ns: str
    id: str
    parent: str | None
    step: int | None
    source: str
    at: datetime | None
    metadata: Mapping[str, object]
    values: Mapping[str, object]
    changed: tuple[str, ...]
    next: tuple[str, ...]
    tasks: tuple[Task, ...]
    wrote: tuple[str, ...] = ()
    unreadable: Mapping[str, str] | None = None
    messages: tuple[Message, ...] = ()
    notes: Mapping[str, str] | None = None
    """What to know about a channel's value that is shown, such as that its reducer is unknown."""
    n_earlier_messages: int = 0
    """How many came before `messages`, where these are only the last ones of a large value."""


@dataclass(frozen=True, slots=True)
class Conversation:
    """A branch as a conversation, oldest first; `n_total` counts messages before `--last` and `--grep`."""

    store: str
    thread: str
    ns: str
    tip: str
    channel: str
    turns: tuple[ConversationTurn, ...]
    n_total: int
