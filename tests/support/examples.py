"""Examples of the catalog's threads, and small ones made by hand."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from agentctl.datasets.branch import Branch
from agentctl.datasets.examples import read_examples
from agentctl.records.datasets import Example, ExampleCall, ExampleSource, Reference
from agentctl.stores.open import open_reader
from agentctl.stores.reading.lineage import read_lineage
from tests.catalog import CATALOG, sqlite_thread


def examples_of(folder: Path, name: str) -> tuple[Example, ...]:
    """Returns the examples of a case of the catalog."""
    case = CATALOG[name]
    return examples_in(sqlite_thread(folder, case), case.thread)


def examples_in(store: Path | str, thread: str, tip: str | None = None) -> tuple[Example, ...]:
    """Returns the examples of a thread in a store."""
    reader = open_reader(str(store))
    try:
        return read_examples(Branch(reader, read_lineage(reader, thread, tip=tip)))
    finally:
        reader.close()


def human(text: str, message_id: str = "h-1") -> dict[str, Any]:
    return {"type": "human", "data": {"type": "human", "id": message_id, "content": text}}


def example(reply: str = "It is on its way.", **fields: Any) -> Example:
    """A small example: one question, one answered call, one reply."""
    result = {
        "type": "tool",
        "data": {"type": "tool", "content": "lost", "name": "lookup_order", "tool_call_id": "c1", "status": "success"},
    }
    values: dict[str, Any] = {
        "id": "00000000-0000-5000-8000-000000000001",
        "inputs": {"input": {"messages": [human("Where is it?")]}, "messages": [human("Where is it?")], "state": {}},
        "outputs": {"reply": reply, "state": {}, "messages": []},
        "reference": Reference(),
        "source": ExampleSource("store.sqlite", "t", "1f0", "1f0"),
        "steps": ("agent", "tools", "agent"),
        "tool_calls": (ExampleCall("lookup_order", {"order_id": "A1"}, "c1", "", result),),
        "configurable": {"user_id": "u-1"},
        "split": "test",
        "turn": 1,
        "channel": "messages",
    }
    return Example(**{**values, **fields})
