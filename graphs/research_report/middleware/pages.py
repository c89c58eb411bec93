"""The search subagent's boundary: which pages it may read and how many, where they are kept, what a note may say."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any
from urllib.parse import urlsplit

from deepagents.middleware.filesystem import FilesystemState
from langchain.agents.middleware.types import AgentMiddleware
from langchain_core.messages import ToolMessage
from langgraph.prebuilt.tool_node import ToolCallRequest
from langgraph.runtime import Runtime
from langgraph.types import Command
from pydantic import ValidationError

from graphs.research_report.middleware.calls import answers, earlier_calls, refusal, state_of
from graphs.research_report.notes import NOTES, Note, Page, as_json, read_pages, text_file
from graphs.research_report.policy import Policy
from graphs.research_report.text import contains

Result = ToolMessage | Command[Any]


class PageKeeper(AgentMiddleware[FilesystemState, None, Any]):
    """Keeps what fetch_page gave as files, and holds searches, pages and notes to the rules.

    Pages are kept by a step of their own, from the messages: whoever corrects a tool result has corrected the page.

    Args:
        policy: The policy in force.
    """

    state_schema = FilesystemState

    def __init__(self, policy: Policy) -> None:
        super().__init__()
        self._policy = policy

    def before_model(self, state: FilesystemState, runtime: Runtime[None]) -> dict[str, Any] | None:
        """Writes the pages that are not kept yet, `/pages/SOURCE_ID.json`."""
        kept: Mapping[str, Any] = state.get("files") or {}
        pages = {page.path: text_file(as_json(page)) for page in _fetched(state["messages"])}
        new = {path: file for path, file in pages.items() if kept.get(path, {}).get("content") != file["content"]}
        if not new:
            return None
        runtime.stream_writer({"progress": f"{len(new)} pages read"})
        return {"files": new}

    async def abefore_model(self, state: FilesystemState, runtime: Runtime[None]) -> dict[str, Any] | None:
        """The same, where the graph runs async."""
        return self.before_model(state, runtime)

    def wrap_tool_call(self, request: ToolCallRequest, handler: Callable[[ToolCallRequest], Result]) -> Result:
        """Refuses, or goes on."""
        return self._refused(request) or handler(request)

    async def awrap_tool_call(
        self, request: ToolCallRequest, handler: Callable[[ToolCallRequest], Awaitable[Result]]
    ) -> Result:
        """The same, where the graph runs async."""
        return self._refused(request) or await handler(request)

    def _refused(self, request: ToolCallRequest) -> ToolMessage | None:
        reasons = {"web_search": self._search_problem, "fetch_page": self._page_problem, "write_file": _note_problem}
        check = reasons.get(request.tool_call["name"])
        reason = check(request) if check else ""
        return refusal(request.tool_call, reason) if reason else None

    def _search_problem(self, request: ToolCallRequest) -> str:
        most = self._policy.max_searches
        earlier = earlier_calls(state_of(request)["messages"], request.tool_call)
        return f"{most} searches were made: sum up what was found" if len(earlier) >= most else ""

    def _page_problem(self, request: ToolCallRequest) -> str:
        most, state = self._policy.max_pages, state_of(request)
        host = urlsplit(str(request.tool_call["args"].get("url", ""))).hostname or ""
        blocked = (state.get("preferences") or {}).get("blocked_domains") or ()
        if any(host == domain or host.endswith(f".{domain}") for domain in blocked):
            return f"{host} is a blocked domain"
        earlier = earlier_calls(state["messages"], request.tool_call)
        return f"{most} pages were read: sum up what was found" if len(earlier) >= most else ""


def _fetched(messages: Any) -> list[Page]:
    found = {}
    for message in answers(messages).values():
        if message.name != "fetch_page" or message.status == "error":
            continue
        try:
            page = Page.model_validate_json(message.text)
        except ValidationError:
            continue
        found[page.source_id] = page
    return list(found.values())


def _note_problem(request: ToolCallRequest) -> str:
    """Says why a notes file may not be written: wrong place, wrong fields, or a quote that its page does not hold."""
    args, files = request.tool_call["args"], state_of(request).get("files") or {}
    path = str(args.get("file_path", ""))
    if not path.startswith(f"{NOTES}/"):
        return f"notes files belong in {NOTES}"
    try:
        note = Note.model_validate_json(str(args.get("content", "")))
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        return f"this is no note: {'.'.join(map(str, first['loc']))}: {first['msg']}"
    if note.path != path:
        return f"this note belongs in {note.path}"
    page = read_pages(files).get(note.source_id)
    if page is None:
        return f"{note.source_id} was not fetched: only pages that were read are noted"
    different = [
        name
        for name in ("url", "title", "accessed_on", "published_on", "readable")
        if (getattr(note, name) or None) != (getattr(page, name) or None)
    ]
    if different:
        return f"{', '.join(different)} must be as fetch_page gave it"
    missing = next((quote.quote for quote in note.quotes if not contains(page.text, quote.quote)), None)
    return f"the page does not say, word for word: {missing}" if missing else ""
