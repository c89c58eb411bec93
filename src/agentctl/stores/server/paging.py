"""Complete lists from a server that gives pages: no row twice, and never a part sold as the whole.

A page is not the last because it is short: some servers cap it. A history is whole when every checkpoint's parent is in
it; where the server has no more to give and a parent is missing, the history is cut, and says so.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Final

from agentctl.errors import StoreError
from agentctl.records.rows import id_time
from agentctl.stores.server.client import AgentServer, Raw
from agentctl.stores.server.states import WITHOUT_VALUES, State, parse_state

KEPT_RESULT_BYTES: Final = 16 * 1024
"""Task results larger than this are asked for again when they are needed."""

_THREADS_PER_PAGE: Final = 500
_FIRST_PAGE: Final = 20
_MAX_PAGE: Final = 100
_PAGE_BYTES: Final = 2 * 1024 * 1024
"""How large the next page may be, by the size of the last: servers that ignore `select` send whole states."""


@dataclass
class Listed:
    """The states of one namespace, without values.

    Attributes:
        states: By checkpoint id, in the order in which the server gave them.
        cut: Why there were more than these, None where these are all.
        is_paged: Whether the server has given a second page in the form that names the checkpoint before it.
    """

    states: dict[str, State] = field(default_factory=dict)
    cut: str | None = None
    is_paged: bool = False

    @cached_property
    def newest_first(self) -> Sequence[str]:
        """The ids in the order of pages; asked for when all are listed."""
        return sorted(self.states, reverse=True)

    @cached_property
    def places(self) -> Mapping[str, int]:
        """Where each id is among them."""
        return {checkpoint_id: place for place, checkpoint_id in enumerate(self.newest_first)}

    @property
    def oldest(self) -> str | None:
        """The id that sorts first."""
        return min(self.states, default=None)

    @property
    def orphans(self) -> list[State]:
        """The states whose parent was not given."""
        return [s for s in self.states.values() if s.row.parent is not None and s.row.parent not in self.states]


def list_threads(server: AgentServer) -> Mapping[str, Raw]:
    """Returns every thread by its id.

    Raises:
        StoreError: It cannot be listed, or the server gives the same page whatever is asked for.
    """
    found: dict[str, Raw] = {}
    while page := server.threads(limit=_THREADS_PER_PAGE, offset=len(found)):
        new = {str(raw["thread_id"]): raw for raw in page if raw.get("thread_id")}
        if not new.keys() - found.keys():
            raise StoreError(
                f"{server.url} gives the same {len(page)} threads whatever page is asked for: not all can be listed",
                hint="name a thread, or read the database it checkpoints into",
            )
        found |= new
    return found


def list_states(server: AgentServer, thread: str, ns: str) -> Listed:
    """Returns every state of a namespace; empty where it has none.

    Servers differ in the form of `before` that they take, and some give an empty page for the wrong one. So where the
    first ends before the root, the other is tried from there.

    Raises:
        NotFound: The server has no such thread.
        StoreError: It cannot be read.
    """
    listed = Listed()
    failure: StoreError | None = None
    for ask in (_by_post, _by_address) if ns == "" else (_by_post,):
        try:
            _take_all(server, thread, ns, ask, listed)
            failure = None
        except StoreError as error:
            if not listed.states:
                raise
            failure = failure or error
        if not listed.orphans:
            return listed
    if failure is not None:
        raise failure
    listed.cut = _why_cut(listed, thread, ns)
    return listed


_Ask = Callable[[AgentServer, str, str, int, str | None], Sequence[Raw]]


def _by_post(server: AgentServer, thread: str, ns: str, limit: int, before: str | None) -> Sequence[Raw]:
    return server.history(thread, ns, limit=limit, before=before, select=WITHOUT_VALUES)


def _by_address(server: AgentServer, thread: str, ns: str, limit: int, before: str | None) -> Sequence[Raw]:
    return server.history_by_address(thread, limit=limit, before=before) if before else ()


def _take_all(server: AgentServer, thread: str, ns: str, ask: _Ask, listed: Listed) -> None:
    """Adds the states from the oldest that is known, page by page, until there are no more."""
    limit = _FIRST_PAGE
    while True:
        page = ask(server, thread, ns, limit, listed.oldest)
        states = (parse_state(raw, thread, ns) for raw in page)
        new = {state.row.id: state.slim(KEPT_RESULT_BYTES) for state in states if state is not None}
        n_known = len(listed.states)
        listed.states |= new
        listed.is_paged = listed.is_paged or (ask is _by_post and 0 < n_known < len(listed.states))
        if len(listed.states) == n_known or (len(page) < limit and not listed.orphans):
            return
        limit = page_limit(server.n_bytes, len(page))


def page_limit(n_bytes: int, n_states: int) -> int:
    """Returns how many states to ask for, so that a page is about 2 MB.

    Args:
        n_bytes: How long the last page was.
        n_states: How many states it had.
    """
    return max(1, min(_MAX_PAGE, _PAGE_BYTES * n_states // max(n_bytes, 1)))


def _why_cut(listed: Listed, thread: str, ns: str) -> str:
    oldest = min(listed.orphans, key=lambda state: state.row.id)
    at = oldest.ts or str(id_time(oldest.row.id) or "an unknown time")
    where = f"thread {thread}" + (f", namespace {ns}" if ns else "")
    return (
        f"the history is cut: of {where} the server gives {len(listed.states)} checkpoints, the oldest of {at}, "
        f"and not the parent {oldest.row.parent} of {oldest.row.id}; it may have deleted what is older"
    )
