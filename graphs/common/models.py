"""Chat models: a provider's where one is configured, a workflow's scripted one otherwise."""

from __future__ import annotations

import os
from collections.abc import Mapping

from langchain_core.language_models import BaseChatModel

from agentctl.testing import Script, ScriptedModel

SCRIPTED = "scripted"


def chat_model(
    spec: str | None, *, script: Script, seed: int | None = None, env: Mapping[str, str] = os.environ
) -> BaseChatModel:
    """Returns the model to run.

    Args:
        spec: `provider:model` for `init_chat_model`, or `scripted`; by default AGENTCTL_MODEL, else `scripted`.
        script: What the scripted model follows.
        seed: Fixes the scripted model's draws; without it each answer draws afresh.
        env: Where AGENTCTL_MODEL is read.

    Raises:
        TypeError: what is named is no chat model.
    """
    chosen = spec or env.get("AGENTCTL_MODEL") or SCRIPTED
    if chosen == SCRIPTED:
        return ScriptedModel(script=script, seed=seed)
    return provided_model(chosen)


def provided_model(name: str) -> BaseChatModel:
    """Returns a provider's model.

    Args:
        name: `provider:model` for `init_chat_model`.

    Raises:
        TypeError: what is named is no chat model.
    """
    from langchain.chat_models import init_chat_model

    model = init_chat_model(name)
    if not isinstance(model, BaseChatModel):
        raise TypeError(f"{name} names no chat model")
    return model
