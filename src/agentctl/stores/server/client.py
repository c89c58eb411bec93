"""Asking an Agent Server: the connection, the key, timeouts, and each question as one request.

The SDK's own `get_sync_client` tries a refused connection for 7 seconds and waits 5 minutes for an answer, so its
client is made on a connection of ours. The key comes from the environment, by the names and in the order of the SDK.

Source: langgraph_sdk/_sync/client.py, _shared/utilities.py (`_get_api_key`, `_get_headers`) (langgraph-sdk 0.4.14);
routes of langgraph-api 0.16.7.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, TypeVar, cast
from urllib.parse import quote
from uuid import UUID

from agentctl.errors import AgentctlError, NotFound
from agentctl.stores.server.failures import Asking, Failures

if TYPE_CHECKING:
    import httpx
    from langgraph_sdk.client import SyncLangGraphClient
    from langgraph_sdk.schema import Checkpoint

T = TypeVar("T")
Raw = Mapping[str, Any]
"""A JSON object as the server gave it."""

KEY_VARIABLES: Final = ("LANGGRAPH_API_KEY", "LANGSMITH_API_KEY", "LANGCHAIN_API_KEY")
TIMEOUT_S: Final = 30.0
"""How long a request may wait for the next part of its answer."""
MAX_ANSWER_BYTES: Final = 512 * 1024**2
"""How long an answer may be. Pages get smaller as states grow: one state alone has to be longer."""
_CONNECT_TIMEOUT_S: Final = 5.0
_MAX_TIMEOUTS: Final = 20
"""How many times the timeout a whole answer may take."""
_START_BYTES: Final = 64
_THREAD_FIELDS: Final = ("thread_id", "created_at", "updated_at", "metadata", "status")


class AgentServer:
    """One Agent Server. Every method is one request, made again once where the connection was dropped.

    Args:
        url: Its address without a trailing slash.
        timeout_s: How long a request may wait for the next part of its answer; all of it may take 20 times as long.
        max_bytes: How long an unpacked answer may be.

    Attributes:
        url: Its address.
        n_bytes: How long the last answer was.
    """

    def __init__(self, url: str, *, timeout_s: float = TIMEOUT_S, max_bytes: int = MAX_ANSWER_BYTES) -> None:
        import httpx
        from langgraph_sdk.client import SyncLangGraphClient

        from agentctl.stores.server.transport import ENCODINGS, WholeAnswers

        self.url = url
        self.n_bytes = 0
        self._start = b""
        key_name, key = _key()
        connect_timeout_s = min(_CONNECT_TIMEOUT_S, timeout_s)
        self._failures = Failures(url, timeout_s, connect_timeout_s, KEY_VARIABLES, key_name, key)
        connection = httpx.Client(
            base_url=url,
            # Loading certificates takes 80 ms, which an address without TLS has no use for.
            transport=WholeAnswers(
                httpx.HTTPTransport(retries=0, verify=url.startswith("https:")),
                max_bytes=max_bytes,
                max_s=timeout_s * _MAX_TIMEOUTS,
            ),
            timeout=httpx.Timeout(timeout_s, connect=connect_timeout_s),
            headers={"accept-encoding": ENCODINGS} | ({"x-api-key": key} if key else {}),
            follow_redirects=False,  # the key is for this address alone
            event_hooks={"response": [self._measure]},
        )
        self._client = SyncLangGraphClient(connection)

    def threads(self, *, limit: int, offset: int) -> Sequence[Raw]:
        """Returns one page of threads, oldest first, without their state."""
        found = self._ask(
            Asking("list threads"),
            lambda client: client.threads.search(
                limit=limit, offset=offset, sort_by="created_at", sort_order="asc", select=list(_THREAD_FIELDS)
            ),
        )
        return self._objects(found)

    def thread(self, thread: str) -> Raw | None:
        """Returns what the server says of a thread itself, None where it has none of that id."""
        try:
            return self._object(self._ask(Asking("read the thread", thread), lambda client: client.threads.get(thread)))
        except NotFound:
            return None

    def history(
        self,
        thread: str,
        ns: str,
        *,
        limit: int,
        before: str | None = None,
        select: Sequence[str],
        metadata: Mapping[str, str] | None = None,
    ) -> Sequence[Raw]:
        """Returns one page of a namespace's states, newest first; nothing where the server knows no such namespace.

        Args:
            thread: Thread id.
            ns: Namespace.
            limit: At most this many.
            before: Only those older than this checkpoint. Of the SDK's forms a text is answered with 422 and a
                Checkpoint with 500; this one works.
            select: Fields wanted; servers that do not know the option send all of them.
            metadata: Only states with these values.
        """
        try:
            found = self._ask(
                Asking("read the history", thread),
                lambda client: client.threads.get_history(
                    thread,
                    limit=limit,
                    before={"configurable": {"checkpoint_id": before}} if before else None,  # type: ignore[arg-type]
                    checkpoint=_checkpoint(thread_id=thread, checkpoint_ns=ns) if ns else None,
                    select=list(select),
                    metadata=metadata,
                ),
            )
        except NotFound:
            if ns:
                return ()
            raise
        return self._objects(found)

    def history_by_address(self, thread: str, *, limit: int, before: str) -> Sequence[Raw]:
        """Returns the same page of the root namespace, asked for by GET, where `before` is a text."""
        path = f"/threads/{quote(thread, safe='')}/history"
        found = self._ask(
            Asking("read the history", thread),
            lambda client: client.http.get(path, params={"limit": limit, "before": before}),
        )
        return self._objects(found)

    def state(self, thread: str, ns: str, checkpoint_id: str, *, select: Sequence[str]) -> Raw:
        """Returns the state of one checkpoint. Of an unknown id the server gives an empty one."""
        found = self._ask(
            Asking("read the state", thread),
            lambda client: client.threads.get_state(
                thread,
                checkpoint=_checkpoint(thread_id=thread, checkpoint_ns=ns, checkpoint_id=checkpoint_id),
                select=list(select),
            ),
        )
        return self._object(found)

    def storage(self, thread: str) -> Raw:
        """Returns how many bytes a thread that the server has takes, by channel.

        Raises:
            Refused: The server does not count them: an older version, or a checkpointer of the application's own.
        """
        path = f"/threads/{quote(thread, safe='')}/storage"
        asking = Asking("count bytes", thread, may_lack=True)
        return self._object(self._ask(asking, lambda client: client.http.get(path)))

    def close(self) -> None:
        """Ends the connection. Safe to call twice."""
        self._client.close()

    def _measure(self, response: httpx.Response) -> None:
        response.read()
        self.n_bytes = len(response.content)
        self._start = response.content[:_START_BYTES]
        if response.is_redirect:
            raise self._failures.redirect(response)

    def _ask(self, asking: Asking, question: Callable[[SyncLangGraphClient], T]) -> T:
        try:
            return self._twice(question)
        except AgentctlError:
            raise
        except Exception as error:
            raise self._failures.meaning(error, asking, self._start) from error

    def _twice(self, question: Callable[[SyncLangGraphClient], T]) -> T:
        """Asks, and asks once more where the connection was dropped: what is asked changes nothing."""
        import httpx

        try:
            return question(self._client)
        except (httpx.ReadError, httpx.WriteError, httpx.CloseError, httpx.RemoteProtocolError):
            return question(self._client)

    def _objects(self, found: object) -> Sequence[Raw]:
        if isinstance(found, list) and all(isinstance(item, Mapping) for item in found):
            return found
        raise self._failures.no_server("a list of objects was expected")

    def _object(self, found: object) -> Raw:
        if isinstance(found, Mapping):
            return found
        raise self._failures.no_server("an object was expected")


def is_thread_id(text: str) -> bool:
    """Says whether a text can be the id of a thread: a UUID. Of anything else a server says 422."""
    try:
        return str(UUID(text)) == text.lower()
    except ValueError:
        return False


def _checkpoint(**fields: str) -> Checkpoint:
    """Returns a checkpoint with only these fields: a server refuses one that is null."""
    return cast("Checkpoint", fields)


def _key() -> tuple[str, str]:
    """Returns the variable that holds the key, and the key; ('', '') where there is none."""
    for name in KEY_VARIABLES:
        if value := os.environ.get(name):
            return name, value.strip().strip("\"'")
    return "", ""
