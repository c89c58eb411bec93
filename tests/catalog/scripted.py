"""A chat model that answers by a pure function of the messages, so that replays and forks stay right."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.utils.function_calling import convert_to_openai_tool

Script = Callable[[list[BaseMessage], list[str]], AIMessage]


class ScriptedModel(BaseChatModel):
    """`script` gets the messages and the names of the bound tools."""

    script: Script
    bound: tuple[str, ...] = ()

    @property
    def _llm_type(self) -> str:
        return "scripted"

    def bind_tools(self, tools: Any, *, tool_choice: Any = None, **kwargs: Any) -> Any:
        return self.model_copy(update={"bound": tuple(convert_to_openai_tool(t)["function"]["name"] for t in tools)})

    def _generate(self, messages: list[BaseMessage], stop: Any = None, run_manager: Any = None, **_: Any) -> ChatResult:
        message = self.script(list(messages), list(self.bound))
        assert {call["name"] for call in message.tool_calls} <= set(self.bound)
        return ChatResult(generations=[ChatGeneration(message=message)])
