"""JSON text, whole and in pieces."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime

import pytest

from agentctl.codec.jsontext import dumps, pieces, timestamp

ROWS = [{"id": "a", "text": "line\u2028end"}, {"id": "\ud800", "n": [1, float("nan")]}]


@pytest.mark.parametrize("rows", [[], ROWS[:1], ROWS], ids=["none", "one", "two"])
def test_the_pieces_of_a_document_are_its_text(rows: list[dict[str, object]]) -> None:
    whole = {"schema": "agentctl.x/1", "items": rows, "n_total": len(rows), "notes": []}
    parts = list(pieces({**whole, "items": iter(rows), "notes": iter(())}))
    assert "".join(parts) == dumps(whole)
    assert json.loads("".join(parts))["n_total"] == len(rows)


def test_a_document_without_fields_is_an_object() -> None:
    assert "".join(pieces({})) == dumps({}) == "{}"


def test_fields_are_asked_for_in_their_order_and_items_one_at_a_time() -> None:
    asked: list[str] = []

    def told(name: str, n: int) -> Iterator[int]:
        for i in range(n):
            asked.append(f"{name}{i}")
            yield i

    text = pieces({"items": told("item", 3), "notes": told("note", 1)})
    while len(asked) < 2:
        next(text)
    assert asked == ["item0", "item1"]
    assert json.loads("".join(pieces({"items": told("item", 3), "notes": told("note", 1)}))) == {
        "items": [0, 1, 2],
        "notes": [0],
    }


@pytest.mark.parametrize(
    ("at", "text"),
    [
        (datetime(2026, 11, 30, 3, 12, tzinfo=UTC), "2026-11-30T03:12:00.000000Z"),
        (datetime(1582, 10, 15, 0, 0, 0, 7, tzinfo=UTC), "1582-10-15T00:00:00.000007Z"),
        (None, None),
    ],
)
def test_a_time_is_told_in_utc_with_microseconds(at: datetime | None, text: str | None) -> None:
    assert timestamp(at) == text
