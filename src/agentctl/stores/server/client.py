"""Asking an Agent Server: the connection, the key, timeouts, and what each failure means.

The SDK's own `get_sync_client` tries a refused connection for 7 seconds and waits 5 minutes for an answer, so its
client is made on a connection of ours. The key comes from the environment, by the names and in the order of the SDK.

Source: langgraph_sdk/_sync/client.py, _shared/utilities.py (`_get_api_key`, `_get_headers`), errors.py (langgraph-sdk
0.4.14); routes of langgraph-api 0.16.7.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, TypeVar, cast
from urllib.parse import quote
from uuid import UUID

from agentctl.codec.secrets import hide_secrets
from agentctl.errors import AgentctlError, NotFound, Refused, StoreError
from agentctl.records.copies import command

if TYPE_CHECKING:
    import httpx
    from langgraph_sdk.client import SyncLangGraphClient
    from langgraph_sdk.errors import APIStatusError
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
_MAX_DETAIL: Final = 200
_THREAD_FIELDS: Final = ("thread_id", "created_at", "updated_at", "metadata", "status")
_DURABLE: Final = (
    "a server keeps what its checkpointer keeps: `langgraph dev` loses what it had not saved when it is killed. "
    'Give langgraph.json a durable "checkpointer", or read its database: --store postgresql://USER@HOST/DATABASE'
)


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
        self._timeout_s = timeout_s
        self._key_name, key = _key()
        connection = httpx.Client(
            base_url=url,
            # Loading certificates takes 80 ms, which an address without TLS has no use for.
            transport=WholeAnswers(
                httpx.HTTPTransport(retries=0, verify=url.startswith("https:")),
                max_bytes=max_bytes,
                max_s=timeout_s * _MAX_TIMEOUTS,
            ),
            timeout=httpx.Timeout(timeout_s, connect=min(_CONNECT_TIMEOUT_S, timeout_s)),
            headers={"accept-encoding": ENCODINGS} | ({"x-api-key": key} if key else {}),
            follow_redirects=False,  # the key is for this address alone
            event_hooks={"response": [self._measure]},
        )
        self._client = SyncLangGraphClient(connection)

    def threads(self, *, limit: int, offset: int) -> Sequence[Raw]:
        """Returns one page of threads, oldest first, without their state."""
        found = self._ask(
            "list threads",
            lambda client: client.threads.search(
                limit=limit, offset=offset, sort_by="created_at", sort_order="asc", select=list(_THREAD_FIELDS)
            ),
        )
        return self._objects(found)

    def thread(self, thread: str) -> Raw | None:
        """Returns what the server says of a thread itself, None where it has none of that id."""
        try:
            return self._object(self._ask("read the thread", lambda client: client.threads.get(thread), thread))
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
                "read the history",
                lambda client: client.threads.get_history(
                    thread,
                    limit=limit,
                    before={"configurable": {"checkpoint_id": before}} if before else None,  # type: ignore[arg-type]
                    checkpoint=_checkpoint(thread_id=thread, checkpoint_ns=ns) if ns else None,
                    select=list(select),
                    metadata=metadata,
                ),
                thread,
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
            "read the history",
            lambda client: client.http.get(path, params={"limit": limit, "before": before}),
            thread,
        )
        return self._objects(found)

    def state(self, thread: str, ns: str, checkpoint_id: str, *, select: Sequence[str]) -> Raw:
        """Returns the state of one checkpoint. Of an unknown id the server gives an empty one."""
        found = self._ask(
            "read the state",
            lambda client: client.threads.get_state(
                thread,
                checkpoint=_checkpoint(thread_id=thread, checkpoint_ns=ns, checkpoint_id=checkpoint_id),
                select=list(select),
            ),
            thread,
        )
        return self._object(found)

    def storage(self, thread: str) -> Raw:
        """Returns how many bytes a thread that the server has takes, by channel.

        Raises:
            Refused: The server does not count them: an older version, or a checkpointer of the application's own.
        """
        path = f"/threads/{quote(thread, safe='')}/storage"
        return self._object(self._ask("count bytes", lambda client: client.http.get(path), thread, may_lack=True))

    def close(self) -> None:
        """Ends the connection. Safe to call twice."""
        self._client.close()

    def _measure(self, response: httpx.Response) -> None:
        response.read()
        self.n_bytes = len(response.content)
        if response.is_redirect:
            to = response.headers["location"][:_MAX_DETAIL]
            raise StoreError(
                f"{self.url} answered {response.status_code} and sends on to {hide_secrets(to)}: not followed",
                hint="the key is sent to the address you gave alone; where you trust the other one, give it to --store",
            )

    def _ask(
        self,
        what: str,
        question: Callable[[SyncLangGraphClient], T],
        thread: str | None = None,
        *,
        may_lack: bool = False,
    ) -> T:
        try:
            return self._twice(question)
        except AgentctlError:
            raise
        except Exception as error:
            raise self._meaning(error, what, thread, may_lack=may_lack) from error

    def _twice(self, question: Callable[[SyncLangGraphClient], T]) -> T:
        """Asks, and asks once more where the connection was dropped: what is asked changes nothing."""
        import httpx

        try:
            return question(self._client)
        except (httpx.ReadError, httpx.WriteError, httpx.CloseError, httpx.RemoteProtocolError):
            return question(self._client)

    def _meaning(self, error: Exception, what: str, thread: str | None, *, may_lack: bool) -> AgentctlError | Exception:
        """Returns what a failure means; the failure itself where it is none of the connection or of the server."""
        import httpx
        from langgraph_sdk.errors import APIStatusError

        match error:
            case APIStatusError():
                return self._refusal(error, what, thread, may_lack=may_lack)
            case httpx.TimeoutException():
                return StoreError(
                    f"{self.url} did not answer within {self._timeout_s:g} seconds: could not {what}",
                    hint=f"is it up? curl {self.url}/ok",
                )
            case httpx.ConnectError() | httpx.UnsupportedProtocol() | httpx.InvalidURL():
                return StoreError(f"cannot reach {self.url}: {error}", hint=f"is it up? curl {self.url}/ok")
            case httpx.TransportError():
                return StoreError(
                    f"{self.url} dropped the connection twice while it answered: could not {what}",
                    hint=f"nothing of the answer was used. Try again; is it up? curl {self.url}/ok",
                )
            case ValueError():
                return self._no_server("the answer is not JSON")
            case _:
                return error

    def _refusal(self, error: APIStatusError, what: str, thread: str | None, *, may_lack: bool) -> AgentctlError:
        status, detail = error.status_code, _detail(error.body)
        said = f"{self.url} answered {status}{f' ({detail})' if detail else ''}: could not {what}"
        if status in (401, 403):
            return StoreError(said, hint=self._key_hint())
        if may_lack and status in (404, 405, 501):
            return Refused(
                f"{self.url} does not say what a thread takes: {detail or status}",
                hint="give the database it checkpoints into: agentctl size --store postgresql://USER@HOST/DATABASE",
            )
        if status == 404 and thread is not None:
            return NotFound(f"there is no thread {thread} in {self.url}", hint=command("threads"))
        if status == 404:
            return self._no_server(f"404 for {error.request.url.path}")
        if status == 409:
            return StoreError(said, hint="a run is going on on this thread: try again when it has ended")
        if status == 429:
            return StoreError(said, hint="it limits how often it is asked: try again later")
        if status >= 500:
            return StoreError(said, hint=_DURABLE)
        return StoreError(said, hint=f"which version is it? curl {self.url}/info (known here: langgraph-api 0.16)")

    def _key_hint(self) -> str:
        if self._key_name:
            return f"it does not take the key in {self._key_name}: set LANGGRAPH_API_KEY to a key of this deployment"
        return f"set {KEY_VARIABLES[0]} (or {KEY_VARIABLES[1]}) to a key of this deployment"

    def _no_server(self, why: str) -> StoreError:
        return StoreError(
            f"what answers at {self.url} is no Agent Server: {why}",
            hint="--store takes the address of the deployment itself, without the path of a page",
        )

    def _objects(self, found: object) -> Sequence[Raw]:
        if isinstance(found, list) and all(isinstance(item, Mapping) for item in found):
            return found
        raise self._no_server("a list of objects was expected")

    def _object(self, found: object) -> Raw:
        if isinstance(found, Mapping):
            return found
        raise self._no_server("an object was expected")


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


def _detail(body: object) -> str:
    """Returns what an error's body says, in one short line."""
    if isinstance(body, Mapping):
        body = next((body[name] for name in ("detail", "message", "error") if isinstance(body.get(name), str)), "")
    text = " ".join(str(body or "").split())
    return text if len(text) <= _MAX_DETAIL else text[: _MAX_DETAIL - 3] + "..."
