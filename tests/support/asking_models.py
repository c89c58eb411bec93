"""The shop's agent on a model of a provider; building it asks another host as well."""

from __future__ import annotations

import os
from typing import Any

import httpx
from langchain.agents import create_agent
from langchain.chat_models import init_chat_model

from agentctl.sandbox.registry import ToolRegistry


def build_graph(tools: ToolRegistry, *, model: Any = None, memory: Any = None) -> Any:
    """Builds the agent; what the variable `ANOTHER` names is asked once."""
    try:
        httpx.get(os.environ["ANOTHER"], timeout=5).raise_for_status()
    except httpx.HTTPError as error:
        print(f"another: {type(error).__name__}")
    return create_agent(init_chat_model(model), tools=tools.only(*tools.names))
