"""A deep agent with two subagents side by side: messages and files are delta channels, notes are files."""

from __future__ import annotations

import json
import re
from collections import Counter
from typing import Any

from deepagents import create_deep_agent
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage
from langchain_core.tools import tool

from tests.catalog.agents import call
from tests.catalog.case import Saver, case, go
from tests.catalog.scripted import ScriptedModel

WORLD: Counter[str] = Counter()
"""How often a page was really fetched."""


@tool
def fetch_page(url: str) -> str:
    """Fetches a page."""
    WORLD[url] += 1
    return json.dumps({"url": url, "year": 2025})


def _search(messages: list[BaseMessage], results: list[str]) -> AIMessage:
    """A subagent: fetches the page of its topic, notes it in a file, and says what it noted."""
    topic, turn = str(messages[-1 - 2 * len(results)].content), len(messages)
    match len(results):
        case 0:
            calls = [call("fetch_page", f"fetch-{topic}", url=f"https://x/{topic}")]
        case 1:
            calls = [call("write_file", f"note-{topic}", file_path=f"/notes/{topic}.md", content=results[0])]
        case _:
            return AIMessage(f"{topic}: {json.loads(results[0])['year']}", id=f"{topic}-{turn}")
    return AIMessage("", id=f"{topic}-{turn}", tool_calls=calls)


def _lead(messages: list[BaseMessage], results: list[str]) -> AIMessage:
    """The agent itself: asks about two topics at once, reads a note, reports, and corrects the note when told to."""
    turn, is_first = len(messages), sum(isinstance(message, HumanMessage) for message in messages) == 1
    if len(results) == 2 and is_first:
        return AIMessage("", id=f"lead-{turn}", tool_calls=[call("read_file", "read-a", file_path="/notes/a.md")])
    if results:
        noted = re.findall(r'"year": (\d+)', results[-1])
        return AIMessage("; ".join([*results[:2], *noted]) if is_first else "corrected", id=f"lead-{turn}")
    if is_first:
        calls = [call("task", f"task-{topic}", description=topic, subagent_type="search") for topic in "ab"]
    else:
        calls = [call("edit_file", "edit-a", file_path="/notes/a.md", old_string="2025", new_string="2023")]
    return AIMessage("", id=f"lead-{turn}", tool_calls=calls)


def _script(messages: list[BaseMessage], bound: list[str]) -> AIMessage:
    last = max(place for place, message in enumerate(messages) if isinstance(message, HumanMessage))
    results = [str(message.content) for message in messages[last:] if isinstance(message, ToolMessage)]
    return (_lead if "task" in bound else _search)(messages, results)


def research(saver: Saver | None) -> Any:
    """The graph."""
    search = {"name": "search", "description": "Searches.", "system_prompt": "Search.", "tools": [fetch_page]}
    return create_deep_agent(model=ScriptedModel(script=_script), tools=[], subagents=[search], checkpointer=saver)


def _ask_and_correct(graph: Any, thread: str) -> None:
    go(graph, thread, {"messages": [HumanMessage("what is known?", id="h-0")]})
    go(graph, thread, {"messages": [HumanMessage("correct it", id="h-1")]})


CASES = (case("research", research, _ask_and_correct, "two subagents that write files, and a turn that edits one"),)
