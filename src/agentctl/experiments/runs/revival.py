"""What stored values become when a run loads them: the typed ones that would be something else are found.

LangGraph's serializer does not fail on a type. Where the module or the class is gone, the class refuses what is stored,
or strict mode does not allow it, the graph is given the bare payload, and the next checkpoint stores that. What is read
here is imported and built, as the run that follows would do; commands that only look never come here.

Source: langgraph/checkpoint/serde/jsonplus.py (`_create_msgpack_ext_hook`, `_reviver`), event_hooks.py
(langgraph-checkpoint 4.3.2); `Pregel._resolve_checkpointer`, langgraph/pregel/main.py (langgraph 1.2.24).
"""

from __future__ import annotations

import importlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from inspect import isclass
from typing import TYPE_CHECKING, Any, Final

from agentctl.codec.encryption import decrypted
from agentctl.codec.tree import (
    DELTA_SNAPSHOT,
    JSON_CONSTRUCTOR,
    JSON_SNAPSHOT,
    JSON_UNDEFINED,
    NUMPY_ARRAY,
    PYDANTIC_V1,
    PYDANTIC_V2,
)
from agentctl.codec.values import Opaque, Typed, nodes_in, pack, unpack
from agentctl.errors import DecodeError
from agentctl.experiments.runs.drift import change_of
from agentctl.records.rows import Stored
from agentctl.sandbox.loadable import refused_types

if TYPE_CHECKING:
    from langgraph.checkpoint.serde.base import SerializerProtocol
    from langgraph.pregel import Pregel

    Graph = Pregel[Any, Any, Any, Any]

_SAID: Final = 120
"""How much of an exception's text is told, in characters."""

_JSON: Final = (JSON_CONSTRUCTOR, JSON_UNDEFINED, JSON_SNAPSHOT)


@dataclass(frozen=True, slots=True)
class Loss:
    """A stored value that a run would be given as something else.

    Attributes:
        type_name: The type that the row names, or the kind of the value.
        reason: Why, as a sentence about it.
    """

    type_name: str
    reason: str


def serializer_of(graph: Graph, serde: SerializerProtocol | None) -> SerializerProtocol:
    """Returns the serializer that a graph's runs load with: in strict mode it allows the types of the graph's state.

    Args:
        graph: The graph that the values are for.
        serde: The serializer of the saver; None for a stock saver's own.
    """
    from langgraph.checkpoint.memory import InMemorySaver

    from agentctl.sandbox.graph_copies import copied

    saver = copied(graph, checkpointer=InMemorySaver(serde=serde))._resolve_checkpointer({})
    assert saver is not None
    return saver.serde


@dataclass(slots=True)
class Revival:
    """Loads typed values one by one.

    Attributes:
        serde: The serializer of the run.
    """

    serde: SerializerProtocol
    _safe: dict[str, Loss | None] = field(default_factory=dict)

    def losses(self, stored: Stored) -> Iterator[Loss]:
        """Yields what a stored value holds that a run would not be given as it was, each type once."""
        try:
            plain = decrypted(stored)
            tree = unpack(plain)
        except DecodeError as error:
            yield Loss(f"value of type {stored.type}", error.message)
            return
        if refused := refused_types(tree):  # before any is loaded: an outer value loads those in it
            yield from (Loss(name, reason) for name, reason in refused.items())
            return
        told: set[str] = set()
        for node in nodes_in(tree):
            loss = self._loss(node)
            if loss is not None and loss.type_name not in told:
                told.add(loss.type_name)
                yield loss

    def _loss(self, node: Typed | Opaque) -> Loss | None:
        if isinstance(node, Opaque):
            return Loss(f"msgpack extension {node.code}", "it is loaded as None: LangGraph does not know it")
        if not _is_safe(node):
            return _loaded(self.serde, node)
        if node.type_name not in self._safe:
            self._safe[node.type_name] = _loaded(self.serde, node)
        return self._safe[node.type_name]


def _is_safe(node: Typed) -> bool:
    """Says whether a type is one that takes whatever it wrote: LangGraph's own list, with messages and dates."""
    from langgraph.checkpoint.serde._msgpack import SAFE_MSGPACK_TYPES

    return (node.module, node.name) in SAFE_MSGPACK_TYPES or node.code in (NUMPY_ARRAY, DELTA_SNAPSHOT)


def _loaded(serde: SerializerProtocol, node: Typed) -> Loss | None:
    if node.code == DELTA_SNAPSHOT:
        return None
    if node.code == NUMPY_ARRAY:
        array = serde.loads_typed(pack(node, type="msgpack"))
        return Loss(node.type_name, "it is loaded as None: numpy is not installed here") if array is None else None
    reason = _json_reason(serde, node) if node.code in _JSON else _msgpack_reason(serde, node)
    return None if reason is None else Loss(node.type_name, reason)


def _json_reason(serde: SerializerProtocol, node: Typed) -> str | None:
    try:
        value = serde.loads_typed(pack(node, type="json"))
    except Exception as error:
        return f"loading it raises {_said(error)}"
    if value is None or isinstance(value, dict):
        return "it is loaded as plain data: LangGraph builds no such object from JSON"
    return None


def _msgpack_reason(serde: SerializerProtocol, node: Typed) -> str | None:
    from langgraph.checkpoint.serde.event_hooks import register_serde_event_listener

    told: list[tuple[str, str]] = []
    stop = register_serde_event_listener(lambda event: told.append((event["kind"], event["name"])))
    try:
        value = serde.loads_typed(pack(node, type="msgpack"))
    finally:
        stop()
    if ("msgpack_method_blocked", node.name) in told:
        return f"it is loaded as plain data: LangGraph calls no method of {node.name}"
    if ("msgpack_blocked", node.name) in told:
        return "it is loaded as plain data: LANGGRAPH_STRICT_MSGPACK is set and the graph's state does not name it"
    try:
        found = getattr(importlib.import_module(node.module), node.name)
    except ModuleNotFoundError as error:
        return f"it is loaded as plain data: there is no module {error.name or node.module} here"
    except AttributeError:
        return f"it is loaded as plain data: module {node.module} has no {node.name} at its top"
    except Exception as error:
        return f"it is loaded as plain data: importing {node.module} raises {_said(error)}"
    if not isclass(found):
        given = serde.loads_typed(pack(node.payload, type="msgpack"))
        is_left = type(value) is type(given) and value == given
        return f"it is loaded as plain data: {node.name} of {node.module} is no class" if is_left else None
    if not isinstance(value, found):
        return f"it is loaded as plain data: {_refusal(serde, found, node) or f'{node.name} gives another type'}"
    unvalidated = _unvalidated(serde, found, node) if node.code in (PYDANTIC_V1, PYDANTIC_V2) else None
    return unvalidated or _changed(serde, value, node)


def _changed(serde: SerializerProtocol, value: object, node: Typed) -> str | None:
    """Returns what a class made of the fields that it was given, where it is something else.

    A set has the order of the process that stored it, and takes any items; what these are, each tells of itself.
    """
    if type(value) in (set, frozenset):
        return None
    try:
        given, again = (
            unpack(Stored(*serde.dumps_typed(one)))
            for one in (serde.loads_typed(pack(node.payload, type="msgpack")), value)
        )
    except Exception as error:
        return f"it cannot be stored again: {_said(error)}"
    change = change_of(given, again.payload) if isinstance(again, Typed) else None
    return None if change is None else f"it is loaded changed: {change}"


def _unvalidated(serde: SerializerProtocol, model: type, node: Typed) -> str | None:
    """Returns why a model's fields are refused: LangGraph then makes an object of them that was never checked.

    A model whose fields have aliases refuses its own dump, and the unchecked object is what it was.
    """
    refusal = _refusal(serde, model, node)
    if refusal is None or not isinstance(node.payload, Mapping):
        return refusal
    fields: Mapping[str, Any] = getattr(model, "model_fields", None) or getattr(model, "__fields__", {})
    aliased = any(getattr(field, "alias", None) not in (None, name) for name, field in fields.items())
    if aliased and not fields.keys() - node.payload.keys():
        return None
    return f"it is loaded unchecked: {refusal}"


def _refusal(serde: SerializerProtocol, cls: type, node: Typed) -> str | None:
    """Returns what a class raises when it is given what is stored, None where it takes it."""
    given: Any = serde.loads_typed(pack(node.payload, type="msgpack"))
    try:
        if isinstance(given, Mapping) and node.code >= 2:
            cls(**given)
        elif isinstance(given, list) and node.code == 1:
            cls(*given)
        else:
            cls(given)
    except Exception as error:
        return f"{node.name} refuses what is stored: {_said(error)}"
    return None


def _said(error: Exception) -> str:
    """Returns an exception in one line; of a validation error the fields with what is wrong."""
    errors = getattr(error, "errors", None)
    if callable(errors):
        try:
            return "; ".join(f"{'.'.join(map(str, one['loc'])) or 'it'}: {one['msg']}" for one in errors())
        except Exception:
            return type(error).__name__
    text = f"{type(error).__name__}: {error}".splitlines()[0]
    return text if len(text) <= _SAID else f"{text[:_SAID]}..."
