"""A list of threads for people, pipes and programs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import TYPE_CHECKING

from agentctl.codec.jsontext import dumps, timestamp
from agentctl.codec.secrets import hide_secrets_in
from agentctl.records.threads import ThreadSummary
from agentctl.render.grid import Cell, Column, grid
from agentctl.render.machine import document
from agentctl.render.words import age, count

if TYPE_CHECKING:
    from rich.console import RenderableType

STATUS_STYLE = {"done": "green", "pending": "yellow", "interrupted": "yellow", "error": "red", "empty": "dim"}

_COLUMNS = (
    Column("thread", style="cyan"),
    Column("checkpoints", right=True),
    Column("updated", right=True, style="dim"),
    Column("status"),
    Column("metadata", shrink_to=8, style="dim"),
    Column("", shrink_to=8),
)
_LIBRARY_PREFIXES = ("lc_", "ls_")
_QUIET_KEYS = {"source", "step", "parents", "thread_id", "langgraph_version", "ls_integration", "writes"}


def human(
    items: Sequence[ThreadSummary], store: str, truncated: bool, now: datetime, width: int
) -> Iterable[RenderableType]:
    """Yields one line a thread, newest first, and says where the list was cut."""
    if not items:
        yield f"no thread matches in {store}"
        return
    yield from grid(
        _COLUMNS,
        [
            (
                item.thread,
                "?" if item.n_checkpoints is None else f"{item.n_checkpoints:,}",
                age(item.updated_at, now),
                Cell(item.status, STATUS_STYLE[item.status]),
                metadata_words(item),
                Cell(item.error or item.hit or "", "red" if item.error else ""),
            )
            for item in items
        ],
        width,
    )
    if truncated:
        yield f"first {count(len(items), 'thread')} shown; more: --limit N, all: --limit 0"


def metadata_words(item: ThreadSummary) -> str:
    """Returns the metadata that tells threads apart as `key=value` words.

    LangGraph's own keys are left out; those that LangChain adds come after the application's.
    """
    kept = sorted(
        (entry for entry in item.metadata.items() if entry[0] not in _QUIET_KEYS),
        key=lambda entry: entry[0].startswith(_LIBRARY_PREFIXES),
    )
    shown = hide_secrets_in(dict(kept))
    return " ".join(f"{key}={value}" for key, value in shown.items() if isinstance(value, str | int | float | bool))


def plain(items: Iterable[ThreadSummary]) -> Iterable[Sequence[str | int | None]]:
    """Yields thread, n_checkpoints, head, created_at, updated_at, status, error, metadata as JSON, hit."""
    for item in items:
        yield (
            item.thread,
            item.n_checkpoints,
            item.head,
            timestamp(item.created_at),
            timestamp(item.updated_at),
            item.status,
            item.error,
            dumps(hide_secrets_in(item.metadata)),
            item.hit,
        )


def as_document(items: Sequence[ThreadSummary], store: str, n_total: int, truncated: bool) -> dict[str, object]:
    """Returns the JSON document `agentctl.threads/1`."""
    return document(
        "threads",
        {
            "store": store,
            "items": [
                {
                    "thread": item.thread,
                    "n_checkpoints": item.n_checkpoints,
                    "head": item.head,
                    "created_at": timestamp(item.created_at),
                    "updated_at": timestamp(item.updated_at),
                    "status": item.status,
                    "error": item.error,
                    "metadata": hide_secrets_in(item.metadata),
                    "hit": item.hit,
                }
                for item in items
            ],
            "n_total": n_total,
            "truncated": truncated,
        },
    )
