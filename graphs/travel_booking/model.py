"""The workflow's model: it reads wishes and chooses between offers; no model calls a tool."""

from __future__ import annotations

import os
from collections.abc import Mapping

from langchain_core.language_models import BaseChatModel

from graphs.common.models import chat_model
from graphs.travel_booking.script import travel_script


def make_model(
    spec: str | None = None, *, seed: int | None = None, env: Mapping[str, str] = os.environ
) -> BaseChatModel:
    """Returns the model to run: `provider:model`, or the scripted one; see `chat_model`."""
    return chat_model(spec, script=travel_script, seed=seed, env=env)
