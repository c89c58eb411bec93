"""The catalog itself: its threads come out the same each time."""

from __future__ import annotations

from typing import Any

import pytest
from langgraph.checkpoint.memory import InMemorySaver

from tests.catalog import CATALOG, ThreadCase, config_of, run_case


def shape(case: ThreadCase) -> list[tuple[Any, ...]]:
    graph = run_case(case, InMemorySaver())
    return [
        (
            snapshot.metadata.get("step"),
            snapshot.metadata.get("source"),
            sorted(snapshot.next),
            [(task.name, task.result is not None, str(task.error), len(task.interrupts)) for task in snapshot.tasks],
        )
        for snapshot in graph.get_state_history(config_of(case.thread))
    ]


@pytest.mark.parametrize("name", [name for name in CATALOG if name != "deep agent"])
def test_a_case_gives_the_same_thread_each_time(name: str) -> None:
    first = shape(CATALOG[name])
    assert first == shape(CATALOG[name])
    assert bool(first) == (name != "empty")


def test_thread_ids_differ() -> None:
    assert len({case.thread for case in CATALOG.values()}) == len(CATALOG)
