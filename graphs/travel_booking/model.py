"""The workflow's model: a provider's where one is configured, the scripted one otherwise."""

from __future__ import annotations

import os
from collections.abc import Mapping

from langchain_core.language_models import BaseChatModel

from agentctl.testing import ScriptedModel
from graphs.travel_booking.script import travel_script

SCRIPTED = "scripted"


def make_model(
    spec: str | None = None, *, seed: int | None = None, env: Mapping[str, str] = os.environ
) -> BaseChatModel:
    """Returns the model to run.

    Args:
        spec: `provider:model` for `init_chat_model`, or `scripted`; by default AGENTCTL_MODEL, else `scripted`.
        seed: Fixes the scripted model's draws; without it each answer draws afresh.
        env: Where AGENTCTL_MODEL is read.
    """
    chosen = spec or env.get("AGENTCTL_MODEL") or SCRIPTED
    if chosen == SCRIPTED:
        return ScriptedModel(script=travel_script, seed=seed)
    from langchain.chat_models import init_chat_model

    model = init_chat_model(chosen)
    if not isinstance(model, BaseChatModel):
        raise TypeError(f"{chosen} names no chat model")
    return model
