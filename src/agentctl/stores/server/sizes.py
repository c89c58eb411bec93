"""What threads take on an Agent Server, as it counts them: by thread and by channel, without a state.

Its own storage alone is counted, by versions that have `GET /threads/{id}/storage`. Namespaces are not told apart
there, and nothing says what the newest state takes.

Source: langgraph_api/api/threads.py (`get_thread_storage`, langgraph-api 0.16.7).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from agentctl.errors import NotFound, Refused
from agentctl.records.copies import command
from agentctl.records.sizes import ChannelPart, ChannelWrites, DatabaseSize, Role, RowSize, SizePart, StateValues
from agentctl.stores.server.client import AgentServer
from agentctl.stores.sizes import Tick


class ServerSizes:
    """Sizes of an Agent Server; see `agentctl.stores.sizes.SizeReader`.

    Args:
        server: Where to ask.
        threads: Lists the ids of all threads.
    """

    def __init__(self, server: AgentServer, threads: Callable[[], Sequence[str]]) -> None:
        self._server = server
        self._threads = threads

    def parts(self, thread: str | None = None) -> Iterator[SizePart]:
        """See `SizeReader.parts`. A thread without any row has none."""
        tables: tuple[tuple[Role, str], ...] = (
            ("checkpoints", "checkpoints"),
            ("blobs", "channel_values"),
            ("writes", "pending_writes"),
        )
        for name, storage in self._storages(thread):
            for role, key in tables:
                counted = _map(storage.get(key))
                if n_rows := _number(counted.get("count")):
                    yield SizePart(role, name, "", n_rows, _number(counted.get("bytes")), newest_bytes=None)

    def channels(self, thread: str | None = None, *, tick: Tick) -> Iterator[ChannelPart]:
        """See `SizeReader.channels`. A value is counted once a version."""
        for _, storage in self._storages(thread):
            for channel, counted in _map(_map(storage.get("channel_values")).get("by_channel")).items():
                n_versions = _number(_map(counted).get("versions"))
                yield ChannelPart(
                    "", str(channel), n_versions, None, _number(_map(counted).get("bytes")), newest_bytes=None
                )
            tick(_number(_map(storage.get("checkpoints")).get("count")))

    def written(self, thread: str | None = None) -> Iterator[ChannelWrites]:
        """Yields nothing: pending writes are not told by channel."""
        return iter(())

    def values(self, thread: str | None = None, *, tick: Tick) -> Iterator[StateValues]:
        """Refuses: a server does not say how its values are stored."""
        raise self._refused("messages and fields", thread)

    def largest(self, thread: str | None = None, *, limit: int | None) -> Sequence[RowSize]:
        """Refuses: a server does not tell of its rows."""
        raise self._refused("rows", thread)

    def database(self) -> DatabaseSize | None:
        """Returns None: what the server's database takes is not known."""
        return None

    def _storages(self, thread: str | None) -> Iterator[tuple[str, Mapping[str, Any]]]:
        for name in [thread] if thread is not None else self._threads():
            try:
                yield name, self._server.storage(name)
            except NotFound:
                if thread is not None:
                    raise

    def _refused(self, what: str, thread: str | None) -> Refused:
        scope = ("size",) if thread is None else ("size", thread)
        return Refused(
            f"{self._server.url} counts threads and channels, and does not say what {what} take",
            hint=f"{command(*scope, '--by', 'channel')}; or ask the database that it checkpoints into",
        )


def _map(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _number(value: object) -> int:
    return value if isinstance(value, int) else 0
