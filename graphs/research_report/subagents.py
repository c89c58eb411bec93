"""The subagents: `search`, with a clean context and only search, fetch and notes; `critique`, which only reads."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import httpx
from deepagents.backends import StateBackend
from deepagents.middleware.filesystem import FilesystemMiddleware, FilesystemPermission
from deepagents.middleware.subagents import SubAgent
from deepagents.middleware.summarization import SummarizationMiddleware
from langchain.agents.middleware import (
    ModelCallLimitMiddleware,
    ModelFallbackMiddleware,
    PIIMiddleware,
    ToolRetryMiddleware,
)
from langchain.agents.middleware.types import AgentMiddleware
from langchain.agents.structured_output import ToolStrategy
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AnyMessage
from langchain_core.tools import BaseTool

from graphs.common.services import ServiceUnavailable
from graphs.common.versions import policy_of
from graphs.research_report.critique import Critique
from graphs.research_report.middleware.pages import PageKeeper
from graphs.research_report.middleware.running import RoleCalls
from graphs.research_report.middleware.summing import SearchSummary
from graphs.research_report.models import Models
from graphs.research_report.notes import NOTES
from graphs.research_report.policy import Policy
from graphs.research_report.prompts import Role
from graphs.research_report.state import Settings

Stack = list[AgentMiddleware[Any, Any, Any]]
# E-mail addresses, and telephone numbers in international form.
PERSONAL = r"[\w.+-]+@[\w-]+(?:\.[\w-]+)+|\+\d{1,3}[ ()\d./-]{6,}\d"


def search_agent(
    models: Models,
    tools: Sequence[BaseTool],
    policies: Mapping[str, Policy],
    settings: Settings,
    clock: Callable[[], float],
    retry_delay_s: float,
) -> SubAgent:
    """Describes the search subagent: one for each sub-question."""
    policy = policy_of(policies, settings.policy_version)
    backend = StateBackend()
    middleware: Stack = [
        FilesystemMiddleware(
            backend=backend,
            tools=["read_file", "write_file"],
            tool_token_limit_before_evict=None,
            permissions=[_allow("write", f"{NOTES}/**"), _deny("write", "/**")],
        ),
        summarization(models.search, policy, backend),
        PIIMiddleware(
            "personal_data", detector=PERSONAL, strategy="redact", apply_to_input=False, apply_to_tool_results=True
        ),
        ModelCallLimitMiddleware(run_limit=policy.model_calls["search"]),
        PageKeeper(policy),
        ToolRetryMiddleware(
            tools=list(tools),
            max_retries=2,
            retry_on=(ServiceUnavailable, httpx.TransportError, TimeoutError),
            on_failure=lambda error: f"not available, and tried again in vain: {error}",
            initial_delay=retry_delay_s,
            jitter=False,
        ),
        SearchSummary(),
        *role_calls("search", models, policies, settings, clock),
    ]
    return SubAgent(
        name="search",
        description="Answers one sub-question from the web: writes notes files and returns a summary that names them.",
        system_prompt="",
        model=models.search,
        tools=list(tools),
        middleware=middleware,
    )


def critique_agent(
    models: Models, policies: Mapping[str, Policy], settings: Settings, clock: Callable[[], float]
) -> SubAgent:
    """Describes the critique: it reads draft and notes, and answers with issues."""
    policy = policy_of(policies, settings.policy_version)
    backend = StateBackend()
    middleware: Stack = [
        FilesystemMiddleware(
            backend=backend,
            tools=["read_file", "glob"],
            permissions=[_deny("write", "/**"), _deny("read", "/pages/**")],
        ),
        summarization(models.critique, policy, backend),
        ModelCallLimitMiddleware(run_limit=policy.model_calls["critique"]),
        *role_calls("critique", models, policies, settings, clock),
    ]
    return SubAgent(
        name="critique",
        description="Checks the draft against the notes and lists unsupported, overstated and one-sided findings.",
        system_prompt="",
        model=models.critique,
        tools=[],
        middleware=middleware,
        response_format=ToolStrategy(Critique),
    )


def role_calls(
    role: Role, models: Models, policies: Mapping[str, Policy], settings: Settings, clock: Callable[[], float]
) -> Stack:
    """Returns what every role's model calls go through: fallbacks in order, then prompt, temperature and budget."""
    fallbacks: Stack = [ModelFallbackMiddleware(*models.fallbacks)] if models.fallbacks else []
    return [RoleCalls(role, policies, settings, clock), *fallbacks]


def summarization(
    model: BaseChatModel,
    policy: Policy,
    backend: StateBackend,
    summarizer: Callable[[list[AnyMessage]], str] | None = None,
) -> AgentMiddleware[Any, Any, Any]:
    """Returns the summarization of older messages, tuned by the policy; evidence lies in files, not in messages.

    Args:
        model: Whose context it is.
        policy: When older messages are summarised, and how many are kept.
        backend: Where the full messages are written.
        summarizer: Writes the summary; by default the model.
    """
    return SummarizationMiddleware(
        model=model,
        backend=backend,
        trigger=("tokens", policy.trigger_tokens),
        keep=("messages", policy.keep_messages),
        trim_tokens_to_summarize=None,
        summarizer=summarizer,
    )


def _allow(operation: Any, path: str) -> FilesystemPermission:
    return FilesystemPermission(operations=[operation], paths=[path], mode="allow")


def _deny(operation: Any, path: str) -> FilesystemPermission:
    return FilesystemPermission(operations=[operation], paths=[path], mode="deny")
