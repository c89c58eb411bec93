"""An answer in the form that the caller of a tool expects: a ToolMessage, a Command, or a plain value."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from agentctl.codec.messages import text_of
from agentctl.codec.values import unpack
from agentctl.errors import Refused
from agentctl.records.absent import ABSENT
from agentctl.records.rows import Stored
from agentctl.sandbox.calls import Call, as_text
from agentctl.sandbox.loadable import refused_types
from agentctl.sandbox.recordings import Given, Recorded
from agentctl.sandbox.toolnodes import returns_text

if TYPE_CHECKING:
    from langchain_core.messages import ToolMessage
    from langgraph.types import Command


@dataclass(frozen=True, slots=True)
class Substitute:
    """An answer that a fork gives.

    Attributes:
        content: Content as a ToolMessage holds it: text or content blocks.
        status: `error` for an error, else `success`.
        artifact: Artifact of the message.
        value: What code that calls the tool for its plain value gets; ABSENT gives it the content.
    """

    content: object
    status: str = "success"
    artifact: object = None
    value: object = ABSENT


@dataclass(frozen=True, slots=True)
class StepAnswer:
    """A fork's answer to what certain tasks ask of one tool, whatever the arguments.

    Attributes:
        name: Tool name.
        tasks: Ids of the tasks that ask, by themselves or in a graph that they run.
        answer: The answer.
        id: Id of the one call that is meant; None means every call of the tool.
    """

    name: str
    tasks: frozenset[str]
    answer: Substitute
    id: str | None = None

    def is_for(self, call: Call) -> bool:
        """Returns whether a call is one that is meant."""
        return call.name == self.name and self.id in (None, call.id) and not self.tasks.isdisjoint(call.tasks)


def recorded_reply(given: Given, call: Call) -> object:
    """Returns a recorded answer as the reply to `call`.

    Message ids are left out, or an answer given again would replace the message it was first given as.
    """
    entry = given.entry
    goto = extra_targets(entry, call)
    if entry.kind == "handoff":
        return _command(given, call, entry.goto, graph=_parent_graph())
    if call.by_tool_node and (entry.kind == "command" or goto):
        return _command(given, call, goto)
    message = _revived(entry)
    if call.id is None:
        return message.content
    return message.model_copy(update={"tool_call_id": call.id, "id": None})


def extra_targets(entry: Recorded, call: Call) -> tuple[str, ...]:
    """Returns the nodes that a recorded answer led to beyond the plain edges of the node that asks now.

    Where the node routes by condition its targets are worked out anew, so none of the recorded ones count.
    """
    if call.static_targets is None:
        return ()
    return tuple(node for node in entry.goto if node not in call.static_targets)


def substituted_reply(answer: Substitute, call: Call) -> object:
    """Returns a fork's answer as the reply to `call`."""
    if call.id is not None:
        return _message(call, answer.content, answer.status, answer.artifact)
    return answer.content if answer.value is ABSENT or returns_text(call.tool) else answer.value


def stub_reply(value: object, call: Call) -> object:
    """Returns a stub value as the reply to `call`: a string is content as it is, anything else compact JSON."""
    return value if call.id is None else _message(call, as_text(value), "success", None)


def reply_text(reply: object) -> str:
    """Returns what a reply says, as text."""
    from langchain_core.messages import BaseMessage, ToolMessage
    from langgraph.types import Command

    if isinstance(reply, BaseMessage):
        return text_of(reply.content)
    if isinstance(reply, Command):
        said = [message for message in _messages(reply) if isinstance(message, ToolMessage)]
        return text_of(said[-1].content) if said else as_text(reply.update)
    return as_text(reply)


def _message(call: Call, content: object, status: str, artifact: object) -> ToolMessage:
    from langchain_core.messages import ToolMessage

    fields: dict[str, Any] = {"content": content, "status": status, "artifact": artifact}
    return ToolMessage(name=call.name, tool_call_id=call.id or "", **fields)


def _revived(entry: Recorded) -> ToolMessage:
    from langchain_core.messages import ToolMessage

    if entry.message is not None:
        value = loaded(entry.message)
        if isinstance(value, ToolMessage):
            return value
    fields: dict[str, Any] = {"content": entry.content, "status": entry.status, "artifact": entry.artifact}
    return ToolMessage(name=entry.name, tool_call_id=entry.id, **fields)


def _command(given: Given, call: Call, goto: tuple[str, ...], *, graph: str | None = None) -> Command[Any]:
    from langgraph.types import Command

    update: dict[str, Any] = {}
    for channel, stored in given.entry.writes:
        value = loaded(stored)
        if isinstance(value, list) and isinstance(update.get(channel), list):
            value = update[channel] + value
        update[channel] = value
    if not given.entry.writes:
        update["messages"] = [_revived(given.entry)]
    return Command(
        update={channel: _readdressed(value, given, call) for channel, value in update.items()},
        goto=list(goto),
        graph=graph,
    )


def _parent_graph() -> str:
    from langgraph.types import Command

    return Command.PARENT


def _readdressed(value: object, given: Given, call: Call) -> object:
    """Returns a channel write whose answering message answers `call` instead of the recorded call."""
    from langchain_core.messages import BaseMessage, ToolMessage

    if isinstance(value, list):
        return [_readdressed(item, given, call) for item in value]
    if isinstance(value, ToolMessage) and value.tool_call_id == given.entry.id:
        return value.model_copy(update={"tool_call_id": call.id or given.entry.id, "id": None})
    if given.again and isinstance(value, BaseMessage):
        return value.model_copy(update={"id": None})
    return value


def loaded(stored: Stored) -> object:
    """Builds a stored value, as LangGraph does when it loads the thread for the graph that wrote it."""
    from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer

    for name, reason in refused_types(unpack(stored)).items():
        raise Refused(f"a recorded answer holds {name}, which is not loaded: {reason}")
    return JsonPlusSerializer().loads_typed((stored.type, stored.data))


def _messages(command: Command[Any]) -> Iterable[object]:
    update = command.update
    values = update.values() if isinstance(update, Mapping) else (update,)
    for value in values:
        if isinstance(value, list):
            yield from value
        else:
            yield value
