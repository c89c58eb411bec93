"""Intake: the brief is checked, the owner set, preferences read, and the agent's first message written."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

from langchain.agents.middleware.types import AgentMiddleware
from langchain_core.messages import HumanMessage
from langgraph.runtime import Runtime

from graphs.common.owners import caller_of, check_owner
from graphs.research_report.brief import brief_text, read_brief
from graphs.research_report.middleware.calls import configurable
from graphs.research_report.preferences import read_preferences
from graphs.research_report.state import GRAPH_VERSION, ResearchState, Settings


class Intake(AgentMiddleware[ResearchState, None, Any]):
    """Runs before the lead agent does.

    Args:
        defaults: Settings that a run's configuration may override.
    """

    state_schema = ResearchState

    def __init__(self, defaults: Settings) -> None:
        super().__init__()
        self._defaults = defaults

    def before_agent(self, state: ResearchState, runtime: Runtime[None]) -> dict[str, Any] | None:
        """Writes what a thread begins with; a thread that has begun is only checked."""
        given = configurable()
        owner = check_owner(state.get("owner"), caller_of(given))
        if state.get("graph_version"):
            return None
        brief = read_brief(state)
        preferences = read_preferences(runtime.store, owner)
        runtime.stream_writer({"progress": "brief accepted"})
        return {
            "owner": owner,
            "graph_version": GRAPH_VERSION,
            "policy_version": self._defaults.over(given).policy_version,
            "preferences": preferences,
            "messages": [HumanMessage(brief_text(_for_audience(brief, preferences), preferences), id="brief")],
        }

    async def abefore_agent(self, state: ResearchState, runtime: Runtime[None]) -> dict[str, Any] | None:
        """The same, where the graph runs async; the memory store is read off the event loop."""
        return await asyncio.to_thread(self.before_agent, state, runtime)


def _for_audience(brief: Any, preferences: Mapping[str, Any]) -> Any:
    """Fills in the preferred audience where the analyst named none."""
    preferred = preferences.get("audience")
    is_named = "audience" in brief.model_fields_set
    return brief if is_named or not preferred else brief.model_copy(update={"audience": str(preferred)})
