"""All four workflows as a server runs them: from langgraph.json, in an event loop, for callers without a name."""

from __future__ import annotations

import asyncio
import importlib
import json
import threading
from pathlib import Path
from typing import Any

import pytest
import yaml
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.store.sqlite.aio import AsyncSqliteStore

from graphs.common.owners import ANONYMOUS, Owner, caller_of
from graphs.research_report.graph import build_graph
from graphs.research_report.preferences import user_namespace
from sandbox_tools.research import registry

REPOSITORY = Path(__file__).parents[2]
SERVED = json.loads((REPOSITORY / "langgraph.json").read_text("utf-8"))
WORKFLOWS = yaml.safe_load((REPOSITORY / "agentctl.yaml").read_text("utf-8"))["workflows"]


def test_the_server_serves_every_workflow_and_offers_none_over_mcp() -> None:
    assert list(SERVED["graphs"]) == list(WORKFLOWS)
    assert SERVED["http"] == {"disable_mcp": True}
    assert all(path == f"./graphs/{name}/graph.py:graph" for name, path in SERVED["graphs"].items())


@pytest.mark.parametrize("name", SERVED["graphs"])
def test_a_graph_is_built_off_the_event_loop_where_files_may_be_read(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("AGENTCTL_ENV", raising=False)
    module, built_in = importlib.import_module(f"graphs.{name}.graph"), []
    build = module.build_graph

    def recording(*args: Any, **options: Any) -> Any:
        built_in.append(threading.current_thread())
        return build(*args, **options)

    monkeypatch.setattr(module, "build_graph", recording)
    graph = asyncio.run(module.graph({"configurable": {}}))
    assert graph.checkpointer is None
    assert threading.main_thread() not in built_in
    assert len(built_in) == 1


def test_a_caller_whom_the_server_names_with_nothing_is_anonymous() -> None:
    caller = caller_of({"user_id": "", "tenant": None, "actor": ""})
    assert (caller.owner, caller.actor) == ({"tenant": ANONYMOUS, "user_id": ANONYMOUS}, ANONYMOUS)


def test_research_reads_an_async_memory_store_without_holding_up_the_loop() -> None:
    """A server's store refuses sync calls in the event loop."""

    async def run() -> list[Any]:
        async with AsyncSqliteStore.from_conn_string(":memory:") as store:
            await store.setup()
            owner = Owner(tenant="acme", user_id="u-1")
            await store.aput(user_namespace(owner), "audience", {"value": "engineers"})
            graph = build_graph(registry(), memory=store)
            graph.checkpointer = InMemorySaver()
            config: Any = {"configurable": {"thread_id": "t", **owner}}
            asked: Any = {"question": "How many lorries cross the bridge?"}
            events = graph.astream(asked, config, stream_mode="updates", durability="sync")
            return [event["Intake.before_agent"] async for event in events if "Intake.before_agent" in event]

    (begun,) = asyncio.run(run())
    assert begun["preferences"] == {"audience": "engineers"}
