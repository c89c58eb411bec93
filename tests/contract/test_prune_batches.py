"""How much one transaction of a prune takes away: an application waits for it on SQLite."""

from __future__ import annotations

from pathlib import Path
from typing import Any, TypedDict

import pytest
from langgraph.graph import START, StateGraph

from tests.catalog import config_of
from tests.support.pruning import prune, request
from tests.support.stores import saver_at

_VALUE_BYTES = 1_500_000


class _State(TypedDict):
    text: str


def _run(url: str, value: str) -> None:
    with saver_at(url) as saver:
        graph = StateGraph(_State)
        graph.add_node("write", lambda state: {"text": value})
        graph.add_edge(START, "write")
        config: Any = config_of("t")
        for _ in range(2):
            graph.compile(checkpointer=saver).invoke({"text": value}, config, durability="sync")


@pytest.mark.parametrize(("value", "n_least"), [("short", 0), ("x" * _VALUE_BYTES, 3)], ids=["short", "large"])
def test_large_rows_go_in_smaller_transactions(value: str, n_least: int, tmp_path: Path) -> None:
    url, pauses = str(tmp_path / "store.sqlite"), []
    _run(url, value)

    (done,) = prune(url, request(delete=True, thread="t"), pause=lambda: pauses.append(1))

    assert done.goes.n_checkpoints == 6
    assert len(pauses) >= n_least
    assert bool(pauses) == bool(n_least)
    with saver_at(url) as saver:
        assert saver.get_tuple(config_of("t")) is None
