"""Threads whose models really answered once, and runs of them in which no model may."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from typing import Any

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult

from agentctl.experiments.prepare import seen_tip
from agentctl.records.runs import ForkReport, ReplayReport, RunReport
from agentctl.sandbox.models.recorder import record_models
from agentctl.sandbox.models.recording import ModelRecording
from agentctl.stores.open import open_reader
from tests.support.forking import Source, target_at

ASKED: list[list[BaseMessage]] = []
"""What every model was really asked."""

_MAY_RUN: list[bool] = [False]


class Asked(BaseChatModel):
    """A model that follows a script while a thread is made, and that raises whenever it is asked afterwards.

    As a provider's model it counts tokens, and is given its tools among its options.
    """

    script: Callable[[list[BaseMessage], dict[str, Any]], AIMessage]

    @property
    def _llm_type(self) -> str:
        return "asked"

    def bind_tools(self, tools: Sequence[Any], **kwargs: Any) -> Any:
        return self.bind(tools=[{"name": getattr(each, "name", str(each))} for each in tools], **kwargs)

    def _generate(
        self, messages: list[BaseMessage], stop: Any = None, run_manager: Any = None, **kw: Any
    ) -> ChatResult:
        return ChatResult(generations=[ChatGeneration(message=self._said(messages, kw))])

    def _said(self, messages: list[BaseMessage], options: dict[str, Any]) -> AIMessage:
        ASKED.append(messages)
        if not _MAY_RUN[-1]:
            raise RuntimeError("a model was asked")
        answer = self.script(messages, options)
        counted = {"input_tokens": len(messages), "output_tokens": 3, "total_tokens": len(messages) + 3}
        return answer.model_copy(update={"usage_metadata": counted, "response_metadata": {"model_name": "asked-1"}})


class Streamed(Asked):
    """The same, in chunks of a word each."""

    def _stream(
        self, messages: list[BaseMessage], stop: Any = None, run_manager: Any = None, **kw: Any
    ) -> Iterator[Any]:
        for word in self._said(messages, kw).text.split(" "):
            yield ChatGenerationChunk(message=AIMessageChunk(f"{word} "))


@contextmanager
def models_run() -> Iterator[None]:
    """Lets models answer for the time of the block."""
    _MAY_RUN.append(True)
    try:
        yield
    finally:
        _MAY_RUN.pop()


def recording_at(store: str, at: str) -> ModelRecording:
    """The recorded answers for runs from `THREAD@REV`."""
    with closing(open_reader(store)) as reader:
        target = target_at(reader, at)
        return record_models(reader, target.thread, tip=seen_tip(reader, target), at=(target.ns, target.id))


def replayed(source: Source, graph: Any, at: str, **settings: Any) -> tuple[RunReport, ReplayReport]:
    """One replay of `THREAD@REV` with recorded answers, in which no model ran."""
    report = source.replay(graph, at, models=recording_at(source.prod, at), **settings)
    return report.group.runs[0], report


def forked(source: Source, graph: Any, at: str, **given: Any) -> tuple[RunReport, ForkReport]:
    """One fork of `THREAD@REV` with recorded answers, in which no model ran."""
    report = source.fork(graph, at, models=recording_at(source.prod, at), **given)
    return report.group.runs[0], report
