"""DeltaChannel values, rebuilt from a stored seed and the writes after it.

A DeltaChannel stores no value in most checkpoints; LangGraph folds the ancestors' writes through the channel's reducer
when it loads one. The reducer is code of the graph, so only those are known here whose writes tell them apart:
messages, and the virtual files of deep agents. All values are inert.

Source: DeltaChannel.replay_writes, langgraph/channels/delta.py, and _messages_delta_reducer,
langgraph/pregel/_messages.py (langgraph 1.2.24); _messages_delta_reducer, deepagents/_messages_reducer.py, and
_file_data_delta_reducer, deepagents/middleware/filesystem.py (deepagents 0.7.32).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, final

from agentctl.codec.inert import TYPE, VALUE
from agentctl.codec.messages import REMOVE_ALL, coerced_message, is_message_list, message_of

_MESSAGES: Final = "messages"
_OVERWRITE_KEY: Final = "__overwrite__"
_OVERWRITE_TYPE: Final = "langgraph.types.Overwrite"
_SNAPSHOT_TYPE: Final = "langgraph.checkpoint.serde.types._DeltaSnapshot"


@final
class _NoSeed:
    """No ancestor stores a value: the channel starts empty."""


NO_SEED: Final = _NoSeed()


@dataclass(frozen=True, slots=True)
class Rebuilt:
    """A rebuilt value.

    Attributes:
        value: The channel's value; with an unknown reducer `{"$writes": [...]}`, and `$seed` where there is one.
        known: Whether the reducer was recognised.
    """

    value: object
    known: bool


def rebuild(seed: object, writes: Sequence[object], *, channel: str = "") -> Rebuilt:
    """Folds writes into a seed, as LangGraph does when it loads the channel.

    Text and [role, text] pairs are messages too, where the channel is named `messages` or a whole message is among
    the values: a deep agent's first input is stored as it was given.

    Args:
        seed: Inert value stored at the nearest ancestor that stores one, or NO_SEED.
        writes: Inert writes after it, oldest first, those of one checkpoint ordered by task path, task id and idx.
        channel: The channel's name.
    """
    base, rest = _after_last_overwrite(snapshot_value(seed), writes)
    if not rest and not isinstance(base, _NoSeed):
        return Rebuilt(base, known=True)
    reducer = _reducer_of(base, rest, channel)
    if reducer is None:
        unknown: dict[str, object] = {"$writes": list(rest)}
        return Rebuilt(unknown if isinstance(base, _NoSeed) else {"$seed": base, **unknown}, known=False)
    return Rebuilt(reducer(base, rest), known=True)


def snapshot_value(value: object) -> object:
    """Returns the value inside a delta snapshot; any other value as it is."""
    return value[VALUE] if isinstance(value, Mapping) and value.get(TYPE) == _SNAPSHOT_TYPE else value


def overwrite_value(write: object) -> tuple[bool, object]:
    """Returns whether a write replaces the value whatever the reducer, and with what.

    Source: _get_overwrite, langgraph/channels/binop.py (langgraph 1.2.24): the class, the one-key dict, the dict that
    is left when the class was turned to JSON.
    """
    if not isinstance(write, Mapping):
        return False, None
    if write.get(TYPE) == _OVERWRITE_TYPE:
        return True, write.get("value", write.get(VALUE))
    if len(write) == 1 and _OVERWRITE_KEY in write:
        return True, write[_OVERWRITE_KEY]
    if write.get("type") == _OVERWRITE_KEY and "value" in write:
        return True, write["value"]
    return False, None


def _after_last_overwrite(seed: object, writes: Sequence[object]) -> tuple[object, Sequence[object]]:
    for position in range(len(writes) - 1, -1, -1):
        is_overwrite, value = overwrite_value(writes[position])
        if is_overwrite:
            return (NO_SEED if value is None else value), writes[position + 1 :]
    return (NO_SEED if seed is None else seed), writes


_Reducer = Callable[[object, Sequence[object]], object]


def _reducer_of(base: object, writes: Sequence[object], channel: str) -> _Reducer | None:
    seeds = () if isinstance(base, _NoSeed) or base in ([], {}) else (base,)
    if not seeds and not writes:
        return None
    if all(is_message_list(s) for s in seeds) and _are_message_writes(
        writes, certain=bool(seeds) or channel == _MESSAGES
    ):
        return _fold_messages
    if all(_is_files(value) for value in (*seeds, *writes)):
        return _fold_files
    return None


def _are_message_writes(writes: Sequence[object], *, certain: bool) -> bool:
    items = _flat(writes)
    whole = [message_of(item) is not None for item in items]
    return all(whole) or ((certain or any(whole)) and all(coerced_message(item) is not None for item in items))


def _flat(writes: Sequence[object]) -> list[object]:
    """Returns the items of all writes. Only a list holds several."""
    return [item for write in writes for item in (write if isinstance(write, list) else [write])]


def _fold_messages(base: object, writes: Sequence[object]) -> object:
    state = list(base) if isinstance(base, list) else []
    flat = [item if (message := coerced_message(item)) is None else message.raw for item in _flat(writes)]
    for position in range(len(flat) - 1, -1, -1):
        if _identity(flat[position]) == ("remove", REMOVE_ALL):
            state, flat = [], flat[position + 1 :]
            break
    return _merged_by_id(state, flat)


def _merged_by_id(state: list[object], added: list[object]) -> list[object]:
    merged: dict[int, object] = dict(enumerate(state))
    place = {mid: i for i, item in enumerate(state) if (mid := _identity(item)[1]) is not None}
    for position, item in enumerate(added, start=len(state)):
        role, mid = _identity(item)
        if mid is None:
            merged[position] = item
        elif role == "remove":
            merged.pop(place.pop(mid, -1), None)
        else:
            merged[place.setdefault(mid, position)] = item
    return list(merged.values())


def _identity(item: object) -> tuple[str, str | None]:
    message = message_of(item)
    return ("other", None) if message is None else (message.role, message.id)


def _is_files(value: object) -> bool:
    return isinstance(value, Mapping) and TYPE not in value and all(_is_file(v) for v in value.values())


def _is_file(value: object) -> bool:
    return value is None or (
        isinstance(value, Mapping) and "content" in value and not value.keys().isdisjoint({"encoding", "modified_at"})
    )


def _fold_files(base: object, writes: Sequence[object]) -> object:
    files: dict[str, object] = dict(base) if isinstance(base, Mapping) else {}
    for write in writes:
        if not isinstance(write, Mapping):
            continue
        for path, content in write.items():
            if content is None:
                files.pop(path, None)
            else:
                files[path] = content
    return files
