"""How a value that was loaded differs from what was stored: fields that are gone, and fields of another type.

A model takes what it does not know and says nothing (`extra="ignore"`), and makes numbers of text. What it was given is
then not what a node sees, and the next checkpoint stores the rest. So the loaded value is stored again, and compared.
"""

from __future__ import annotations

from collections import Counter
from typing import Final

from agentctl.codec.values import Typed, pack

_UNORDERED: Final = frozenset({"builtins.set", "builtins.frozenset"})


def change_of(stored: object, again: object, path: str = "") -> str | None:
    """Returns the first thing that is not as it was, as a clause; None where all of it is.

    Fields that are new are no change: the class fills them. An equal float for an integer is none either.

    Args:
        stored: What a class is given, as a tree (`codec.tree`).
        again: What an object of it is stored as.
        path: Where both are in the value, such as `lines[2].price`.
    """
    place = path or "its value"
    if isinstance(stored, Typed):
        return _change_of_typed(stored, again, path)
    if isinstance(stored, dict) and isinstance(again, dict):
        for key, value in stored.items():
            inner = f"{path}.{key}" if path else str(key)
            change = change_of(value, again[key], inner) if key in again else f"{inner} is dropped"
            if change is not None:
                return change
        return None
    if isinstance(stored, list | tuple) and isinstance(again, list | tuple):
        if len(stored) != len(again):
            return f"{place} has {len(again)} items, not {len(stored)}"
        changes = (
            change_of(one, other, f"{path}[{n}]") for n, (one, other) in enumerate(zip(stored, again, strict=True))
        )
        return next((change for change in changes if change is not None), None)
    return _change_of_atom(stored, again, place)


def _change_of_typed(stored: Typed, again: object, path: str) -> str | None:
    place = path or "its value"
    if not isinstance(again, Typed) or again.type_name != stored.type_name:
        return f"{place} is {_kind(again)}, not {_kind(stored)}"
    if stored.type_name in _UNORDERED:
        return None if _items(stored) == _items(again) else f"{place} has other items"
    return change_of(stored.payload, again.payload, path)


def _change_of_atom(stored: object, again: object, place: str) -> str | None:
    if isinstance(stored, int | float) and isinstance(again, int | float):
        is_same = isinstance(stored, bool) is isinstance(again, bool) and (stored == again or stored != stored)
    else:
        is_same = type(stored) is type(again) and stored == again
    if is_same:
        return None
    kind, was = _kind(again), _kind(stored)
    return f"{place} is another {kind}" if kind == was else f"{place} is {kind}, not {was}"


def _items(values: Typed) -> Counter[bytes]:
    items = values.payload if isinstance(values.payload, list) else [values.payload]
    return Counter(pack(item, type="msgpack").data for item in items)


def _kind(tree: object) -> str:
    """Names the type of a value and nothing of what it is: that may be personal."""
    if isinstance(tree, Typed):
        return tree.type_name
    return "None" if tree is None else type(tree).__name__
