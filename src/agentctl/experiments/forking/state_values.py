"""Setting state: the value a form asks for, made of the application's own objects, and the write that puts it there.

Source: langgraph 1.2.24, pregel/_loop.py (`_first`) and channels/binop.py. Writes of the NULL task are applied when a
run starts and step no routing channel on, so `next` stays what it was; an Overwrite replaces the value of a channel
whatever its reducer is.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from agentctl.errors import Refused, UsageError
from agentctl.experiments.comparing.values_diff import same
from agentctl.experiments.forking.forms import Assign
from agentctl.experiments.forking.named_calls import NamedCall
from agentctl.experiments.forking.pairing import describe
from agentctl.experiments.forking.paths import Path, path_text
from agentctl.experiments.runs.graph_parts import reduces
from agentctl.records.rows import NULL_TASK, Stored, WriteRow
from agentctl.sandbox.inert import inert

if TYPE_CHECKING:
    from agentctl.experiments.runs.graph_parts import Graph

MISSING: Any = object()


def assigned(current: Mapping[str, Any], assigns: Iterable[Assign]) -> dict[str, Any]:
    """Returns the new values of the channels that are set.

    Args:
        current: The channels' values now, the application's own objects.
        assigns: What to set, in order.

    Raises:
        UsageError: a path leads nowhere, or the value does not fit what is there.
    """
    changed: dict[str, Any] = {}
    for assign in assigns:
        old = changed.get(assign.channel, current.get(assign.channel, MISSING))
        changed[assign.channel] = _set_in(old, assign.path, 1, assign.value)
    return changed


def _set_in(old: Any, path: Path, depth: int, value: object) -> Any:
    """Returns `old` with the place at `path[depth:]` replaced; nothing of `old` itself is changed."""
    if depth == len(path):
        return like(old, value, path)
    step = path[depth]
    if isinstance(old, Mapping) and step in old:
        return {**old, step: _set_in(old[step], path, depth + 1, value)}
    if isinstance(old, list | tuple) and isinstance(step, int) and -len(old) <= step < len(old):
        items = list(old)
        items[step] = _set_in(items[step], path, depth + 1, value)
        return tuple(items) if isinstance(old, tuple) else items
    if isinstance(step, str) and step in _fields(old):
        return _with_field(old, step, _set_in(getattr(old, step), path, depth + 1, value))
    raise UsageError(f"there is no {path_text(path[: depth + 1])}", hint=_known(old, path[:depth]))


def _fields(value: Any) -> tuple[str, ...]:
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return tuple(field.name for field in dataclasses.fields(value))
    return tuple(type(value).model_fields) if hasattr(type(value), "model_fields") else ()


def _with_field(value: Any, name: str, new: Any) -> Any:
    if dataclasses.is_dataclass(value):
        return dataclasses.replace(value, **{name: new})  # type: ignore[type-var]
    return value.model_copy(update={name: new})


def like(old: Any, value: object, path: Path) -> Any:
    """Returns a JSON value as an object of the kind that stands there: messages, models, dataclasses, tuples, sets.

    Raises:
        UsageError: it cannot be made one.
    """
    from langchain_core.messages import BaseMessage, convert_to_messages

    given: Any = value
    try:
        if isinstance(old, BaseMessage):
            return convert_to_messages([given])[0]
        if isinstance(given, list) and _holds_messages(old):
            return convert_to_messages([tuple(item) if isinstance(item, list) else item for item in given])
        if hasattr(type(old), "model_validate"):
            return type(old).model_validate(given)
        if dataclasses.is_dataclass(old) and not isinstance(old, type) and isinstance(given, Mapping):
            return type(old)(**given)
        if isinstance(old, tuple | set | frozenset) and isinstance(given, list):
            return type(old)(given)
    except (TypeError, ValueError, NotImplementedError) as error:
        kind = type(old).__name__
        raise UsageError(f"{path_text(path)} holds a {kind}, and the value is none: {error}") from error
    return given


def _holds_messages(value: Any) -> bool:
    from langchain_core.messages import BaseMessage

    return isinstance(value, list) and bool(value) and all(isinstance(item, BaseMessage) for item in value)


def answered_in(messages: Sequence[Any], calls: Iterable[NamedCall]) -> list[Any]:
    """Returns a conversation with results replaced in place (message id and name kept), or put in after their call.

    Args:
        messages: The conversation, LangChain messages.
        calls: Calls whose results are in it already, or should be.
    """
    from langchain_core.messages import ToolMessage

    changed = list(messages)
    put_in: dict[int, list[ToolMessage]] = {}
    for call in sorted(calls, key=lambda call: call.pair.call.position):
        fields = {"content": call.content, "status": call.status}
        if call.pair.answers:
            place = call.pair.answers[-1]
            changed[place] = changed[place].model_copy(update=fields)
            continue
        made: dict[str, Any] = {**fields, "tool_call_id": call.id, "name": call.name}
        put_in.setdefault(call.pair.at, []).append(ToolMessage(**made))
    for at in sorted(put_in, reverse=True):
        place = at + 1
        while place < len(changed) and isinstance(changed[place], ToolMessage):
            place += 1
        changed[place:place] = put_in[at]
    return changed


def replacement(graph: Graph, channel: str, value: Any, current: Mapping[str, Any]) -> Any:
    """Returns what to write to a channel so that it holds `value` afterwards."""
    from langgraph.types import Overwrite

    return Overwrite(value) if reduces(graph, channel) and channel in current else value


def null_writes(
    graph: Graph, ns: str, id: str, values: Mapping[str, Any], current: Mapping[str, Any], stored: Iterable[WriteRow]
) -> tuple[dict[tuple[str, str, str, int], Stored], tuple[WriteRow, ...]]:
    """Returns the writes of no task that put values into channels: edits of such writes that are there, and new ones.

    Args:
        graph: The graph of the namespace.
        ns: Namespace of the checkpoint.
        id: The checkpoint.
        values: New values by channel.
        current: The values now.
        stored: Writes that the checkpoint has.
    """
    from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer

    there = [write for write in stored if write.task_id == NULL_TASK]
    edits: dict[tuple[str, str, str, int], Stored] = {}
    made: list[WriteRow] = []
    idx = max((write.idx for write in there), default=-1) + 1
    for channel, value in values.items():
        kind, data = JsonPlusSerializer().dumps_typed(replacement(graph, channel, value, current))
        last = next((write for write in reversed(there) if write.channel == channel), None)
        if last is not None:
            edits[ns, id, NULL_TASK, last.idx] = Stored(kind, data)
            continue
        made.append(WriteRow(ns, id, NULL_TASK, "", idx + len(made), channel, Stored(kind, data), len(data)))
    return edits, tuple(made)


def verify_set(wanted: Mapping[str, Any], found: Mapping[str, Any]) -> None:
    """Checks that channels hold what was set.

    Raises:
        Refused: one does not.
    """
    for channel, value in wanted.items():
        if not same(inert(value), inert(found.get(channel))):
            raise Refused(
                f"{channel} would not hold the value that was set: its channel changes what is written to it",
                hint="set what the channel makes its value from, with --update FILE --as-node NODE",
            )


def _known(old: Any, above: Path) -> str:
    where = path_text(above)
    if isinstance(old, Mapping):
        return f"{where} has: {', '.join(map(str, old)) or 'nothing'}"
    if isinstance(old, list | tuple):
        return f"{where} has {len(old)} items"
    if fields := _fields(old):
        return f"{where} has: {', '.join(fields)}"
    return f"{where} has no value yet: set all of it" if old is MISSING else f"{where} is a single value"


def refuse_without_conversation(calls: Iterable[NamedCall]) -> None:
    """Refuses results that should be put into a state that cannot be read.

    Raises:
        Refused: there are any.
    """
    for call in calls:
        raise Refused(
            f"the result of {describe(call.pair.call)} is in the state already, and the graph of that namespace is not "
            "known, so it cannot be replaced there",
            hint="fork the checkpoint before its tool ran, where the result is a stored write",
        )
