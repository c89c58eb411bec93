"""The texts and numbers of a value, each with the field that it is the value of."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

from agentctl.masking.fields import Field, Fields
from agentctl.masking.trees.nodes import Blob, Extension, Items, Map, Node, Text, Whole

KEY: Final = Field(reading="identifier")
"""What a map's key is read as: an e-mail address by which something is looked up is one there too."""
KEY_OF_WORDS: Final = Field(name="key")
"""What a key is read as that is no identifier of a program: as any text."""


class Leaf(NamedTuple):
    """A node that holds data, and its field."""

    node: Text | Whole | Extension | Blob
    field: Field


def leaves(node: Node, field: Field, fields: Fields) -> Iterator[Leaf]:
    """Yields the data of a value in the order in which it is written.

    Args:
        node: The value.
        field: The field that it is the value of.
        fields: What names of fields say.
    """
    match node:
        case Text() | Whole() | Extension() | Blob():
            yield Leaf(node, field)
        case Items(items):
            for item in items:
                yield from leaves(item, field, fields)
        case Map(pairs):
            own = fields.of_object(field, [key.value for key, _ in pairs if isinstance(key, Text)])
            for key, value in pairs:
                if isinstance(key, Text):
                    if not key.value.isidentifier() or not key.value.isascii():
                        yield Leaf(key, KEY_OF_WORDS if " " in key.value else KEY)
                    yield from leaves(value, fields.inside(own, key.value), fields)
                else:
                    yield from leaves(value, own, fields)
        case _:
            return
