"""The end of a search subagent: its summary names its notes, also where a limit has cut it short."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from langchain.agents.middleware.types import AgentMiddleware
from langchain_core.messages import AIMessage, AnyMessage
from langgraph.runtime import Runtime

from graphs.research_report.middleware.calls import last_ai
from graphs.research_report.notes import read_notes
from graphs.research_report.plan import task_of


class SearchSummary(AgentMiddleware[Any, None, Any]):
    """Replaces a summary that is none by one that is read from the notes files."""

    def after_agent(self, state: Mapping[str, Any], runtime: Runtime[None]) -> dict[str, Any] | None:
        """Adds the summary where the last message is not one."""
        latest = last_ai(state["messages"])
        if latest is not None and _is_summary(latest.text):
            return None
        return {"messages": [AIMessage(_summary(state, latest.text if latest else ""))]}

    async def aafter_agent(self, state: Mapping[str, Any], runtime: Runtime[None]) -> dict[str, Any] | None:
        """The same, where the graph runs async."""
        return self.after_agent(state, runtime)


def _is_summary(text: str) -> bool:
    try:
        found = json.loads(text)
    except ValueError:
        return False
    return isinstance(found, dict) and {"sub_question", "notes"} <= set(found)


def _summary(state: Mapping[str, Any], said: str) -> str:
    sub_question = _sub_question(state["messages"])
    notes = [note for note in read_notes(state.get("files") or {}) if note.sub_question == sub_question]
    claims = [{"source": note.source_id, "claim": quote.claim} for note in notes for quote in note.quotes]
    return json.dumps(
        {
            "sub_question": sub_question,
            "notes": [note.path for note in notes],
            "summary": claims,
            "unresolved": not claims,
            "tried": [said[:200]],
        },
        ensure_ascii=False,
    )


def _sub_question(messages: Sequence[AnyMessage]) -> str:
    return next((found for message in messages if (found := task_of(message.text)) is not None), "")
