"""Which graph made a thread, from its metadata, agentctl.yaml and langgraph.json."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from agentctl.config.load import Config, load_config
from agentctl.errors import ConfigError, UsageError

WORKFLOWS = """
workflows:
  refunds:
    graph: graphs/refunds.py:build_graph
    sandbox: sandbox_tools/refunds.py:tools
    production: graphs/refunds_tools.py:tools
    model: openai:gpt-x
    incidents: fixtures/incidents
    renderer: graphs/refunds/view.yaml
    checks: [checks/no.yaml, "reply contains no refund"]
  travel:
    graph: apps.travel:graph
"""


def project(folder: Path, *, workflows: str = "", graphs: object = None) -> Config:
    if workflows:
        (folder / "agentctl.yaml").write_text(workflows)
    if graphs is not None:
        (folder / "langgraph.json").write_text(json.dumps({"dependencies": ["."], "graphs": graphs}))
    return load_config(folder, {})


def test_a_workflow_has_absolute_places_and_its_checks(tmp_path: Path) -> None:
    flow = project(tmp_path, workflows=WORKFLOWS).workflow_for("refunds")
    assert flow is not None
    assert flow.graph == f"{tmp_path}/graphs/refunds.py:build_graph"
    assert flow.sandbox == f"{tmp_path}/sandbox_tools/refunds.py:tools"
    assert flow.incidents == tmp_path / "fixtures/incidents"
    assert flow.checks == (f"{tmp_path}/checks/no.yaml", "reply contains no refund")
    assert flow.model == "openai:gpt-x"
    assert flow.renderer == tmp_path / "graphs/refunds/view.yaml"


def test_an_unknown_workflow_names_its_neighbour_or_all(tmp_path: Path) -> None:
    config = project(tmp_path, workflows=WORKFLOWS)
    with pytest.raises(UsageError) as near:
        config.workflow_for("refund")
    assert near.value.hint == "did you mean refunds?"
    with pytest.raises(UsageError) as far:
        config.workflow_for("xyz")
    assert far.value.hint == "workflows are: refunds, travel"


@pytest.mark.parametrize("key", ["workflow", "graph_id", "assistant_id"])
def test_metadata_names_the_workflow(tmp_path: Path, key: str) -> None:
    config = project(tmp_path, workflows=WORKFLOWS)
    assert config.workflow_for({key: "travel"}) == config.workflows["travel"]
    choice = config.graph_for({key: "travel", "user_id": "u-1"})
    assert (choice.name, choice.graph, choice.workflow) == ("travel", "apps.travel:graph", config.workflows["travel"])


def test_metadata_that_names_no_workflow_gives_none(tmp_path: Path) -> None:
    assert project(tmp_path, workflows=WORKFLOWS).workflow_for({"user_id": "refunds"}) is None


def test_metadata_names_a_graph_of_langgraph_json(tmp_path: Path) -> None:
    config = project(tmp_path, graphs={"a": "./a.py:graph", "b": {"path": "./src/b.py:make", "description": "B"}})
    choice = config.graph_for({"graph_id": "b"})
    assert (choice.graph, choice.workflow) == (f"{tmp_path}/src/b.py:make", None)
    assert str(choice.origin) == f"file {tmp_path}/langgraph.json"


def test_a_graph_that_both_files_name_is_the_workflows(tmp_path: Path) -> None:
    workflows = "workflows: {refunds: {graph: graphs/refunds.py:build_graph}}"
    config = project(tmp_path, workflows=workflows, graphs={"support": "./graphs/refunds.py:build_graph"})
    for metadata in ({"graph_id": "support"}, {"workflow": "refunds"}, {}):
        choice = config.graph_for(metadata)
        assert choice.workflow == config.workflows["refunds"]


def test_the_only_graph_is_the_default_even_where_an_assistant_id_says_nothing(tmp_path: Path) -> None:
    config = project(tmp_path, graphs={"agent": "./agent.py:graph"})
    assert config.graph_for({}).name == "agent"
    assert config.graph_for({"assistant_id": "0b6f2f1e-9c1b-5e0c-8f2e-2f6f2b1c9a77"}).name == "agent"


def test_a_thread_of_another_graph_is_not_run_on_the_only_one(tmp_path: Path) -> None:
    config = project(tmp_path, graphs={"agent": "./agent.py:graph"})
    with pytest.raises(UsageError, match="made by other, which is not configured") as caught:
        config.graph_for({"graph_id": "other"})
    assert "configured are: agent" in str(caught.value.hint)


def test_several_graphs_are_listed_where_nothing_names_one(tmp_path: Path) -> None:
    config = project(tmp_path, workflows=WORKFLOWS, graphs={"agent": "./agent.py:graph"})
    with pytest.raises(UsageError) as caught:
        config.graph_for({})
    assert "refunds, travel, agent" in str(caught.value.hint)


def test_no_graph_at_all_says_how_to_give_one(tmp_path: Path) -> None:
    with pytest.raises(UsageError) as caught:
        project(tmp_path).graph_for({})
    assert "--graph path.py:attr" in str(caught.value.hint)


def test_the_graph_flag_wins_and_keeps_the_workflow_it_belongs_to(tmp_path: Path) -> None:
    config = project(tmp_path, workflows=WORKFLOWS)
    choice = config.graph_for({"workflow": "travel"}, "graphs/refunds.py:build_graph")
    assert (choice.graph, choice.workflow) == (
        f"{tmp_path}/graphs/refunds.py:build_graph",
        config.workflows["refunds"],
    )
    assert str(choice.origin) == "flag --graph"
    other = config.graph_for({"workflow": "travel"}, "other.py:graph")
    assert (other.graph, other.workflow) == (f"{tmp_path}/other.py:graph", None)
    assert config.graph_for({}, "package.module:graph").graph == "package.module:graph"


def test_the_graph_flag_takes_a_configured_name(tmp_path: Path) -> None:
    config = project(tmp_path, workflows=WORKFLOWS, graphs={"agent": "./agent.py:graph"})
    assert config.graph_for({"workflow": "refunds"}, "travel").graph == "apps.travel:graph"
    assert config.graph_for({}, "agent").graph == f"{tmp_path}/agent.py:graph"
    with pytest.raises(UsageError):
        config.graph_for({}, "nope")


@pytest.mark.parametrize("text", ["{", '{"graphs": []}', '{"graphs": {"a": 1}}', '{"graphs": {"a": "agent.py"}}', "[]"])
def test_a_wrong_langgraph_json_matters_only_where_a_graph_is_wanted(tmp_path: Path, text: str) -> None:
    (tmp_path / "langgraph.json").write_text(text)
    config = load_config(tmp_path, {})
    assert config.debug_store()
    with pytest.raises(ConfigError, match=r"langgraph\.json"):
        config.graph_for({})


def test_a_name_that_is_not_configured_is_refused_with_the_forms_that_need_no_configuration(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no graph is configured as") as caught:
        project(tmp_path).graph_for({"workflow": "travel"}, "app.route")
    assert "package.module:attr" in (caught.value.hint or "")
