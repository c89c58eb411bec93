"""The workflow's model: a provider's where one is configured, the scripted one otherwise."""

from __future__ import annotations

import os
from collections.abc import Mapping

from langchain_core.language_models import BaseChatModel

from graphs.common.models import chat_model
from graphs.support_refunds.script import support_script


def make_model(
    spec: str | None = None, *, seed: int | None = None, env: Mapping[str, str] = os.environ
) -> BaseChatModel:
    """Returns the model to run: `provider:model`, or the scripted one; see `chat_model`."""
    return chat_model(spec, script=support_script, seed=seed, env=env)
