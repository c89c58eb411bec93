"""What is found in a text, and what stands around it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from typing import Final, NamedTuple

from agentctl.records.masking import MaskKind


class Hit(NamedTuple):
    """A stretch of a text that is personal; a lower `rank` wins over what it overlaps."""

    start: int
    end: int
    kind: MaskKind
    rank: int = 5


Find = Callable[[str, str], Iterator[Hit]]
"""Finds hits in a text; the second argument is the name of the field that the text is the value of."""

_BEFORE: Final = 36
"""Characters before a number in which a word says what it is."""
_AFTER: Final = 16
_LABELLED = re.compile(
    r"(?:order|invoice|ticket|tracking|ref(?:erence)?|case|booking|confirmation|transaction|shipment|awb|sku|item"
    r"|product|model|serial|batch|lot|po|rma|commande|bestellung|rechnung|pedido|ordine)s?"
    r"[ _]*(?:number|num|no|nr|id|code|#)?\.?\s*(?:is|:|=|#)?\s*$",
    re.IGNORECASE,
)


def words_before(text: str, start: int) -> str:
    """Returns what stands close before a position."""
    return text[max(0, start - _BEFORE) : start]


def words_around(text: str, start: int, end: int) -> str:
    """Returns what stands close before a stretch and right after it."""
    return f"{words_before(text, start)} {text[end : end + _AFTER]}"


def is_of_a_thing(text: str, start: int, name: str) -> bool:
    """Says whether what stands before a number, or the field's name, makes it the number of an order or the like."""
    return _LABELLED.search(words_before(text, start)) is not None or bool(name and _LABELLED.search(name))


def apart(hits: Iterable[Hit]) -> list[Hit]:
    """Returns hits that do not overlap, in the order of the text: of those that do the lower rank, then the longer."""
    taken: list[Hit] = []
    for hit in sorted(hits, key=lambda hit: (hit.rank, hit.start - hit.end, hit.start)):
        if all(hit.end <= other.start or hit.start >= other.end for other in taken):
            taken.append(hit)
    return sorted(taken)
