"""What each failure of an Agent Server means: an error that says what happened and what to try.

What a server says of a failure is shown in one line, without secrets: some send back what they were asked with. A proxy
answers in HTML, of which the title is enough, and its 404 says nothing of a thread.

Source: langgraph_sdk/errors.py (langgraph-sdk 0.4.14); httpx/_exceptions.py (httpx 0.28.1); starlette/routing.py
(`Router.not_found`, starlette 1.10.0).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from agentctl.codec.secrets import HIDDEN, hide_secrets
from agentctl.errors import AgentctlError, NotFound, Refused, StoreError
from agentctl.records.copies import command

if TYPE_CHECKING:
    import httpx
    from langgraph_sdk.errors import APIStatusError

_MAX_DETAIL: Final = 200
_NO_ROUTE: Final = "Not Found"
"""What web frameworks say of an address that they do not know. Of a thread that it does not know a server says more."""
_HTML: Final = re.compile(r"\s*<(?:!doctype|html|head|body|title)\b", re.IGNORECASE)
_TITLE: Final = re.compile(r"<title[^>]*>(.*?)</title>", re.IGNORECASE | re.DOTALL)
_BREAKS: Final = ("disconnected", "closed connection")
"""In the texts of protocol errors that are no more than a dropped connection; the others are of what is no HTTP."""
_JSON_STARTS: Final = (b"[", b"{")

_DURABLE: Final = (
    "a server keeps what its checkpointer keeps: `langgraph dev` loses what it had not saved when it is killed. "
    'Give langgraph.json a durable "checkpointer", or read its database: --store postgresql://USER@HOST/DATABASE'
)


@dataclass(frozen=True, slots=True)
class Asking:
    """What was asked.

    Attributes:
        what: In words, after "could not".
        thread: The thread that was asked for, None for a list.
        may_lack: Whether there are servers that do not have it.
    """

    what: str
    thread: str | None = None
    may_lack: bool = False


@dataclass(frozen=True, slots=True)
class Failures:
    """Gives failures of one server their meaning.

    Attributes:
        url: Its address.
        timeout_s: How long a request may wait for the next part of its answer.
        connect_timeout_s: How long it may wait for a connection.
        variables: Environment variables that a key is taken from.
        key_name: The one that the key came from, or ''.
        key: The key, which is never shown.
    """

    url: str
    timeout_s: float
    connect_timeout_s: float
    variables: tuple[str, ...]
    key_name: str
    key: str = field(repr=False)

    def meaning(self, error: Exception, asking: Asking, answer: bytes) -> AgentctlError | Exception:
        """Returns what a failure means; the failure itself where it is none of the connection or of the server.

        Args:
            error: What was raised.
            asking: What was asked.
            answer: What the last answer began with.
        """
        import httpx
        from langgraph_sdk.errors import APIStatusError

        is_up, could_not = f"is it up? curl {self.url}/ok", f"could not {asking.what}"
        match error:
            case APIStatusError():
                return self._refusal(error, asking)
            case httpx.ConnectTimeout():
                return StoreError(
                    f"cannot reach {self.url}: no connection within {self.connect_timeout_s:g} seconds", hint=is_up
                )
            case httpx.TimeoutException():
                return StoreError(
                    f"{self.url} did not answer within {self.timeout_s:g} seconds: {could_not}", hint=is_up
                )
            case httpx.ConnectError() | httpx.UnsupportedProtocol() | httpx.InvalidURL():
                return StoreError(f"cannot reach {self.url}: {error}", hint=is_up)
            case httpx.RemoteProtocolError() if not any(text in str(error) for text in _BREAKS):
                return self.no_server("it does not speak HTTP")
            case httpx.TransportError():
                return StoreError(
                    f"{self.url} dropped the connection twice while it answered: {could_not}",
                    hint=f"nothing of the answer was used. Try again; {is_up}",
                )
            case ValueError() if answer.lstrip().startswith(_JSON_STARTS):
                return StoreError(
                    f"an answer of {self.url} is JSON that breaks off or cannot be read: {could_not}",
                    hint=f"nothing of the answer was used. Try again; {is_up}",
                )
            case ValueError():
                return self.no_server("the answer is not JSON")
            case _:
                return error

    def redirect(self, response: httpx.Response) -> StoreError:
        """Returns the error for an answer that sends on, or that only makes sense to who asked for something else."""
        to = self._shown(response.headers.get("location", ""))
        if not to:
            return self.no_server(f"{response.status_code} instead of an answer")
        return StoreError(
            f"{self.url} answered {response.status_code} and sends on to {to}: not followed",
            hint="the key is sent to the address you gave alone; where you trust the other one, give it to --store",
        )

    def no_server(self, why: str) -> StoreError:
        """Returns the error for an answer that no Agent Server gives."""
        return StoreError(
            f"what answers at {self.url} is no Agent Server: {why}",
            hint="--store takes the address of the deployment itself, without the path of a page",
        )

    def _refusal(self, error: APIStatusError, asking: Asking) -> AgentctlError:
        status, detail = error.status_code, self._shown(_detail(error.body))
        said = f"{self.url} answered {status}{f' ({detail})' if detail else ''}: could not {asking.what}"
        is_told = status != 404 or (isinstance(error.body, Mapping) and detail not in ("", _NO_ROUTE))
        if status in (401, 403):
            return StoreError(said, hint=self._key_hint())
        if asking.may_lack and (status in (405, 501) or not is_told):
            return Refused(
                f"{self.url} does not say what a thread takes: {detail or status}",
                hint="give the database it checkpoints into: agentctl size --store postgresql://USER@HOST/DATABASE",
            )
        if status == 404 and is_told and asking.thread is not None:
            return NotFound(f"there is no thread {asking.thread} in {self.url}", hint=command("threads"))
        if status == 404:
            return self.no_server(f"404 for {error.request.url.path}")
        if status == 409:
            return StoreError(said, hint="a run is going on on this thread: try again when it has ended")
        if status == 429:
            return StoreError(said, hint="it limits how often it is asked: try again later")
        if status in (502, 503, 504):
            return StoreError(said, hint=f"it, or what it is reached through, is not up: curl {self.url}/ok; try again")
        if status >= 500:
            return StoreError(said, hint=_DURABLE)
        return StoreError(said, hint=f"which version is it? curl {self.url}/info (known here: langgraph-api 0.16)")

    def _key_hint(self) -> str:
        if self.key_name:
            return f"it does not take the key in {self.key_name}: set {self.variables[0]} to a key of this deployment"
        return f"set {self.variables[0]} (or {self.variables[1]}) to a key of this deployment"

    def _shown(self, text: str) -> str:
        """Returns what a server said, in one short line and without secrets."""
        line = " ".join(text.replace(self.key, HIDDEN).split()) if self.key else " ".join(text.split())
        line = hide_secrets(line)
        return line if len(line) <= _MAX_DETAIL else line[: _MAX_DETAIL - 3] + "..."


def _detail(body: object) -> str:
    """Returns what an error's body says."""
    if isinstance(body, Mapping):
        body = next((body[name] for name in ("detail", "message", "error") if body.get(name)), "")
    text = str(body or "")
    if _HTML.match(text):
        title = _TITLE.search(text)
        return title[1] if title else ""
    return text
