"""Values that an Agent Server states, in the form in which LangGraph's serializer stores them.

Source: `JsonPlusSerializer` (langgraph-checkpoint 4.3.2, serde/jsonplus.py); `Interrupt`, `Send` (langgraph 1.2.24,
types.py).
"""

from __future__ import annotations

import json
from typing import Final

from agentctl.codec.revive import revived
from agentctl.codec.tree import CONSTRUCTOR_KEYWORDS, CONSTRUCTOR_POSITIONAL, Typed
from agentctl.codec.values import pack
from agentctl.records.rows import Stored, WriteRow
from agentctl.stores.reading.layout import INTERRUPT

_TYPES: Final = "langgraph.types"
_NOT_STATED: Final = {"agentctl": "the payload of this Send is not stated by the Agent Server"}


def made_write(write: WriteRow) -> WriteRow:
    """Returns a stated write with its value as it would be stored."""
    if write.value is None:
        return write
    tree = tree_of(write.value)
    if write.channel == INTERRUPT and isinstance(tree, list):
        tree = [_interrupt(question) for question in tree]
    value = pack(tree)
    return write._replace(value=value, n_bytes=len(value.data))


def _interrupt(question: object) -> object:
    if not isinstance(question, dict):
        return question
    fields = {name: question[name] for name in ("value", "id") if name in question}
    return Typed(CONSTRUCTOR_KEYWORDS, _TYPES, "Interrupt", fields)


def send(node: str) -> Typed:
    """Returns a Send to a node; its payload, which is not stated, says so."""
    return Typed(CONSTRUCTOR_POSITIONAL, _TYPES, "Send", [node, dict(_NOT_STATED)])


def packed(value: Stored) -> Stored:
    """Returns a stated value as it would be stored."""
    return pack(tree_of(value))


def tree_of(value: Stored | None) -> object:
    """Returns the tree of a stated value, messages in it as typed values."""
    return None if value is None else revived(json.loads(value.data))
