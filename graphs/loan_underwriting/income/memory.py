"""Where the memory store keeps what is known about employers: facts about firms, never about people."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from langgraph.store.base import BaseStore

KEY = "payroll"


def employer_namespace(employer_id: str) -> tuple[str, str]:
    """Returns the namespace of an employer: one item `payroll`, `{"name", "payroll_names", "verified_on"}`."""
    return ("employers", employer_id)


def recall(store: BaseStore | None, employer_id: str) -> Mapping[str, Any] | None:
    """Returns what is remembered of an employer, None for an unknown one or without a store."""
    item = None if store is None else store.get(employer_namespace(employer_id), KEY)
    return None if item is None else item.value


def remember(
    store: BaseStore | None, employer_id: str, *, name: str, payroll_names: Sequence[str], verified_on: str
) -> None:
    """Keeps a verified employer; the key is the employer, so a repeat changes nothing."""
    if store is not None:
        value = {"name": name, "payroll_names": list(payroll_names), "verified_on": verified_on}
        store.put(employer_namespace(employer_id), KEY, value)
