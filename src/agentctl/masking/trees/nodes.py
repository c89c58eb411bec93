"""The nodes of a value, whatever it is written in: packed bytes, JSON text, Python objects."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, NamedTuple, final


@dataclass(slots=True)
class Text:
    """A text; `start` and `end` are where it is written, with its head or its quotes."""

    value: str
    start: int
    end: int


@dataclass(slots=True)
class Whole:
    """An integer."""

    value: int
    start: int
    end: int


@dataclass(slots=True)
class Blob:
    """Bytes."""

    n_bytes: int


@dataclass(slots=True)
class Extension:
    """A packed extension: its code and what it holds."""

    code: int
    data: bytes
    start: int
    end: int


@dataclass(slots=True)
class Items:
    """A list."""

    items: list[Node]


@dataclass(slots=True)
class Map:
    """A map: keys and values in their order, a key that stands twice twice."""

    items: list[tuple[Node, Node]]


@final
class Other:
    """What is never personal: floats, booleans, nothing."""

    __slots__ = ()


OTHER: Final = Other()

Node = Text | Whole | Blob | Extension | Items | Map | Other


class Change(NamedTuple):
    """What stands in place of a node: text for text, an integer for an integer, packed bytes for an extension."""

    node: Text | Whole | Extension
    new: str | int | bytes
