"""Reading an Agent Server.

What a namespace's history says is kept, without values, so that one command sees one thread and no page is asked for
twice. Channel values are asked for when they are needed, a few states at a time; of those the last 8 MB are kept.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from agentctl.errors import NotFound
from agentctl.records.rows import CheckpointRow, MemoryItem, StoredCheckpoint, ThreadHead, WriteRow
from agentctl.stores import bookkeeping
from agentctl.stores.base import StoreInfo
from agentctl.stores.batches import in_chunks
from agentctl.stores.fetched import write_order
from agentctl.stores.server.client import TIMEOUT_S, AgentServer, Raw, is_thread_id
from agentctl.stores.server.heads import Heads, newest_first
from agentctl.stores.server.inner import inner_namespaces
from agentctl.stores.server.kept import LastStates
from agentctl.stores.server.paging import KEPT_RESULT_BYTES, Listed, list_states, list_threads
from agentctl.stores.server.sizes import ServerSizes
from agentctl.stores.server.states import WITHOUT_VALUES, State, parse_state
from agentctl.stores.stated import StatedTask

_STATES_PER_READ: Final = 10
"""How many whole states are held at a time."""
_WITHOUT_TASKS: Final = tuple(name for name in WITHOUT_VALUES if name != "tasks")
_FEW: Final = 2
"""So many checkpoints are asked for one by one, rather than by listing their namespace."""
_KEPT_THREADS: Final = 4
_MAX_LONE: Final = 256
_RUN_THREADS: Final = 200
"""How many threads, newest first, are asked whether a run was theirs: a server has no other way to tell."""

Warn = Callable[[str], None]


@dataclass(slots=True)
class _Kept:
    """What is kept of one thread: its states without values, by namespace, and which namespaces it has."""

    listed: dict[str, Listed] = field(default_factory=dict)
    namespaces: tuple[str, ...] | None = None


class ServerReader:
    """An Agent Server open for looking; see `agentctl.stores.base.Reader` and `agentctl.stores.stated.StatesTasks`.

    Args:
        url: Its address.
        profile: The name it was reached by, or ''.
        warn: Told what to know of an answer that is not all there was, once each.
        timeout_s: How long a request may wait for the next part of its answer.
    """

    def __init__(
        self, url: str, *, profile: str = "", warn: Warn = lambda text: None, timeout_s: float = TIMEOUT_S
    ) -> None:
        self.info = StoreInfo("server", url, profile)
        self._server = AgentServer(url, timeout_s=timeout_s)
        self._tell = warn
        self._told: set[str] = set()
        self._threads: dict[str, Raw | None] = {}
        self._kept: dict[str, _Kept] = {}
        self._lone: dict[tuple[str, str, str], State] = {}
        self._last = LastStates()

    def heads(self, *, metadata: bool = True) -> Sequence[ThreadHead]:
        """See `Reader.heads`. Lists the threads; each head is read when it is taken, and checkpoints not counted."""
        return Heads(self._all_threads(), self._head)

    def namespaces(self, thread: str) -> Sequence[str]:
        """See `Reader.namespaces`. A server lists none: those that tasks name, and where a tool ran one, are tried."""
        if not self.holds(thread) or not self._list(thread, "").states:
            return ()
        kept = self._of(thread)
        if kept.namespaces is None:
            found = inner_namespaces(lambda ns: self._list(thread, ns).states, self._warn)
            kept.namespaces = ("", *sorted(found))
        return kept.namespaces

    def rows(
        self, thread: str, ns: str = "", *, ids: Collection[str] | None = None, metadata: bool = True
    ) -> Sequence[CheckpointRow]:
        """See `Reader.rows`."""
        states = self._states(thread, ns, ids)
        return sorted((state.row for state in states.values()), key=lambda row: row.id, reverse=True)

    def stored(
        self,
        thread: str,
        ns: str,
        ids: Collection[str],
        *,
        channels: Collection[str] | None = None,
        value_bytes: int | None = None,
    ) -> Iterator[StoredCheckpoint]:
        """See `Reader.stored`. Values are JSON; channel versions are not stated."""
        wanted = list(dict.fromkeys(ids))
        if channels is not None and not channels:
            known = self._states(thread, ns, wanted)
            yield from (known[i].stored(()) for i in wanted if i in known)
            return
        fields = ["values"] if channels is None else [f"values.{name}" for name in sorted(channels)]
        for chunk in in_chunks(wanted, _STATES_PER_READ):
            for state in self._with_values(thread, ns, chunk, (*_WITHOUT_TASKS, *fields)):
                if channels is None:
                    self._last.put(state)
                yield bookkeeping.without_large_values(state.stored(channels), value_bytes)

    def writes(
        self,
        thread: str,
        ns: str,
        ids: Collection[str] | None = None,
        *,
        value_bytes: int | None = None,
        channels: Collection[str] | None = None,
    ) -> Sequence[WriteRow]:
        """See `Reader.writes`. Those of the step's tasks are stated; answers to questions and updates are not."""
        found: list[WriteRow] = []
        cut_short: list[str] = []
        for state in self._states(thread, ns, ids).values():
            chosen = [w for w in state.writes if channels is None or w.channel in channels]
            if any(w.value is None and _is_read(w, value_bytes) for w in chosen):
                cut_short.append(state.row.id)
            else:
                found += chosen
        for chunk in in_chunks(cut_short, _STATES_PER_READ):
            for state in self._fetch(thread, ns, chunk, WITHOUT_VALUES):
                found += [w for w in state.writes if channels is None or w.channel in channels]
        read = (w if w.value is None or _is_read(w, value_bytes) else w._replace(value=None) for w in found)
        return sorted(read, key=write_order)

    def stated(self, thread: str, ns: str, ids: Collection[str]) -> Mapping[str, tuple[StatedTask, ...]]:
        """See `StatesTasks.stated`."""
        return {checkpoint_id: state.tasks for checkpoint_id, state in self._states(thread, ns, ids).items()}

    def holds(self, thread: str) -> bool:
        """See `StatesTasks.holds`. Says, once, that a run is writing to the thread."""
        if not is_thread_id(thread):
            return False
        if thread not in self._threads:
            found = self._threads[thread] = self._server.thread(thread)
            if found is not None and found.get("status") == "busy":
                self._warn(f"thread {thread} is busy: a run is writing to it, and this is how it stands now")
        return self._threads[thread] is not None

    def names(self) -> Sequence[str]:
        """See `StatesTasks.names`."""
        return [str(raw["thread_id"]) for raw in self._all_threads()]

    def cut(self, thread: str, ns: str) -> str | None:
        """See `StatesTasks.cut`."""
        return listed.cut if (listed := self._of(thread).listed.get(ns)) else None

    def find_run(self, run_id: str) -> Sequence[str]:
        """See `Reader.find_run`. Asks the threads that were updated last, up to 200; runs have UUIDs, as threads do."""
        if not is_thread_id(run_id):
            return ()
        threads = self.names()
        if len(threads) > _RUN_THREADS:
            self._warn(f"run {run_id} was looked for in the {_RUN_THREADS} newest of {len(threads)} threads")
        return sorted(thread for thread in threads[:_RUN_THREADS] if self._ran(thread, run_id))

    def memory(self, prefix: tuple[str, ...] = ()) -> Sequence[MemoryItem]:
        """Returns nothing: the memory store of a server is not read."""
        return ()

    def sizes(self) -> ServerSizes:
        """Returns what tells how much threads take; see `agentctl.stores.sizes.Measurable`."""
        return ServerSizes(self._server, self.names)

    def close(self) -> None:
        """See `Reader.close`."""
        self._server.close()

    def _all_threads(self) -> Sequence[Raw]:
        """Returns what the server says of each thread, the one that was updated last first."""
        threads = list_threads(self._server)
        self._threads.update(threads)
        n_busy = sum(raw.get("status") == "busy" for raw in threads.values())
        if n_busy:
            self._warn(f"{n_busy} of {len(threads)} threads are busy: a run is writing to them")
        return newest_first(threads.values())

    def _ran(self, thread: str, run_id: str) -> bool:
        """Says whether a run was on a thread, also to a server that does not filter by metadata."""
        found = self._server.history(thread, "", limit=1, select=_WITHOUT_TASKS, metadata={"run_id": run_id})
        states = (parse_state(raw, thread, "") for raw in found)
        return any(bookkeeping.names_run(state.row.metadata, run_id) for state in states if state is not None)

    def _warn(self, text: str) -> None:
        if text not in self._told:
            self._told.add(text)
            self._tell(text)

    def _head(self, thread: str) -> State | None:
        """Returns the newest state of the root namespace, without values; None of a thread that has gone since."""
        try:
            raw = next(iter(self._server.history(thread, "", limit=1, select=WITHOUT_VALUES)), None)
        except NotFound:
            self._warn(f"thread {thread} is listed, but the server has no such thread any more")
            return None
        return self._keep(parse_state(raw, thread, "")) if raw is not None else None

    def _list(self, thread: str, ns: str) -> Listed:
        """Returns the states of a namespace, listed once."""
        kept = self._of(thread)
        if ns not in kept.listed:
            kept.listed[ns] = listed = list_states(self._server, thread, ns)
            if listed.cut is not None:
                self._warn(listed.cut)
        return kept.listed[ns]

    def _of(self, thread: str) -> _Kept:
        """Returns what is kept of a thread; of many threads only the last few are."""
        if thread not in self._kept:
            if len(self._kept) == _KEPT_THREADS:
                del self._kept[next(iter(self._kept))]
            self._kept[thread] = _Kept()
        return self._kept[thread]

    def _states(self, thread: str, ns: str, ids: Collection[str] | None) -> Mapping[str, State]:
        """Returns states without values: all of a namespace, or those of some ids, unknown ones left out."""
        if not is_thread_id(thread):
            return {}
        if ids is None:
            return self._list(thread, ns).states
        if ns not in self._of(thread).listed and len(ids) <= _FEW:
            found = ((i, self._one(thread, ns, i)) for i in ids)
            return {i: state for i, state in found if state is not None}
        known = self._list(thread, ns).states
        return {i: known[i] for i in ids if i in known}

    def _one(self, thread: str, ns: str, checkpoint_id: str) -> State | None:
        known = self._lone.get((thread, ns, checkpoint_id))
        return known or self._keep(self._ask_one(thread, ns, checkpoint_id, WITHOUT_VALUES))

    def _keep(self, state: State | None) -> State | None:
        if state is None:
            return None
        if len(self._lone) == _MAX_LONE:
            self._lone.clear()
        kept = self._lone[state.row.thread, state.row.ns, state.row.id] = state.slim(KEPT_RESULT_BYTES)
        return kept

    def _ask_one(self, thread: str, ns: str, checkpoint_id: str, select: Sequence[str]) -> State | None:
        return parse_state(self._server.state(thread, ns, checkpoint_id, select=select), thread, ns)

    def _with_values(self, thread: str, ns: str, ids: Sequence[str], select: Sequence[str]) -> Iterator[State]:
        """Yields states with values in the order of `ids`; those that are kept whole are not asked for again."""
        kept = {i: state for i in ids if (state := self._last.get((thread, ns, i))) is not None}
        asked = self._fetch(thread, ns, [i for i in ids if i not in kept], select)
        known = {state.row.id: state for state in asked} | kept
        yield from (known[i] for i in ids if i in known)

    def _fetch(self, thread: str, ns: str, ids: Sequence[str], select: Sequence[str]) -> Iterator[State]:
        """Yields whole states in the order of `ids`: neighbours in one page, others one by one."""
        page = self._page_around(thread, ns, ids, select)
        for checkpoint_id in ids:
            state = page.get(checkpoint_id) or self._ask_one(thread, ns, checkpoint_id, select)
            if state is not None:
                yield state

    def _page_around(self, thread: str, ns: str, ids: Sequence[str], select: Sequence[str]) -> Mapping[str, State]:
        """Returns the states of ids that are neighbours in their namespace, read at once; empty where they are not."""
        listed = self._of(thread).listed.get(ns)
        if len(ids) < 2 or listed is None or not listed.is_paged or not all(i in listed.places for i in ids):
            return {}
        places = sorted(listed.places[i] for i in ids)
        if places[0] == 0:
            del places[0]  # the newest has none before it that a page could be asked from
        if len(places) < 2 or places[-1] - places[0] != len(places) - 1:
            return {}
        before = listed.newest_first[places[0] - 1]
        page = self._server.history(thread, ns, limit=len(places), before=before, select=select)
        states = (parse_state(raw, thread, ns) for raw in page)
        return {state.row.id: state for state in states if state is not None}


def _is_read(write: WriteRow, value_bytes: int | None) -> bool:
    """Says whether a write's value is wanted, by its size."""
    return value_bytes is None or (value_bytes > 0 and write.n_bytes <= value_bytes)
