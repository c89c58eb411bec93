"""Running a copied thread and its source side by side, and what stock LangGraph says of both."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from langchain_core.callbacks import BaseCallbackHandler
from langgraph.checkpoint.postgres import PostgresSaver
from langgraph.checkpoint.serde.types import _DeltaSnapshot
from langgraph.checkpoint.sqlite import SqliteSaver

from tests.catalog import Saver, config_of

_RANDOM_ID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")


class NodeCounter(BaseCallbackHandler):
    """Counts nodes that really start, inner ones with their path: `verify|match`."""

    run_inline = True

    def __init__(self) -> None:
        self.nodes: Counter[str] = Counter()

    def on_chain_start(self, serialized: Any, inputs: Any, **kwargs: Any) -> None:
        metadata = kwargs.get("metadata") or {}
        is_task = any(tag.startswith("graph:step") for tag in kwargs.get("tags") or ())
        if is_task and kwargs.get("name") == metadata.get("langgraph_node"):
            path = str(metadata["langgraph_checkpoint_ns"]).split("|")
            self.nodes["|".join(part.split(":")[0] for part in path if not part.isdigit())] += 1


@dataclass(frozen=True)
class Outcome:
    """What a run did and how the thread stands after it; random ids are blanked."""

    nodes: Mapping[str, int]
    values: str
    next: Mapping[str, int]
    questions: tuple[str, ...]
    error: str | None


def run(graph: Any, thread: str, value: Any, checkpoint_id: str | None = None) -> Outcome:
    """Runs a thread from its head, or from a checkpoint, and tells what happened."""
    counter = NodeCounter()
    where = {"checkpoint_id": checkpoint_id} if checkpoint_id else {}
    error = None
    try:
        graph.invoke(value, config_of(thread, **where) | {"callbacks": [counter]}, durability="sync")
    except ValueError as raised:
        error = str(raised)
    state = graph.get_state(config_of(thread))
    return Outcome(
        nodes=dict(counter.nodes),
        values=_RANDOM_ID.sub("ID", repr(state.values)),
        next=Counter(state.next),
        questions=tuple(sorted(repr(question.value) for question in state.interrupts)),
        error=error,
    )


def history(graph: Any, thread: str) -> list[tuple[Any, ...]]:
    """Returns what `get_state_history` tells of every checkpoint but the thread id."""
    return [
        (
            snapshot.config["configurable"]["checkpoint_id"],
            snapshot.parent_config and snapshot.parent_config["configurable"]["checkpoint_id"],
            repr(snapshot.values),
            snapshot.next,
            snapshot.created_at,
            snapshot.metadata,
            [(task.id, task.name, task.path, task.error, task.interrupts, task.result) for task in snapshot.tasks],
        )
        for snapshot in graph.get_state_history(config_of(thread))
    ]


def tuples(saver: Saver, thread: str) -> list[tuple[Any, ...]]:
    """Returns every checkpoint of every namespace as the stock saver loads it, with pending writes in its order."""
    return [
        (
            found.config["configurable"]["checkpoint_ns"],
            found.config["configurable"]["checkpoint_id"],
            found.parent_config and found.parent_config["configurable"]["checkpoint_id"],
            {"updated_channels": None, **found.checkpoint, "channel_values": None},
            found.checkpoint["channel_values"],
            found.metadata,
            found.pending_writes,
        )
        for found in sorted(
            saver.list({"configurable": {"thread_id": thread}}),
            key=lambda one: (one.config["configurable"]["checkpoint_ns"], one.config["configurable"]["checkpoint_id"]),
        )
    ]


@contextmanager
def stock_saver(store: str) -> Iterator[Saver]:
    """Yields the stock saver of a store, set up."""
    kind = PostgresSaver if store.startswith("postgresql://") else SqliteSaver
    with kind.from_conn_string(store) as saver:
        saver.setup()
        yield saver


def without_repeated_snapshots(found: list[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    """Leaves out snapshots of delta channels: Postgres shows one at every checkpoint of its version, SQLite at one."""
    return [
        (*one[:4], {key: value for key, value in one[4].items() if not isinstance(value, _DeltaSnapshot)}, *one[5:])
        for one in found
    ]
