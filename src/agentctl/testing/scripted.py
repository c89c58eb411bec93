"""A chat model that follows a script: offline, and a pure function of its messages."""

from __future__ import annotations

import hashlib
import json
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from langchain_core.callbacks import AsyncCallbackManagerForLLMRun, CallbackManagerForLLMRun
from langchain_core.language_models import BaseChatModel, LanguageModelInput
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.messages.ai import UsageMetadata
from langchain_core.messages.tool import ToolCall
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.runnables import Runnable
from langchain_core.tools import BaseTool
from langchain_core.utils.function_calling import convert_to_openai_tool

_CHARACTERS_PER_TOKEN = 4


@dataclass(frozen=True, slots=True)
class Turn:
    """What a script decides from.

    Attributes:
        messages: The whole prompt, system message included.
        tools: Names of the tools it may call.
        temperature: 0.0 means no sampling variance.
        draw: One uniform number in [0, 1), the turn's only source of variance.
    """

    messages: tuple[BaseMessage, ...]
    tools: tuple[str, ...] = ()
    temperature: float = 0.0
    draw: float = 0.0

    def slips(self, rate: float) -> bool:
        """Tells whether sampling makes the model slip here; `rate` is the share of slips at temperature 1."""
        return self.draw < rate * self.temperature

    def call(self, tool: str, args: dict[str, Any], position: int = 0) -> ToolCall:
        """Builds a tool call. Its id comes from the conversation's contents alone: a second run gives the same."""
        text = json.dumps([len(self.messages), str(self.messages[-1].content), tool, args, position], sort_keys=True)
        return ToolCall(name=tool, args=args, id=f"call_{_digest(text)[:12]}", type="tool_call")


Script = Callable[[Turn], AIMessage]


class ScriptedModel(BaseChatModel):
    """Runs a script in place of a provider's model.

    With a `seed` the model is a pure function of seed and messages; without one each answer draws afresh from
    `random_source`, as a provider's would, and the draw matters only at a temperature above 0.

    Attributes:
        script: From a turn to the model's message.
        seed: Fixes the draws.
        temperature: Used where the call names none.
        random_source: Returns uniform numbers in [0, 1).
        bound: Names of the bound tools.
    """

    script: Script
    seed: int | None = None
    temperature: float = 0.0
    random_source: Callable[[], float] = random.SystemRandom().random
    bound: tuple[str, ...] = ()

    @property
    def _llm_type(self) -> str:
        return "scripted"

    @property
    def _identifying_params(self) -> dict[str, Any]:
        return {"seed": self.seed, "temperature": self.temperature}

    def bind_tools(
        self, tools: Sequence[Any], *, tool_choice: str | None = None, **kwargs: Any
    ) -> Runnable[LanguageModelInput, AIMessage]:
        """Returns a copy that may call these tools and no others; further arguments, as a temperature, are kept."""
        names = tuple(map(_tool_name, tools))
        bound: ScriptedModel = self.model_copy(update={"bound": names})
        return bound.bind(**kwargs) if kwargs else bound

    def _generate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        temperature = float(kwargs.get("temperature", self.temperature))
        answer = self.script(Turn(tuple(messages), self.bound, temperature, self._draw(messages)))
        foreign = {call["name"] for call in answer.tool_calls} - set(self.bound)
        if foreign:
            raise ValueError(f"the script called tools that are not bound: {', '.join(sorted(foreign))}")
        counted = answer.model_copy(update={"usage_metadata": _usage(messages, answer)})
        return ChatResult(generations=[ChatGeneration(message=counted)])

    async def _agenerate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: AsyncCallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        return self._generate(messages, stop, None, **kwargs)

    def _draw(self, messages: Sequence[BaseMessage]) -> float:
        if self.seed is None:
            return self.random_source()
        text = json.dumps([self.seed, [str(message.content) for message in messages]])
        return int(_digest(text)[:13], 16) / 16**13


def _tool_name(tool: Any) -> str:
    """Returns a tool's name, without the schema where a tool has its name at hand: making one is slow."""
    return tool.name if isinstance(tool, BaseTool) else str(convert_to_openai_tool(tool)["function"]["name"])


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def _usage(messages: Sequence[BaseMessage], answer: AIMessage) -> UsageMetadata:
    n_input = sum(len(str(message.content)) for message in messages) // _CHARACTERS_PER_TOKEN
    n_output = (
        len(str(answer.content) + json.dumps([call["args"] for call in answer.tool_calls])) // _CHARACTERS_PER_TOKEN
    )
    return UsageMetadata(input_tokens=n_input, output_tokens=n_output, total_tokens=n_input + n_output)
