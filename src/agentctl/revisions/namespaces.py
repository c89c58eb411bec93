"""Checkpoint namespaces by their full name or by their path of nodes.

Source: langgraph 1.2.24, pregel/_algo.py (a namespace is `node:task_id` per level, joined by `|`; a subgraph with
its own checkpointer has no task id).
"""

from __future__ import annotations

import shlex
from collections.abc import Sequence

from agentctl.errors import Ambiguous, NotFound


def node_path(ns: str) -> str:
    """Returns a namespace without its task ids: `a:1f0…|b:2c9…` becomes `a|b`."""
    return "|".join(level.partition(":")[0] for level in ns.split("|"))


def pick_namespace(text: str, namespaces: Sequence[str], thread: str) -> str:
    """Returns the one stored namespace that `text` names: exactly, by path of nodes, or by a beginning of it.

    Raises:
        NotFound: none; the hint lists those that are stored.
        Ambiguous: several, such as two visits of one subgraph.
    """
    if text in namespaces:
        return text
    matches = [ns for ns in namespaces if ns and node_path(ns) == text]
    matches = matches or [ns for ns in namespaces if ns and ns.startswith(text)]
    if len(matches) == 1:
        return matches[0]
    if matches:
        raise Ambiguous(
            f"thread {thread} has {len(matches)} namespaces named {text}",
            hint=f"give one in full, such as --ns {shlex.quote(matches[-1])}",
            candidates=[{"ns": ns} for ns in matches],
        )
    stored = [ns for ns in namespaces if ns]
    raise NotFound(
        f"thread {thread} has no namespace {text}",
        hint=f"it has: {', '.join(stored)}" if stored else "it has the root namespace only: leave --ns away",
        candidates=[{"ns": ns} for ns in stored],
    )
