"""The nodes of an unpacked value: plain Python, and one frozen node where a row names a type.

A tree holds None, bool, int, float, str, bytes, list, dict and the nodes below. Nothing that a row names is imported
or built; a `Typed` node only remembers the name, so a tree packs back to the bytes it came from.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, final

CONSTRUCTOR_SINGLE_ARG: Final = 0
CONSTRUCTOR_POSITIONAL: Final = 1
CONSTRUCTOR_KEYWORDS: Final = 2
METHOD_SINGLE_ARG: Final = 3
PYDANTIC_V1: Final = 4
PYDANTIC_V2: Final = 5
NUMPY_ARRAY: Final = 6
DELTA_SNAPSHOT: Final = 7
DELTA_SNAPSHOT_TYPE: Final = ("langgraph.checkpoint.serde.types", "_DeltaSnapshot")
NUMPY_ARRAY_TYPE: Final = ("numpy", "ndarray")
JSON_CONSTRUCTOR: Final = -1
"""Code of a `{"lc": ..., "type": "constructor"}` object in a `json` row; those below are such objects too."""
JSON_UNDEFINED: Final = -2
"""JavaScript's `undefined`, `{"lc": 2, "type": "undefined"}`."""
JSON_SNAPSHOT: Final = -3
"""A DeltaChannel's snapshot as LangGraph.js writes it, `{"lc": 2, "type": "delta_snapshot", "value": ...}`.

Source: langgraphjs, libs/checkpoint/src/serde/jsonplus.ts (`_default`).
"""


@dataclass(frozen=True, slots=True)
class Typed:
    """A value whose row names a class.

    Source: langgraph/checkpoint/serde/jsonplus.py (langgraph-checkpoint 4.3.2), extension codes 0 to 7.

    Attributes:
        code: How the value is stored: one of the constants above.
        module: Module the row names, '' where the form has none.
        name: Class or function the row names.
        payload: Constructor argument, arguments or fields; with a JSON code the whole object as stored.
        rest: What the stored tuple holds after the payload (the method's name).
    """

    code: int
    module: str
    name: str
    payload: object
    rest: tuple[object, ...] = ()

    @property
    def type_name(self) -> str:
        """The full name, as shown in `$type`."""
        return f"{self.module}.{self.name}" if self.module else self.name


@dataclass(frozen=True, slots=True)
class Opaque:
    """A msgpack extension of a kind that LangGraph does not write; kept byte for byte."""

    code: int
    data: bytes


@final
class Empty:
    """The value of an `empty` blob row: the channel has a version and no value."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "EMPTY"


EMPTY: Final = Empty()
