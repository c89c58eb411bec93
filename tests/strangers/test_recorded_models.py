"""Replays of unprepared graphs in which no model may run: the thread's own answers stand for it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import AIMessage, HumanMessage
from langgraph.graph import START, MessagesState, StateGraph

from agentctl.testing import build_thread, run_cli
from tests.strangers.projects import SPECS, Project
from tests.strangers.test_projects import DELIVERED
from tests.support.recorded import Streamed, models_run

RECORDED = ("--model", "recorded", "--isolation", "off")
ASKS = "def decide(messages: list[BaseMessage], bound: frozenset[str]) -> AIMessage:\n"


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Project:
    """The project with a thread of each graph, and a model that has failed ever since."""
    made = Project.copied_to(tmp_path_factory.mktemp("project"))
    for graph in SPECS:
        made.record(graph)
    model = made.folder / "desk_app" / "model.py"
    text = model.read_text("utf-8")
    assert ASKS in text
    model.write_text(text.replace(ASKS, f"{ASKS}    raise RuntimeError('a model ran')\n"), "utf-8")
    return made


@pytest.mark.parametrize("graph", SPECS)
def test_a_replay_comes_to_the_same_reply_without_a_model(project: Project, graph: str) -> None:
    done = project("replay", "t@root", *RECORDED, graph=graph)
    assert done.code == 0, done.out
    (run,) = done.json["runs"]
    assert run["reply"].endswith("refunded A1")
    assert run["usage"]["model_calls"] == run["usage"]["recorded"] >= 2
    assert done.json["side_effects"]["blocked"] == done.json["side_effects"]["escaped"] == 0
    assert project.world() == []


@pytest.mark.parametrize("graph", [name for name in SPECS if name != "workflow"])
def test_a_fork_with_another_answer_is_blocked_where_the_model_would_be_told(project: Project, graph: str) -> None:
    form = (
        ("--answer", DELIVERED)
        if graph in ("handoff", "deep", "lazynode")
        else ("--patch", 'lookup_order:status="delivered"')
    )
    done = project("fork", "t", *form, *RECORDED, graph=graph)
    (run,) = done.json["runs"]
    assert (done.code, run["status"], run["blocked_hint"]) == (5, "blocked", "--model PROVIDER:NAME"), done.out
    assert run["error"].startswith("no recorded answer fits the model call: ")
    assert "lookup_order, is not as recorded" in run["error"]
    assert project.world() == []


def test_a_subagent_that_the_target_lies_in_gets_its_own_answers(project: Project) -> None:
    done = project("replay", "t@call:lookup_order", *RECORDED, graph="deep")
    assert done.code == 0, done.out
    assert done.json["runs"][0]["reply"] == "Done: refunded A1"
    assert project.world() == []


def test_people_are_told_that_no_model_ran_and_what_stopped_a_run(project: Project) -> None:
    where = ("--graph", project.spec("nested"), "--store", str(project.store("nested")), *RECORDED)
    told = run_cli("replay", "t@root", *where, cwd=project.folder, terminal=True, width=80)
    assert "model: none, 3 answers recorded in t" in told.err
    form = ("--patch", 'lookup_order:status="delivered"')
    told = run_cli("fork", "t", *form, *where, cwd=project.folder, terminal=True, width=200)
    assert "the result of lookup_order, is not as recorded" in told.out
    narrow = run_cli("fork", "t", *form, *where, cwd=project.folder, terminal=True, width=80)
    assert "lookup_order, is not as recorded" in " ".join(narrow.out.split())
    assert "answer it with --model PROVIDER:NAME" in told.out
    check = ("--check", "reply contains refunded", "-n", "2")
    told = run_cli("diagnose", "t@root", *check, *where, cwd=project.folder, terminal=True, width=200)
    assert "model: none ran, its answers are the recorded ones" in told.out
    assert "--model recorded" in told.out.partition("next")[2]
    assert project.world() == []


def test_a_run_that_goes_on_has_no_recorded_answers(project: Project) -> None:
    (project.folder / "input.json").write_text('{"messages": [["human", "hello"]]}', "utf-8")
    given = ("--thread", "new", "--input", "input.json", "--model", "recorded", "--json")
    done = run_cli("run", project.spec("nested"), *given, cwd=project.folder)
    assert done.code == 2, done.out
    assert "--model recorded answers what a thread asked already" in done.json["error"]["message"]


KEYED = """
from langchain.chat_models import init_chat_model
from langchain_openai import ChatOpenAI
from langgraph.graph import START, MessagesState, StateGraph

MODEL = ChatOpenAI(model="gpt-5")

async def agent(state: MessagesState):
    return {"messages": [await MODEL.ainvoke(state["messages"])]}

def again(state: MessagesState):
    chunks = list(init_chat_model("anthropic:claude-opus-5").stream(state["messages"]))
    return {"messages": [sum(chunks[1:], chunks[0])]}

builder = StateGraph(MessagesState).add_sequence([agent, again]).add_edge(START, "agent")
"""


def test_clients_of_providers_need_no_key_and_reach_nobody(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    model = Streamed(script=lambda messages, _: AIMessage(f"answer {len(messages)}"))

    def agent(state: MessagesState) -> Any:
        return {"messages": [model.invoke(state["messages"])]}

    def again(state: MessagesState) -> Any:
        chunks: list[Any] = list(model.stream(state["messages"]))
        return {"messages": [sum(chunks[1:], chunks[0])]}

    graph = StateGraph(MessagesState).add_sequence([agent, again]).add_edge(START, "agent").compile()
    with models_run():
        build_thread(graph, tmp_path / "prod.sqlite", "t", {"messages": [HumanMessage("hello")]})
    (tmp_path / "keyed.py").write_text(KEYED, "utf-8")
    where = ("--graph", "keyed.py:builder", "--store", str(tmp_path / "prod.sqlite"), "--json")
    done = run_cli("replay", "t@root", *where, *RECORDED, cwd=tmp_path)
    assert (done.code, done.json["runs"][0]["reply"]) == (0, "answer 2 "), done.out
