"""Values whose row names a class: which part of one is data, and what no part of one is.

Source: langgraph/checkpoint/serde/jsonplus.py (langgraph-checkpoint 4.3.2), extension codes 0 to 7.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from agentctl.codec.tree import (
    CONSTRUCTOR_POSITIONAL,
    CONSTRUCTOR_SINGLE_ARG,
    DELTA_SNAPSHOT,
    PYDANTIC_V2,
)
from agentctl.masking.fields import Field
from agentctl.masking.trees.nodes import Items, Node, Text

_OF_MACHINES: Final = frozenset({"uuid", "decimal", "pathlib", "pathlib._local", "zoneinfo", "re", "fractions"})
"""Modules whose values are nobody's."""
_SECRETS: Final = frozenset({"SecretStr", "SecretBytes"})
_CONTAINERS: Final = frozenset({"builtins", "collections"})
"""Modules of which a value holds others: lists of one kind or another."""
_SEND: Final = ("langgraph.types", "Send")


class Part(NamedTuple):
    """What of a typed value is to be read, and as the value of which field."""

    node: Node
    field: Field


def is_looked_into(code: int) -> bool:
    """Says whether an extension of this code holds values: not those of arrays, nor what LangGraph does not write."""
    return CONSTRUCTOR_SINGLE_ARG <= code <= PYDANTIC_V2 or code == DELTA_SNAPSHOT


def parts_of(code: int, inside: Node, field: Field) -> tuple[Part, ...]:
    """Returns what of an extension is data.

    Args:
        code: The extension's.
        inside: What it holds.
        field: The field that its value is that of.
    """
    if code == DELTA_SNAPSHOT:
        return (Part(inside, field),)
    match inside:
        case Items([Text(module), Text(name), payload, *_]):
            return tuple(_of_class(code, module, name, payload, field))
        case _:
            return (Part(inside, field),)


def _of_class(code: int, module: str, name: str, payload: Node, field: Field) -> list[Part]:
    if name in _SECRETS and module.startswith("pydantic"):
        return [Part(payload, field._replace(kind="secret", name="password"))]
    if module in _OF_MACHINES or (module == "datetime" and field.kind != "birth_date"):
        return []
    if (module, name) == _SEND and isinstance(payload, Items):
        return [Part(node, field) for node in payload.items[1:2]]
    if code in (CONSTRUCTOR_SINGLE_ARG, CONSTRUCTOR_POSITIONAL) and module not in _CONTAINERS and module != "datetime":
        return [Part(payload, field._replace(kind=None))]  # an enum's value must stay one of its class
    return [Part(payload, field)]
