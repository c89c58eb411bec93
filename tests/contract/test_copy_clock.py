"""The private name behind which LangGraph keeps the time of its last checkpoint id."""

from __future__ import annotations

import pytest
from langgraph.checkpoint.base import id as ids

from agentctl.stores.copying.clock import ids_after, newest_id


@pytest.fixture(autouse=True)
def no_ids_yet(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ids, "_last_v6_timestamp", None)


def ahead(seconds: int, monkeypatch: pytest.MonkeyPatch) -> str:
    """Returns an id made by a clock that runs ahead."""
    now = ids.uuid6().time
    with monkeypatch.context() as clock:
        clock.setattr(ids, "_last_v6_timestamp", now + seconds * 10_000_000)
        return str(ids.uuid6())


def test_ids_sort_after_the_newest_copied_one(monkeypatch: pytest.MonkeyPatch) -> None:
    copied = ahead(3600, monkeypatch)
    assert str(ids.uuid6()) < copied
    ids_after(copied)
    made = [str(ids.uuid6()) for _ in range(50)]
    assert made == sorted(made)
    assert made[0] > copied


def test_an_older_id_does_not_turn_the_clock_back(monkeypatch: pytest.MonkeyPatch) -> None:
    older = str(ids.uuid6())
    newer = ahead(3600, monkeypatch)
    ids_after(newer)
    ids_after(older)
    assert str(ids.uuid6()) > newer


@pytest.mark.parametrize("text", ["", "not an id", "12345678-1234-5678-1234-567812345678"])
def test_an_id_without_a_time_changes_nothing(text: str) -> None:
    ids_after(text)
    assert ids._last_v6_timestamp is None


def test_the_newest_id_is_the_one_that_sorts_last() -> None:
    assert newest_id(["1f1", "1f3", "1f2"]) == "1f3"
    assert newest_id([]) is None
