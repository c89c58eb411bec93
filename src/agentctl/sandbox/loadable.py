"""Which types of a stored value a run may be given: those that a serializer writes, of code that is loaded anyway.

LangGraph's serializer imports the module that a row names and calls what it finds there with what the row holds, a
function as well as a class, unless LANGGRAPH_STRICT_MSGPACK is set. A row that was forged would run a command so. What
it writes by itself are its own list of types and subclasses of some, dataclasses, enums, named tuples, pydantic models,
and what gives a `dict()` or a secret value.

Source: langgraph/checkpoint/serde/jsonplus.py (`_create_msgpack_ext_hook`, `_msgpack_default`; langgraph-checkpoint
4.3.2).
"""

from __future__ import annotations

import importlib
import sys
from collections import deque
from dataclasses import is_dataclass
from datetime import date, time, timedelta, tzinfo
from decimal import Decimal
from enum import Enum
from importlib.util import find_spec
from inspect import isclass
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network
from pathlib import Path
from typing import Final
from uuid import UUID

from agentctl.codec.tree import PYDANTIC_V2
from agentctl.codec.values import Typed, nodes_in

_MARKS: Final = ("_asdict", "model_dump", "dict", "get_secret_value")
"""What the serializer itself knows a named tuple, a model and a secret by."""

_BASES: Final = (
    Enum, UUID, Decimal, set, frozenset, deque, date, timedelta, time, tzinfo, Path,
    IPv4Address, IPv4Network, IPv6Address, IPv6Network,
)  # fmt: skip
"""Whose subclasses it writes by their own names: those of drivers and of data frames, for example."""


def refused_types(tree: object) -> dict[str, str]:
    """Returns the types in a tree that a run may not be given, each with the reason; loads none of the values.

    A module is imported only where its package is loaded already.
    """
    return {
        node.type_name: reason
        for node in nodes_in(tree)
        if isinstance(node, Typed) and (reason := _reason(node)) is not None
    }


def _reason(node: Typed) -> str | None:
    from langgraph.checkpoint.serde._msgpack import SAFE_MSGPACK_TYPES

    if not 0 <= node.code <= PYDANTIC_V2 or (node.module, node.name) in SAFE_MSGPACK_TYPES:
        return None
    package = node.module.partition(".")[0]
    if package not in sys.modules:
        if not _is_there(package):
            return None  # nothing can be loaded by that name
        return f"nothing that is loaded here uses {package}: a row does not say what is imported"
    try:
        found = getattr(importlib.import_module(node.module), node.name, None)
    except Exception:
        return None  # the serializer fails in the same way, and gives plain data
    if not callable(found) or _is_written(found):  # what cannot be called is given as plain data
        return None
    return f"{node.name} of {node.module} is nothing that a serializer stores: loading it would call it"


def _is_there(package: str) -> bool:
    try:
        return find_spec(package) is not None
    except (ValueError, ImportError):
        return False


def _is_written(found: object) -> bool:
    return isclass(found) and (
        is_dataclass(found) or issubclass(found, _BASES) or any(hasattr(found, mark) for mark in _MARKS)
    )
