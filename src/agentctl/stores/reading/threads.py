"""Listing threads: one head row each, filtered from the cheapest to the dearest, newest first."""

from __future__ import annotations

import json
from collections import Counter, deque
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from difflib import get_close_matches

from agentctl.records.rows import CheckpointRow, ThreadHead
from agentctl.records.threads import ThreadQuery, ThreadStatus, ThreadSummary
from agentctl.stores.base import Reader
from agentctl.stores.heads import HeadState, ReadsHeads
from agentctl.stores.reading.due import due_of, is_routing, read_bookkeeping
from agentctl.stores.reading.search import find_text
from agentctl.stores.reading.status import first_error, status_of
from agentctl.stores.reading.steps import StepReader
from agentctl.stores.stated import StatesTasks

_RUN_KEYS = frozenset({"run_id", "trace_id", "langsmith_run_id", "langsmith_trace_id"})
"""Metadata keys that change with every run, so that a head row has only the last one."""
_KEYS_SHOWN = 8
_HEADS_PER_READ = 100


class ThreadListing(Iterator[ThreadSummary]):
    """Threads that match, found one by one while it is iterated; a search can stop at any time.

    Attributes:
        n_total: Threads in the store.
        n_read: How many of them have been looked at so far, newest first.
    """

    def __init__(self, reader: Reader, query: ThreadQuery) -> None:
        self._reader = reader
        self._query = query
        self._heads = reader.heads(metadata=bool(query.where))
        self._found: list[ThreadSummary] = []
        self._n_sifted = 0
        self._ahead: deque[tuple[int, _Step]] = deque()
        self._run_threads = {value: frozenset(reader.find_run(value)) for key, value in query.where if key in _RUN_KEYS}
        self._keys: set[str] = set()
        self._n_asked = 0
        self._n_lacking: Counter[str] = Counter()
        self.n_total = len(self._heads)
        self.n_read = 0

    @property
    def truncated(self) -> bool:
        """Whether the limit was reached with threads left unread."""
        return self._is_full() and self.n_read < self.n_total

    @property
    def items(self) -> tuple[ThreadSummary, ...]:
        """All threads that match, those iterated before included."""
        for _ in self:
            pass
        return tuple(self._found)

    @property
    def warnings(self) -> tuple[str, ...]:
        """What to know of the filters once the threads were iterated: keys that no thread that was looked at has."""
        unknown = [key for key, n in self._n_lacking.items() if n == self._n_asked]
        return tuple(f"no thread has metadata {key}{_meant(key, self._keys)}" for key in unknown)

    def __iter__(self) -> ThreadListing:
        return self

    def __next__(self) -> ThreadSummary:
        while not self._is_full() and (step := self._next()) is not None:
            summary = self._matching(step)
            if summary is not None:
                self._found.append(summary)
                return summary
        raise StopIteration

    def _is_full(self) -> bool:
        return self._query.limit is not None and len(self._found) >= self._query.limit

    def _next(self) -> _Step | None:
        """Returns the next thread that its head's row lets through; a page of them is read at once."""
        if not self._ahead:
            self._read_ahead()
        if not self._ahead:
            self.n_read = self.n_total
            return None
        self.n_read, step = self._ahead.popleft()
        return step

    def _read_ahead(self) -> None:
        page: list[tuple[int, ThreadHead]] = []
        while len(page) < self._n_ahead() and self._n_sifted < self.n_total:
            head = self._heads[self._n_sifted]
            if self._is_before(head):
                self._n_sifted = self.n_total  # heads come newest first, so all that follow are older
                break
            self._n_sifted += 1
            if _was_active(head, self._query) and self._has_metadata(head):
                page.append((self._n_sifted, head))
        keys = [(head.thread, head.head.id) for _, head in page if head.head.id]
        states = self._reader.head_states(keys, is_routing) if isinstance(self._reader, ReadsHeads) else {}
        self._ahead.extend((place, _Step(self._reader, head, states.get(head.thread))) for place, head in page)

    def _n_ahead(self) -> int:
        """Returns how many threads are worth reading at once: all that are lacking, where each one will match."""
        query = self._query
        if query.limit is None or query.status is not None or query.grep:
            return _HEADS_PER_READ
        return min(query.limit - len(self._found), _HEADS_PER_READ)

    def _matching(self, step: _Step) -> ThreadSummary | None:
        head, query = step.head, self._query
        if query.status is not None and step.status != query.status:
            return None
        hit = find_text(self._reader, head.thread, query.grep) if query.grep else None
        if query.grep and hit is None:
            return None
        return _summary(head, step, self._metadata(step), hit)

    def _is_before(self, head: ThreadHead) -> bool:
        since, updated_at = self._query.since, head.updated_at
        return since is not None and updated_at is not None and updated_at < since

    def _metadata(self, step: _Step) -> Mapping[str, object]:
        head = step.head
        if self._query.where or head.head.metadata or not head.head.id:
            return head.head.metadata
        if step.state is not None:
            return step.state.stored.row.metadata
        return next((row.metadata for row in self._reader.rows(head.thread, "", ids=[head.head.id])), {})

    def _has_metadata(self, head: ThreadHead) -> bool:
        first: CheckpointRow | None = None
        self._n_asked += 1
        self._keys.update(head.head.metadata)
        for key, value in self._query.where:
            if key in _RUN_KEYS:
                if head.thread not in self._run_threads[value]:
                    return False
                continue
            row = head.head
            if key not in row.metadata:
                # A row that somebody wrote by hand lacks the metadata of the application's runs.
                first = first or _first_row(self._reader, head)
                row = first
            self._n_lacking[key] += key not in row.metadata
            if key not in row.metadata or not _is_as_text(row.metadata[key], value):
                return False
        return True


def _meant(key: str, known: Collection[str]) -> str:
    """Returns the key that may have been meant, else some that there are."""
    if alike := get_close_matches(key, known, n=1):
        return f"; did you mean {alike[0]}?"
    shown = ", ".join(sorted(known)[:_KEYS_SHOWN])
    return f"; there is: {shown}" if shown else ""


def list_threads(reader: Reader, query: ThreadQuery) -> ThreadListing:
    """Returns the threads that match a query, newest first, read as they are iterated.

    `since` and `until` keep threads whose life, from first to last checkpoint, touches that span. `where` looks at the
    head's metadata, and at the thread's first row where the head does not have the key; run and trace ids are looked
    for in every row. `grep` reads the thread's writes and its newest states.

    Args:
        reader: The store.
        query: All filters must hold.
    """
    return ThreadListing(reader, query)


@dataclass(slots=True)
class _Step:
    """Status and error of a head, read when they are first asked for where what was read with others does not tell."""

    reader: Reader
    head: ThreadHead
    state: HeadState | None = None
    _known: tuple[ThreadStatus, str | None] | None = None

    @property
    def status(self) -> ThreadStatus:
        return self._read()[0]

    @property
    def error(self) -> str | None:
        return self._read()[1]

    def _read(self) -> tuple[ThreadStatus, str | None]:
        id = self.head.head.id
        if not id:
            return "empty", None
        if self._known is None and self._is_at_rest(id):
            self._known = "done", None
        if self._known is None:
            tasks = StepReader(self.reader, self.head.thread, "", value_bytes=0).tasks([id]).get(id, ())
            self._known = (status_of(tasks), first_error(tasks))
        return self._known

    def _is_at_rest(self, id: str) -> bool:
        """Returns whether a head has no task: no write is stored on it, and nothing is due."""
        if self.state is not None:
            return not self.state.has_writes and not due_of(self.state.stored).names
        if isinstance(self.reader, StatesTasks) or self.reader.writes(self.head.thread, "", [id], value_bytes=0):
            return False
        book = read_bookkeeping(self.reader, self.head.thread, "", [id]).get(id)
        return book is not None and not book.due.names


def _summary(head: ThreadHead, step: _Step, metadata: Mapping[str, object], hit: str | None) -> ThreadSummary:
    return ThreadSummary(
        thread=head.thread,
        n_checkpoints=head.n_checkpoints,
        head=head.head.id,
        created_at=head.created_at,
        updated_at=head.updated_at,
        status=step.status,
        error=step.error if step.status == "error" else None,
        metadata=metadata,
        hit=hit,
    )


def _was_active(head: ThreadHead, query: ThreadQuery) -> bool:
    updated, created = head.updated_at, head.created_at
    if query.since is not None and (updated is None or updated < query.since):
        return False
    return query.until is None or (created is not None and created <= query.until)


def _first_row(reader: Reader, head: ThreadHead) -> CheckpointRow:
    if not head.first_id:
        return head.head
    return next(iter(reader.rows(head.thread, "", ids=[head.first_id])), head.head)


def _is_as_text(stored: object, asked: str) -> bool:
    """Compares a metadata value with text: text itself, anything else as JSON."""
    return stored == asked if isinstance(stored, str) else json.dumps(stored, default=str) == asked
