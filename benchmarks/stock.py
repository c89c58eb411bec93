"""The stock way to look at a thread: load the graph and ask it. Run as a process of its own.

Usage: python -m benchmarks.stock STORE KIND THREAD [--start-up | --checkpoint ID | --sizes]
"""

from __future__ import annotations

import sys
from collections import Counter
from contextlib import AbstractContextManager
from typing import Any


def open_saver(store: str) -> AbstractContextManager[Any]:
    """Opens the stock saver of a SQLite path or a Postgres URL."""
    if store.startswith("postgresql://"):
        from langgraph.checkpoint.postgres import PostgresSaver

        return PostgresSaver.from_conn_string(store)
    from langgraph.checkpoint.sqlite import SqliteSaver

    return SqliteSaver.from_conn_string(store)


def print_sizes(saver: Any) -> None:
    """Prints what the states of each thread take, packed again: a saver does not tell what its rows take."""
    n_bytes: Counter[str] = Counter()
    for found in saver.list(None):
        n_bytes[found.config["configurable"]["thread_id"]] += len(saver.serde.dumps_typed(found.checkpoint)[1])
    for thread, size in n_bytes.most_common():
        print(thread, size)


def main() -> None:
    """Lists one thread, one line a checkpoint; or reads one checkpoint; or measures all; or starts up and stops."""
    from benchmarks.threads import build

    store, kind, thread, *rest = sys.argv[1:]
    with open_saver(store) as saver:
        graph = build(kind).compile(checkpointer=saver)
        match rest:
            case ["--start-up"]:
                return
            case ["--sizes"]:
                print_sizes(saver)
            case ["--checkpoint", checkpoint_id]:
                state = graph.get_state({"configurable": {"thread_id": thread, "checkpoint_id": checkpoint_id}})
                print(state.values, state.next)
            case _:
                for state in graph.get_state_history({"configurable": {"thread_id": thread}}):
                    metadata = state.metadata or {}
                    checkpoint_id = state.config["configurable"]["checkpoint_id"]
                    print(checkpoint_id, metadata.get("step"), metadata.get("source"), *state.next)


if __name__ == "__main__":
    main()
