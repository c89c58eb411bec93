"""The stock way to list a thread: load the graph and walk `get_state_history`. Run as a process of its own.

Usage: python -m benchmarks.stock STORE KIND THREAD [--start-up]
"""

from __future__ import annotations

import sys
from contextlib import AbstractContextManager
from typing import Any


def open_saver(store: str) -> AbstractContextManager[Any]:
    """Opens the stock saver of a SQLite path or a Postgres URL."""
    if store.startswith("postgresql://"):
        from langgraph.checkpoint.postgres import PostgresSaver

        return PostgresSaver.from_conn_string(store)
    from langgraph.checkpoint.sqlite import SqliteSaver

    return SqliteSaver.from_conn_string(store)


def main() -> None:
    """Lists one thread, one line a checkpoint, or starts up and stops."""
    from benchmarks.threads import build

    store, kind, thread, *rest = sys.argv[1:]
    with open_saver(store) as saver:
        graph = build(kind).compile(checkpointer=saver)
        if "--start-up" in rest:
            return
        for state in graph.get_state_history({"configurable": {"thread_id": thread}}):
            metadata = state.metadata or {}
            print(
                state.config["configurable"]["checkpoint_id"], metadata.get("step"), metadata.get("source"), *state.next
            )


if __name__ == "__main__":
    main()
