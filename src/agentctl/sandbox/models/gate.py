"""The gate on every chat model: in a run that recorded answers are for, they answer, and no model does.

It sits below `invoke`, `ainvoke`, `batch` and the rest, where a model would look into its cache and then call its
provider, so that callbacks, bound tools and parsers work as ever and no cache is read or filled. What is left beside
that (a provider's own methods called directly, completion models, streamed events) is stopped. It is put in once a
process and does nothing where no run has recorded answers.

Source: BaseChatModel, langchain_core/language_models/chat_models.py; BaseLLM, langchain_core/language_models/llms.py
(langchain-core 1.8.3). `tests/contract/test_model_gate_contract.py` fails when a version changes what is relied on.
"""

from __future__ import annotations

import functools
import inspect
import threading
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from agentctl.sandbox import gate
from agentctl.sandbox.answers import Desk
from agentctl.sandbox.models.asking import asking
from agentctl.sandbox.models.desk import no_answer
from agentctl.sandbox.replies import loaded

if TYPE_CHECKING:
    from langchain_core.messages import AIMessage, BaseMessage
    from langchain_core.outputs import ChatResult

_MARK: Final = "__agentctl_model_gate__"
_OWN: Final = (
    "_generate",
    "_agenerate",
    "_stream",
    "_astream",
    "_stream_chat_model_events",
    "_astream_chat_model_events",
)
"""Methods in which a chat model calls its provider."""

_lock: Final = threading.Lock()


def install() -> None:
    """Puts the gate in, and into model classes that came since. Cheap to call again."""
    from langchain_core.language_models import BaseChatModel, BaseLLM

    with _lock:
        _replace(BaseChatModel, "_generate_with_cache", _answering)
        _replace(BaseChatModel, "_agenerate_with_cache", _answering_async)
        _replace(BaseChatModel, "stream", _streaming)
        _replace(BaseChatModel, "astream", _streaming_async)
        for name in ("_iter_v2_events", "_aiter_v2_events"):
            _replace(BaseChatModel, name, _stopped("streams its answer as events, which are not recorded"))
        for name in ("generate", "agenerate", "stream", "astream"):
            _replace(BaseLLM, name, _stopped("is no chat model: answers of completion models are not recorded"))
        past = _stopped("is called past its public methods, where no recorded answer is found")
        for model_class in _subclasses(BaseChatModel):
            for name in _OWN:
                _replace(model_class, name, past)


def _subclasses(base: type[Any]) -> Iterator[type[Any]]:
    for found in base.__subclasses__():
        yield found
        yield from _subclasses(found)


def _replace(kind: type[Any], name: str, around: Callable[[Callable[..., Any]], Callable[..., Any]]) -> None:
    original = vars(kind).get(name)
    if not inspect.isfunction(original) or hasattr(original, _MARK):
        return
    replaced = around(original)
    setattr(replaced, _MARK, True)
    setattr(kind, name, replaced)


def _answering_desk() -> Desk | None:
    """Returns the desk of this code's run where recorded answers are for it.

    Raises:
        ModelBlocked: runs with recorded answers go on, and it cannot be told whether the call is of one of them.
    """
    desk = gate.current_desk()
    if desk is not None:
        return desk if desk.models is not None else None
    lost = [other for other in gate.desks_in_use() if other.models is not None]
    if not lost:
        return None
    reason = no_answer("it is made where its run cannot be told, in a thread or pool that nothing was carried into")
    for other in lost:
        other.refuse_model(reason)
    raise reason


def _given(desk: Desk, messages: Sequence[BaseMessage], options: Mapping[str, object]) -> ChatResult:
    from langchain_core.messages import message_chunk_to_message
    from langchain_core.outputs import ChatGeneration, ChatResult

    answer = desk.model_answer(asking(), messages, options)
    message: Any = loaded(answer.message)
    return ChatResult(generations=[ChatGeneration(message=message_chunk_to_message(message))])


def _answering(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def answering(self: Any, messages: list[BaseMessage], *args: Any, **kwargs: Any) -> Any:
        desk = _answering_desk()
        if desk is None:
            return original(self, messages, *args, **kwargs)
        return _given(desk, messages, kwargs)

    return answering


def _answering_async(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    async def answering(self: Any, messages: list[BaseMessage], *args: Any, **kwargs: Any) -> Any:
        desk = _answering_desk()
        if desk is None:
            return await original(self, messages, *args, **kwargs)
        return _given(desk, messages, kwargs)

    return answering


def _streaming(original: Callable[..., Iterator[Any]]) -> Callable[..., Iterator[Any]]:
    @functools.wraps(original)
    def streaming(self: Any, *args: Any, **kwargs: Any) -> Iterator[Any]:
        if _answering_desk() is None:
            yield from original(self, *args, **kwargs)
        else:
            yield _as_chunk(self.invoke(*args, **kwargs))

    return streaming


def _streaming_async(original: Callable[..., AsyncIterator[Any]]) -> Callable[..., AsyncIterator[Any]]:
    @functools.wraps(original)
    async def streaming(self: Any, *args: Any, **kwargs: Any) -> AsyncIterator[Any]:
        if _answering_desk() is None:
            async for chunk in original(self, *args, **kwargs):
                yield chunk
        else:
            yield _as_chunk(await self.ainvoke(*args, **kwargs))

    return streaming


def _as_chunk(message: AIMessage) -> Any:
    """Returns a whole message as the only chunk of a stream."""
    from langchain_core.messages import AIMessageChunk

    return AIMessageChunk(**message.model_dump(exclude={"type"}), chunk_position="last")


def _stopped(why: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Returns what stops a method where recorded answers are for the run."""

    def around(original: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(original)
        def method(self: Any, *args: Any, **kwargs: Any) -> Any:
            if (desk := _answering_desk()) is not None:
                raise desk.refuse_model(no_answer(f"{type(self).__name__} {why}"))
            return original(self, *args, **kwargs)

        return method

    return around
