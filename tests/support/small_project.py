"""A project with one workflow of one node and one incident: a tour of it takes a moment."""

from __future__ import annotations

from pathlib import Path

_CONFIGURATION = """
profiles:
  prod: {store: "sqlite:///.agentctl/tour/prod.sqlite", access: read, default: true}
workflows:
  greeter: {graph: "greeter.py:graph", incidents: incidents/greeter}
"""

_GRAPH = """
from langchain_core.messages import AIMessage
from langgraph.graph import MessagesState, StateGraph


def greet(state):
    return {"messages": [AIMessage("no refund is due")]}


graph = StateGraph(MessagesState).add_node("greet", greet).set_entry_point("greet").compile()
"""

_STAGE = """
import sys
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from agentctl.records.tour import Incident
from agentctl.testing import build_thread

EXPECTED = {expected!r}
BEFORE_SEEDING = {before_seeding!r}
WHEN_COUNTED = {when_counted!r}


@dataclass
class Stage:
    n_counted: int = 0
    threads: tuple = ("greeting",)
    incidents: tuple = (
        Incident("rude", "A rude greeting", "It was rude.", "u-1", "greeting", "",
                 ("--check", "reply contains no refund"), EXPECTED),
    )

    def seed(self, store_url, *, now):
        exec(BEFORE_SEEDING)
        from greeter import graph
        said, metadata = {{"messages": [("human", "hello")]}}, {{"user_id": "u-1", "workflow": "greeter"}}
        if "://" not in store_url:
            build_thread(graph, Path(store_url), "greeting", said, metadata=metadata)
        else:
            from langgraph.checkpoint.postgres import PostgresSaver
            with PostgresSaver.from_conn_string(store_url) as saver:
                saver.setup()
                config = {{"configurable": {{"thread_id": "greeting"}}, "metadata": metadata}}
                graph.copy(update={{"checkpointer": saver}}).invoke(said, config, durability="sync")
        return {{"greeting": "no refund is due"}}

    def counters(self):
        self.n_counted += 1
        exec(WHEN_COUNTED)
        return {{"calls": 0}} if "called" not in globals() else {{"calls": self.n_counted}}


@contextmanager
def stage(incidents, scratch):
    yield Stage()
"""


def write_project(
    folder: Path, *, verdict: str = "inconclusive", before_seeding: str = "", when_counted: str = ""
) -> Path:
    """Writes the project and returns its folder.

    Args:
        folder: Where.
        verdict: What the incident is said to end in; without a fork it really ends in `inconclusive`.
        before_seeding: Python that runs before production is seeded.
        when_counted: Python that runs whenever the outside world is asked for its counters, `self.n_counted` times.
    """
    incidents = folder / "incidents" / "greeter"
    incidents.mkdir(parents=True, exist_ok=True)
    (folder / "agentctl.yaml").write_text(_CONFIGURATION, encoding="utf-8")
    (folder / "greeter.py").write_text(_GRAPH, encoding="utf-8")
    stage = _STAGE.format(expected={"verdict": verdict}, before_seeding=before_seeding, when_counted=when_counted)
    (incidents / "stage.py").write_text(stage, encoding="utf-8")
    return folder
