"""The models, one for each role: a provider's where one is configured, the scripted ones otherwise."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass

from langchain_core.language_models import BaseChatModel

from graphs.common.models import chat_model, provided_model
from graphs.research_report.scripts.critique import critique_script
from graphs.research_report.scripts.lead import lead_script
from graphs.research_report.scripts.search import search_script


@dataclass(frozen=True, slots=True)
class Models:
    """A model for each role, and those that are tried in order where one fails.

    Attributes:
        lead: Plans, drafts and decides: needs the strongest model.
        search: Searches and notes, many small steps: a faster one will do.
        critique: Judges whether quotes support claims: quality matters.
        fallbacks: Tried in order where a role's model fails.
    """

    lead: BaseChatModel
    search: BaseChatModel
    critique: BaseChatModel
    fallbacks: tuple[BaseChatModel, ...] = ()


def make_models(
    model: BaseChatModel | str | None = None, *, seed: int | None = None, env: Mapping[str, str] = os.environ
) -> Models:
    """Returns the models to run.

    Args:
        model: One chat model for every role, or `provider:model`, or `scripted`; by default RESEARCH_LEAD_MODEL,
            RESEARCH_SEARCH_MODEL and RESEARCH_CRITIQUE_MODEL, each else AGENTCTL_MODEL, else `scripted`.
        seed: Fixes the scripted models' draws; without it each answer draws afresh.
        env: Where the variables are read. RESEARCH_FALLBACK_MODELS names the fallbacks, separated by commas.
    """
    if isinstance(model, BaseChatModel):
        return Models(model, model, model)
    scripts = {"LEAD": lead_script, "SEARCH": search_script, "CRITIQUE": critique_script}
    lead, search, critique = (
        chat_model(model or env.get(f"RESEARCH_{role}_MODEL"), script=script, seed=seed, env=env)
        for role, script in scripts.items()
    )
    named = [name.strip() for name in env.get("RESEARCH_FALLBACK_MODELS", "").split(",") if name.strip()]
    return Models(lead, search, critique, tuple(provided_model(name) for name in named))
