"""The research policy: how much may be spent, what counts as old, who reviews; versioned files, and what reads them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from graphs.common.versions import read_policies

CURRENT_POLICY = "2026-11"
_FOLDER = Path(__file__).parent


@dataclass(frozen=True, slots=True)
class Policy:
    """One version of the policy.

    Attributes:
        version: Its name, `YYYY-MM`.
        max_sub_questions: Sub-questions of one plan.
        max_parallel: Search subagents side by side.
        max_searches: Searches of one subagent.
        max_pages: Pages that one subagent reads.
        max_quotes_per_page: Quotes of one note.
        n_results: Results that a search asks for.
        old_after_days: Age, on the day of reading, from which a source is old.
        model_calls: Limit per run of each role.
        deadline_s: Wall-clock budget of a run where the analyst gives none.
        publish_attempts: How often a report may be offered for publication.
        trigger_tokens: Length of the conversation from which older messages are summarised.
        keep_messages: Messages that a summary leaves as they are.
        calls_per_minute: Of each tool, per tenant.
        max_wait_s: How long a call waits for its turn before it fails.
        cache_s: How long a tenant's searches and pages are kept.
        review_roles: Who may approve a report.
    """

    version: str
    max_sub_questions: int
    max_parallel: int
    max_searches: int
    max_pages: int
    max_quotes_per_page: int
    n_results: int
    old_after_days: int
    model_calls: Mapping[str, int]
    deadline_s: float
    publish_attempts: int
    trigger_tokens: int
    keep_messages: int
    calls_per_minute: Mapping[str, int]
    max_wait_s: float
    cache_s: float
    review_roles: frozenset[str]


def load_policies(folder: Path = _FOLDER) -> dict[str, Policy]:
    """Reads every version of the policy, by version."""
    return read_policies(folder, _policy)


def _policy(document: Mapping[str, Any]) -> Policy:
    plan, search, limits = document["plan"], document["search"], document["limits"]
    return Policy(
        version=document["version"],
        max_sub_questions=plan["max_sub_questions"],
        max_parallel=plan["max_parallel"],
        max_searches=search["max_searches"],
        max_pages=search["max_pages"],
        max_quotes_per_page=search["max_quotes_per_page"],
        n_results=search["results"],
        old_after_days=document["evidence"]["old_after_days"],
        model_calls=limits["model_calls"],
        deadline_s=float(limits["deadline_s"]),
        publish_attempts=limits["publish_attempts"],
        trigger_tokens=document["summarization"]["trigger_tokens"],
        keep_messages=document["summarization"]["keep_messages"],
        calls_per_minute=document["traffic"]["calls_per_minute"],
        max_wait_s=float(document["traffic"]["max_wait_s"]),
        cache_s=float(document["traffic"]["cache_s"]),
        review_roles=frozenset(document["review"]["roles"]),
    )
