"""Pending writes whose checkpoint is not stored: which of them a run may still be about to store a checkpoint for.

Source: langgraph 1.2.24, pregel/_loop.py (`put_writes`, `_put_checkpoint`): with durability "async" and "exit" both are
stored in the background, in any order.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from agentctl.records.prunes import Key

REST: Final = "1h"
"""What `doctor` proposes as the age from which on a thread is taken to be at rest."""


def newest_of(keys: Iterable[Key]) -> dict[str, str]:
    """Returns the newest checkpoint id of each namespace."""
    newest: dict[str, str] = {}
    for ns, id in keys:
        newest[ns] = max(id, newest.get(ns, ""))
    return newest


def is_settled(key: Key, newest: Mapping[str, str]) -> bool:
    """Says whether a later checkpoint is stored, in the same namespace or in the root graph, than writes name.

    A subgraph's run is over when the next checkpoint of the root graph is stored. That a subgraph beside it has a newer
    one says nothing.
    """
    ns, id = key
    return id < max(newest.get(ns, ""), newest.get("", ""))
