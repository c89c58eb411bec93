"""Field log M: secrets that an application put into its configuration."""

from __future__ import annotations

import json
import os
import threading
from pathlib import Path

import pytest
from langgraph.graph import START, MessagesState, StateGraph
from langsmith.utils import tracing_is_enabled

from agentctl.codec.secrets import is_secret_name
from agentctl.records.copies import Place
from agentctl.records.runs import Plan
from agentctl.render.run_documents import plan_object
from agentctl.render.runs import plan_lines
from agentctl.sandbox.environment import environment
from agentctl.testing import build_thread, run_cli

_CONFIGURABLE = {"user_id": "u-7", "password": "hunter2", "llm": {"openaiApiKey": "k-123", "region": "eu"}}


def test_m3_a_plan_hides_the_secrets_of_the_recorded_configuration() -> None:
    plan = Plan(Place("db", "t", "c"), ("tools",), (), (), _CONFIGURABLE, "none found", False, "app.py:graph")

    for shown in ("\n".join(plan_lines(plan, "replay")), json.dumps(plan_object(plan))):
        assert "u-7" in shown and "eu" in shown
        assert "hunter2" not in shown and "k-123" not in shown


@pytest.mark.parametrize(
    "name", ["api_key", "OPENAI_API_KEY", "openaiApiKey", "accessToken", "auth-token", "db.password"]
)
def test_names_of_secrets_are_known_however_they_are_spelled(name: str) -> None:
    assert is_secret_name(name)


@pytest.mark.parametrize("name", ["author", "passenger", "key", "secretary_name"])
def test_ordinary_names_are_not_secrets(name: str) -> None:
    assert not is_secret_name(name)


def test_m3_prompts_stay_out_of_langsmith_also_in_threads_of_a_node(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LANGSMITH_TRACING", "true")
    monkeypatch.setenv("AGENTCTL_ENV", "production")
    seen: list[tuple[object, str | None]] = []
    with environment({}):
        thread = threading.Thread(target=lambda: seen.append((tracing_is_enabled(), os.environ.get("AGENTCTL_ENV"))))
        thread.start()
        thread.join()

    assert seen == [(False, None)]
    assert os.environ["LANGSMITH_TRACING"] == "true"


def test_m3_a_dataset_and_a_case_hold_no_secret_of_the_configuration(tmp_path: Path) -> None:
    graph = StateGraph(MessagesState)
    graph.add_node("agent", lambda state: {"messages": [("ai", "hello")]})
    graph.add_edge(START, "agent")
    file = tmp_path / "prod.sqlite"
    secret = {"user_id": "u-7", "api_key": "hunter2", "endpoint": "https://app:hunter2@example.org"}
    build_thread(graph.compile(), file, "t", {"messages": [("human", "hi")]}, metadata=secret)
    (tmp_path / "app.py").write_text(
        "from langgraph.graph import START, MessagesState, StateGraph\n"
        "graph = StateGraph(MessagesState).add_node('agent', lambda state: {}).add_edge(START, 'agent').compile()\n"
    )

    places = ("--store", file, "--debug-store", tmp_path / "debug" / "debug.sqlite")
    replayed = run_cli("replay", "t@before:agent", *places, "--graph", "app.py:graph", cwd=tmp_path, environ={})
    exported = run_cli(
        "export", "t", *places, "--dataset", "d", "--check", "reply contains x", cwd=tmp_path, environ={}
    )

    assert (replayed.code, exported.code) == (0, 0), (replayed.err, exported.err)
    kept = [path for path in tmp_path.rglob("*") if path.suffix in (".json", ".jsonl")]
    assert {path.name for path in kept} >= {"case.json", "examples.jsonl", "001-replay.json"}
    assert [path for path in kept if "hunter2" in path.read_text()] == []
    assert '"user_id": "u-7"' in (tmp_path / "datasets" / "d" / "examples.jsonl").read_text()
